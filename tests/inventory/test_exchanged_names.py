"""Items that exchange their names in one commit: the inventory knows which object is which, and names do not."""

from typing import Any

import pytest

from reconciler.memory.store import INVENTORY_BRANCH
from tests.inventory.checkout import Checkout
from tests.inventory.test_renamed_by_hand import NAMES

FIRST = """{
  milestones: {a: {description: first}, b: {description: second}, c: {}},
  trigger_tokens: {a: {}, b: {}},
  approval_rules: {a: {approvals_required: 1, users: [ada]}, b: {approvals_required: 2, users: [ada, bob]}}
}"""

SECOND = """{
  milestones: {a: {renamed_from: c}, b: {description: first, renamed_from: a}, c: {renamed_from: b}},
  trigger_tokens: {a: {renamed_from: b}, b: {renamed_from: a}},
  approval_rules: {
    a: {approvals_required: 2, users: [ada, bob], renamed_from: b},
    b: {approvals_required: 1, users: [ada], renamed_from: a}
  }
}"""


def declared(user: Checkout, spec: str, name: str) -> None:
    user.declare(spec)
    user.commit(name)


def started(user: Checkout) -> Checkout:
    """Declare some objects, and apply them."""
    members = [{"user": "ada", "role": "maintainer"}, {"user": "bob", "role": "maintainer"}]
    user.change(lambda project: project.update(members=members))
    declared(user, FIRST, "first")
    assert user.apply("--tokens-to ../tokens.jsonl --quiet")[0] == 0
    user.cli.sandbox.clear_log()
    return user


def called(user: Checkout, section: str = "milestones") -> dict[int, str]:
    """Return the names of a section's objects, by ID."""
    return {item["id"]: item[NAMES[section]] for item in user.cli.sandbox.state()["projects"][0][section]}


def writes(user: Checkout) -> list[tuple[str, Any]]:
    """Return the writes that the service was asked for, and forget them."""
    log = [
        (f"{entry['method']} {entry['target'].removeprefix('/api/v4/projects/acme%2Fapi/')}", entry["body"])
        for entry in user.cli.sandbox.log()
        if entry["method"] != "GET"
    ]
    user.cli.sandbox.clear_log()
    return log


SHOWN = [
    "project acme/api",
    '  ~ milestone "a"                             renamed from "c"',
    '  ~ milestone "b"                             renamed from "a"',
    '  ~ milestone "c"                             renamed from "b"',
    '  ~ trigger token "a"                         renamed from "b"',
    '  ~ trigger token "b"                         renamed from "a"',
    '  ~ approval rule "a"                         renamed from "b"',
    '  ~ approval rule "b"                         renamed from "a"',
]


@pytest.mark.parametrize("saved", [False, True])
def test_names_are_exchanged_over_a_spare_one_and_never_back(user: Checkout, saved: bool) -> None:
    started(user)
    declared(user, SECOND, "second")
    assert user.plan("--out ../plan.json") == (0, SHOWN)
    assert user.apply("--plan ../plan.json --quiet" if saved else "--quiet") == (0, [])
    assert writes(user) == []
    for _ in range(2):
        assert user.plan() == (0, [])
        assert user.apply("--quiet") == (0, [])
    assert writes(user) == []
