"""Protection rules for tags of container images, as production has them; most answers are compared with recorded ones."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from reconciler.sandbox import StateError

from .sandbox_client import WEB, Answer, SandboxClient, a_service

RULES = f"{WEB}/registry/protection/tag/rules"
SECTION = "container_tag_protection_rules"
PATTERN, PUSH, DELETE = "tag_name_pattern", "minimum_access_level_for_push", "minimum_access_level_for_delete"
FORBIDDEN = (403, {"message": "403 Forbidden"})
UNSUPPORTED = "GitLab container registry API not supported"
FULL = (422, {"message": "Maximum number of protection rules have been reached."})


def rules(*patterns: str, **more: Any) -> dict[str, Any]:
    """A project with these rules."""
    return {SECTION: [{PATTERN: pattern, PUSH: "maintainer", DELETE: "owner"} for pattern in patterns], **more}


def post(service: SandboxClient, pattern: str | None, push: str | None = "maintainer", **more: Any) -> Answer:
    return service.ask(f"POST {RULES}", {PATTERN: pattern, PUSH: push, DELETE: "owner"}, **more)


def patch(service: SandboxClient, number: int, **sent: Any) -> Answer:
    return service.ask(f"PATCH {RULES}/{number}", sent, user="max")


def patterns(service: SandboxClient) -> list[str]:
    return [each[PATTERN] for each in service.ask(f"GET {RULES}")[1]]


def wrong(*reasons: str) -> Answer:
    return 422, {"message": {"error": list(reasons)}}


def test_the_rule_that_was_changed_last_is_the_last_one(service: SandboxClient, dialect: str) -> None:
    service.given(a_service(dialect, web=rules("b.*")))
    made = {"id": 2, "project_id": 100, PATTERN: "v.*", PUSH: "maintainer", DELETE: "owner"}
    assert post(service, "v.*", user="max") == (201, made)
    assert patch(service, 1, **{PATTERN: "a.*", PUSH: "admin"})[1][PATTERN] == "a.*"
    assert patterns(service) == ["v.*", "a.*"]
    assert patch(service, 2, **{PATTERN: "v.*"}) == patch(service, 2) == (200, made)
    assert patterns(service) == ["v.*", "a.*"]
    assert service.ask(f"DELETE {RULES}/1", If_Unmodified_Since="Thu, 01 Jan 1970 00:00:00 GMT")[0] == 412
    assert service.ask(f"DELETE {RULES}/1") == (204, None)
    assert service.ask(f"DELETE {RULES}/1") == (404, {"message": "404 Not found"})
    assert service.ask(f"GET {RULES}/2")[0] == (404 if dialect == "deployed" else 405)


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("*", "not valid RE2 syntax: no argument for repetition operator: *"),
        ("(", "not valid RE2 syntax: missing ): ("),
        ("(?=x)", "not valid RE2 syntax: invalid perl operator: (?="),
        ("a++", "not valid RE2 syntax: bad repetition operator: ++"),
        ("v(?:a|b){2000}", "not valid RE2 syntax: invalid repetition size: {2000}"),
        ("[z-a]", "not valid RE2 syntax: bad character range z-a"),
        ("[", "not valid RE2 syntax: unterminated character set"),
        ("x" * 101, "is too long (maximum is 100 characters)"),
        (" ", "can't be blank"),
        ("b.*", "has already been taken"),
    ],
)
def test_a_pattern_is_a_regular_expression(service: SandboxClient, dialect: str, pattern: str, reason: str) -> None:
    service.given(a_service(dialect, web=rules("b.*", "c.*")))
    assert post(service, pattern) == (422, {"message": [f"Tag name pattern {reason}"]})
    assert patch(service, 2, **{PATTERN: pattern}) == wrong(f"Tag name pattern {reason}")
    assert [post(service, each)[0] for each in ("v*-release", "B.*", r"[[:alpha:]]\pN+\z")] == [201, 201, 201]


def test_both_levels_are_needed(service: SandboxClient, dialect: str) -> None:
    service.given(a_service(dialect, web=rules("b.*")))
    no_value = "does not have a valid value"
    refusal = {"message": {PUSH: [no_value]}} if dialect == "spec" else {"error": f"{PUSH} {no_value}"}
    for level in (None, "", "developer"):
        assert post(service, "a", level) == (400, refusal)
    assert service.ask(f"POST {RULES}", {PATTERN: "a"})[0] == 400
    half = wrong("Access levels should either both be present or both be nil")
    assert [patch(service, 1, **{PUSH: level}) for level in (None, "")] == [half, half]
    none = wrong("Cannot create an immutable tag rule from a protection rule")
    assert patch(service, 1, **{PUSH: None, DELETE: ""}) == none
    state = service.sandbox.state()
    state["instance"]["version"] = "18.9.0"
    assert patch(service.given(state), 1, **{PUSH: None}) == wrong("Access levels should both be present")


def test_there_are_five_at_most_with_the_hidden_ones(service: SandboxClient, dialect: str) -> None:
    state = rules("1", "2", "3")
    state[SECTION].append({PATTERN: "1"})
    service.given(a_service(dialect, web=state))
    assert patterns(service) == ["1", "2", "3"]
    assert [post(service, "4")[0], post(service, "4"), post(service, "5")] == [201, FULL, FULL]
    assert patch(service, 4, **{PUSH: "admin"}) == (422, {"message": {"error": "Operation not allowed"}})
    assert service.ask(f"DELETE {RULES}/4", user="max") == FORBIDDEN
    assert service.ask(f"DELETE {RULES}/4")[0] == 204
    assert post(service, "5")[0] == 201


def test_creations_at_once_are_one_rule_and_errors_and_the_limit_holds(service: SandboxClient, dialect: str) -> None:
    def at_once(*names: str) -> list[int]:
        service.sandbox.set_faults([f"race,method=POST,together={len(names)}"])
        with ThreadPoolExecutor(len(names)) as pool:
            return sorted(answer[0] for answer in pool.map(lambda name: post(service, name), names))

    service.given(a_service(dialect))
    assert at_once("v", "v", "v") == [201, 500, 500]
    assert at_once("1", "2", "3", "4", "5", "6") == [201] * 4 + [422, 422]


def test_without_the_api_of_the_registry_rules_can_only_be_read(service: SandboxClient, dialect: str) -> None:
    state = a_service(dialect, web=rules("b.*"))
    state["instance"]["container_registry_api"] = False
    service.given(state)
    assert patterns(service) == ["b.*"]
    assert post(service, "a") == (422, {"message": UNSUPPORTED})
    assert patch(service, 1, **{PUSH: "admin"}) == (422, {"message": {"error": UNSUPPORTED}})
    assert service.ask(f"DELETE {RULES}/1") == (400, {"message": {"error": UNSUPPORTED}})


def test_archived_projects_have_none_and_projects_without_a_registry_neither(
    service: SandboxClient, dialect: str
) -> None:
    service.given(a_service(dialect, web=rules("b.*", archived=True), lib=rules(container_registry_enabled=False)))
    assert service.ask(f"GET {RULES}") == post(service, "a") == patch(service, 1) == FORBIDDEN
    reason = "Unauthorized to delete a protection rule for container image tags"
    assert service.ask(f"DELETE {RULES}/1") == (400, {"message": {"error": reason}})
    assert service.ask("GET /projects/101/registry/protection/tag/rules") == FORBIDDEN


def test_rules_are_for_maintainers(service: SandboxClient, dialect: str) -> None:
    service.given(a_service(dialect, web=rules("b.*")))
    asked = [service.ask(f"GET {RULES}", user=user)[0] for user in ("max", "dev", "eve", None)]
    assert asked == [200, 403, 404, 401]
    assert service.ask(f"DELETE {RULES}/1", user="dev") == FORBIDDEN
    without = service.ask(f"POST {RULES}", {}, user=None)[0]
    assert without == (400 if dialect == "deployed" else 401)


@pytest.mark.parametrize(("version", "known"), [("18.6.4-ee", 0), ("18.7.0-ee", 1), ("18.8.1-ee", 2), ("19.0.0-ee", 4)])
def test_older_versions_lack_them(service: SandboxClient, dialect: str, version: str, known: int) -> None:
    state = a_service(dialect, web=rules("b.*"))
    state["instance"]["version"] = version
    service.given(state)
    answers = [service.ask(f"GET {RULES}"), post(service, "a"), patch(service, 1), service.ask(f"DELETE {RULES}/1")]
    absent = (404, {"error": "404 Not Found"})
    assert [answer != absent for answer in answers] == [True] * known + [False] * (4 - known)


def test_a_rule_of_a_state_has_both_levels_or_none(service: SandboxClient) -> None:
    with pytest.raises(StateError, match=r"container_tag_protection_rules\[0\]: needs both levels, or none of them"):
        service.given(a_service(web={SECTION: [{PATTERN: "a", PUSH: "owner"}]}))
