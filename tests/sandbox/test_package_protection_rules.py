"""Protection rules for packages, as production has them; most answers are compared with recorded ones too."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from reconciler.sandbox import StateError

from .sandbox_client import WEB, Answer, SandboxClient, a_service

RULES = f"{WEB}/packages/protection/rules"
SECTION = "package_protection_rules"
PATTERN, TYPE = "package_name_pattern", "package_type"
PUSH, DELETE = "minimum_access_level_for_push", "minimum_access_level_for_delete"
FORBIDDEN = (403, {"message": "403 Forbidden"})
NO_LEVEL = "A rule must have at least a minimum access role for push or delete."
TAKEN = ["Package name pattern has already been taken", "Pattern has already been taken"]
ONE = {SECTION: [{PATTERN: "a", TYPE: "npm", PUSH: "owner"}]}


def wrong(*reasons: str) -> Answer:
    return 422, {"message": {"error": list(reasons)}}


def post(service: SandboxClient, pattern: str | None, sort: str = "npm", /, **more: Any) -> Answer:
    return service.ask(f"POST {RULES}", {PATTERN: pattern, TYPE: sort, **(more or {PUSH: "owner"})}, user="max")


def patch(service: SandboxClient, number: int, **sent: Any) -> Answer:
    return service.ask(f"PATCH {RULES}/{number}", sent, user="max")


def record(number: int, pattern: str, sort: str, push: str | None, delete: str | None = None) -> dict[str, Any]:
    return {"id": number, "project_id": 100, PATTERN: pattern, TYPE: sort, DELETE: delete, PUSH: push}


def test_a_rule_can_be_changed_with_its_key(service: SandboxClient, dialect: str) -> None:
    service.given(a_service(dialect, web=ONE))
    assert post(service, "b", **{PUSH: "admin"}) == (201, record(2, "b", "npm", "admin"))
    assert post(service, "a") == wrong(*TAKEN)
    assert [post(service, "A")[0], post(service, "a", "pypi")[0]] == [201, 201]
    changed = record(1, "c d", "generic", "owner")
    assert patch(service, 1, **{PATTERN: "c d", TYPE: "generic"}) == (200, changed)
    assert patch(service, 1) == patch(service, 1, **{PUSH: "owner"}) == (200, changed)
    assert patch(service, 1, **{PATTERN: "b", TYPE: "npm"}) == wrong(*TAKEN)
    assert patch(service, 1, **{TYPE: None}) == wrong("Package type can't be blank")
    assert [each["id"] for each in service.ask(f"GET {RULES}?per_page=1")[1]] == [2, 3, 4, 1]
    assert service.ask(f"DELETE {RULES}/1", If_Unmodified_Since="Thu, 01 Jan 1970 00:00:00 GMT")[0] == 412
    assert [service.ask(f"DELETE {RULES}/{number}")[0] for number in (1, 1, "x")] == [204, 404, 400]


def test_the_level_to_delete_is_dropped_unless_a_flag_is_on(service: SandboxClient, dialect: str) -> None:
    service.given(a_service(dialect))
    assert post(service, "a", **{DELETE: "owner"}) == wrong(NO_LEVEL)
    assert post(service, "a", **{DELETE: "owner", PUSH: "admin"}) == (201, record(1, "a", "npm", "admin"))
    assert patch(service, 1, **{DELETE: "admin"}) == (200, record(1, "a", "npm", "admin"))
    state = service.sandbox.state()
    state["instance"]["packages_protected_packages_delete"] = True
    service.given(state)
    assert service.ask(f"GET {RULES}") == (200, [record(1, "a", "npm", "admin")])
    assert patch(service, 1, **{DELETE: "owner"}) == (200, record(1, "a", "npm", "admin", "owner"))
    state = service.sandbox.state()
    state["instance"]["packages_protected_packages_delete"] = False
    service.given(state)
    assert patch(service, 1, **{PUSH: None}) == (200, record(1, "a", "npm", None))


def test_levels_and_types_are_checked(service: SandboxClient, dialect: str) -> None:
    service.given(a_service(dialect, web=ONE))
    no_value = "does not have a valid value"

    def invalid(name: str) -> Answer:
        return 400, {"message": {name: [no_value]}} if dialect == "spec" else {"error": f"{name} {no_value}"}

    assert post(service, "b", **{PUSH: "developer"}) == post(service, "b", **{PUSH: ""}) == invalid(PUSH)
    assert post(service, "b", **{DELETE: "maintainer"}) == invalid(DELETE)
    assert post(service, "b", "cargo") == post(service, "b", "NPM") == invalid(TYPE)
    assert patch(service, 1, **{PUSH: None}) == post(service, "b", **{PUSH: None}) == wrong(NO_LEVEL)
    if dialect == "deployed":
        neither = f"{PUSH}, {DELETE} are missing, at least one parameter must be provided"
        assert service.ask(f"POST {RULES}", {PATTERN: "b", TYPE: "npm"}) == (400, {"error": neither})
        all_three = f"{PATTERN} is missing, {TYPE} is missing, {TYPE} {no_value}, {neither}"
        assert service.ask(f"POST {RULES}", {}, user=None) == (400, {"error": all_three})


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("pattern", "sort", "reason"),
    [
        ("a b", "npm", "should be a valid NPM package name with optional wildcard characters."),
        ("@a/b/c", "npm", "should be a valid NPM package name with optional wildcard characters."),
        ("ü", "pypi", "should be a valid PyPI package name with optional wildcard characters."),
        ("a" * 256, "generic", "is too long (maximum is 255 characters)"),
        ("", "generic", "can't be blank"),
        (None, "generic", "can't be blank"),
    ],
)
def test_what_is_wrong_with_a_pattern_is_said_twice(
    service: SandboxClient, dialect: str, pattern: str | None, sort: str, reason: str
) -> None:
    service.given(a_service(dialect))
    assert post(service, pattern, sort) == wrong(f"Package name pattern {reason}", f"Pattern {reason}")
    for good, kind in (("@acme/app-*", "npm"), ("*", "npm"), ("-x-", "pypi"), (" ü ", "maven"), ("a/b", "generic")):
        assert post(service, good, kind)[0] == 201


def test_creations_at_once_are_one_rule(service: SandboxClient, dialect: str) -> None:
    service.given(a_service(dialect))
    service.sandbox.set_faults(["race,method=POST,together=3"])
    with ThreadPoolExecutor(3) as pool:
        answers = sorted(pool.map(lambda _: post(service, "a"), range(3)), key=lambda answer: answer[0])
    assert [status for status, _ in answers] == [201, 422, 422]
    assert answers[1][1]["message"]["error"].startswith("PG::UniqueViolation")


@pytest.mark.parametrize("off", [{"archived": True}, {"packages_enabled": False}])
def test_archived_or_switched_off_there_are_no_rules(
    service: SandboxClient, dialect: str, off: dict[str, bool]
) -> None:
    service.given(a_service(dialect, web={**ONE, **off}))
    assert service.ask(f"GET {RULES}") == post(service, "b") == patch(service, 1) == FORBIDDEN
    assert service.ask(f"DELETE {RULES}/1") == FORBIDDEN


def test_rules_are_for_maintainers(service: SandboxClient, dialect: str) -> None:
    service.given(a_service(dialect, web=ONE))
    assert [service.ask(f"GET {RULES}", user=user)[0] for user in ("max", "dev", "eve", None)] == [200, 403, 404, 401]


def test_a_rule_of_a_state_needs_a_level(service: SandboxClient) -> None:
    with pytest.raises(StateError, match=r"package_protection_rules\[0\]: needs a level for push or for delete"):
        service.given(a_service(web={SECTION: [{PATTERN: "a", TYPE: "npm"}]}))
