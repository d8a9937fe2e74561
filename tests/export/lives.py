"""Strategies for live states, odd ones above all."""

from typing import Any

from hypothesis import strategies as st

from tests.states import a_small_service
from tests.test_fewest_calls import APPROVALS, DELETE, EVENTS, GROUPS, PROJECTS, PUSH, RULES

Plain = dict[str, Any]

ODD = [
    "1.10", "yes", "null", "~", "2026-01-01", "{path}", "%a", "*a", "&a", "- a", "a: b", "a #b", "'", '"', "<<", "=", "? a",
    "emoji \N{PARTY POPPER}", "back\\slash", "line\nbreak", "trailing \nblank", "tab\there", "\x85", "\u2028", "\ufeff", "0x1F",
    "a" * 300, "|", ">", "!a", "@a", "`a`", "{{", "}", "[", "]", ",", "nbsp\xa0", "\x7f", "e\u0301", "true",
]  # fmt: skip
TEXTS = st.sampled_from(ODD) | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)
NAMES = TEXTS.map(str.strip).filter(bool)
STARTS = st.sampled_from([None, "2026-01-01", "2026-03-01"])
DUES = st.sampled_from([None, "2026-02-01", "2026-02-02"])
LEVELS = ["disabled", "participating", "watch", "global", "mention", "custom"]


def settings(levels: list[str]) -> st.SearchStrategy[Plain]:
    events = st.dictionaries(st.sampled_from(EVENTS), st.booleans())
    return st.fixed_dictionaries({"level": st.sampled_from(levels), "events": events})


def approvals() -> st.SearchStrategy[Plain]:
    return st.fixed_dictionaries({name: st.booleans() for name in APPROVALS})


def projects(number: int) -> st.SearchStrategy[Plain]:
    """Draw the contents of a project of the small service; dates may contradict each other, as old ones do."""
    patterns = st.sampled_from(["", "/*", "/prod*", "2/x", "/a-b_c"]).map(lambda end: PROJECTS[number] + end)
    milestone = st.fixed_dictionaries(
        {
            "description": st.none() | TEXTS,
            "start_date": STARTS,
            "due_date": DUES,
            "state": st.sampled_from(["active", "closed"]),
        }
    )
    levels = st.sampled_from(["maintainer", "owner", "admin"])
    rule = st.fixed_dictionaries({PUSH: levels, DELETE: levels | st.none()})
    tokens = st.fixed_dictionaries(
        {"description": st.sampled_from(["a", "b", "", " "]) | TEXTS, "owner": st.sampled_from(["ada", "bob"])}
    )
    target = st.fixed_dictionaries(
        {
            "inbound_enabled": st.booleans(),
            "project_allowlist": st.lists(st.sampled_from([*PROJECTS, 999]), unique=True),
            "group_allowlist": st.lists(st.sampled_from([*GROUPS, 998]), unique=True),
        }
    )
    return st.fixed_dictionaries(
        {
            "milestones": st.dictionaries(NAMES, milestone, max_size=6).map(
                lambda found: [{**fields, "title": title} for title, fields in found.items()]
            ),
            RULES: st.dictionaries(patterns, rule).map(
                lambda found: [{**fields, "repository_path_pattern": pattern} for pattern, fields in found.items()]
            ),
            "trigger_tokens": st.lists(tokens, max_size=5),
            "job_token_scope": target,
            "merge_request_approval_settings": approvals(),
            "notification_settings": st.dictionaries(st.sampled_from(["ada", "bob"]), settings(LEVELS)),
            "container_registry_enabled": st.sampled_from([True, True, False]),
            "builds_enabled": st.sampled_from([True, True, False]),
        }
    )


LIVES = st.fixed_dictionaries(
    {
        "user": settings(LEVELS) | st.just({}),
        "email": st.sampled_from([None, "ada@example.com", "ops@example.com"]),
        "group": settings(LEVELS),
        "approvals": st.none() | approvals(),
        "projects": st.fixed_dictionaries({number: projects(number) for number in (100, 102)}),
    }
)


def service(live: Plain, dialect: str) -> Plain:
    """Return the state of the sandbox with these contents."""
    state = a_small_service(dialect)
    state["users"][1]["notification_settings"] = live["user"] | {"notification_email": live["email"]}
    state["groups"][0] |= {
        "notification_settings": {"ada": live["group"]},
        "merge_request_approval_settings": live["approvals"],
    }
    for project in state["projects"]:
        project.update(live["projects"].get(project["id"], {}))
    return state
