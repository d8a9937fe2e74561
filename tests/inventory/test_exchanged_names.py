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
    '  ~ milestone "c"                             renamed from "b"',
    '  ~ milestone "b"                             renamed from "a"',
    '  ~ trigger token "a"                         renamed from "b"',
    '  ~ trigger token "b"                         renamed from "a"',
    '  ~ approval rule "a"                         renamed from "b"',
    '  ~ approval rule "b"                         renamed from "a"',
]


WRITES = [
    ("PUT milestones/1", {"title": "reconciler-exchange-1"}),
    ("PUT milestones/3", {"title": "a"}),
    ("PUT milestones/2", {"title": "c"}),
    ("PUT milestones/1", {"title": "b"}),
    ("PUT triggers/1", {"description": "reconciler-exchange-1"}),
    ("PUT triggers/2", {"description": "a"}),
    ("PUT triggers/1", {"description": "b"}),
    ("PUT approval_rules/1", {"name": "reconciler-exchange-1"}),
    ("PUT approval_rules/2", {"name": "a"}),
    ("PUT approval_rules/1", {"name": "b"}),
]


@pytest.mark.parametrize("saved", [False, True])
def test_names_are_exchanged_over_a_spare_one_and_never_back(user: Checkout, saved: bool) -> None:
    started(user)
    declared(user, SECOND, "second")
    assert user.plan("--out ../plan.json") == (0, SHOWN)
    assert user.apply("--plan ../plan.json --quiet" if saved else "--quiet") == (0, [])
    assert writes(user) == WRITES
    for _ in range(2):
        assert user.plan() == (0, [])
        assert user.apply("--quiet") == (0, [])
    assert user.apply("--plan ../plan.json --quiet") == (0, [])
    assert writes(user) == []


@pytest.mark.parametrize("count", range(1, 4))
def test_an_apply_that_was_killed_is_finished_by_the_next_one(user: Checkout, count: int) -> None:
    started(user)
    declared(user, SECOND, "second")

    def killed(project: dict[str, Any]) -> None:
        for line, body in WRITES[:count]:
            number = int(line.rpartition("/")[2])
            next(each for each in project["milestones"] if each["id"] == number).update(body)

    user.change(killed)
    assert user.apply("--quiet") == (0, [])
    assert (writes(user), called(user)) == (WRITES[count:], {1: "b", 2: "c", 3: "a"})
    assert user.plan() == (0, [])


def test_what_the_service_refuses_is_told_and_done_by_the_next_apply(user: Checkout) -> None:
    started(user)
    declared(user, SECOND, "second")
    user.cli.sandbox.set_faults(["status=403,method=PUT,match=milestones/3"])
    code, lines = user.apply("--section milestones")
    assert (code, [line.partition(": ")[0] for line in lines]) == (
        3,
        [
            "project acme/api",
            '  ~ milestone "a"                             failed',
            '  ~ milestone "c"                             failed',
            '  ~ milestone "b"                             failed',
        ],
    )
    assert called(user) == {1: "reconciler-exchange-1", 2: "b", 3: "c"}
    user.cli.sandbox.set_faults([])
    assert user.apply("--quiet") == (0, [])
    assert called(user) == {1: "b", 2: "c", 3: "a"}
    assert user.plan() == (0, [])


WHY = (
    "exchanges its name with {}, and it is not certain which object is which: {}; leave `renamed_from` out of them, or "
    "rename one to a third name first, in a commit of its own"
)


def problems(why: str) -> list[str]:
    """Return the lines of a plan of the trigger tokens that is not certain."""
    a, b = WHY.format('"b"', why), WHY.format('"a"', why)
    return ["project acme/api", f'  ! trigger token "a": {a}', f'  ! trigger token "b": {b}']


TOKENS = FIRST.replace("{a: {}, b: {}}", "{a: {renamed_from: b}, b: {renamed_from: a}}")


def test_without_proof_it_is_a_problem_and_nothing_is_written(user: Checkout) -> None:
    started(user)
    user.declare(TOKENS)
    user.forge(lambda lines: lines.remove(next(line for line in lines if line.get("section") == "trigger_tokens")))
    assert user.plan("--section trigger_tokens") == (3, problems("not all of them are live and recorded by an apply"))
    assert user.apply("--section trigger_tokens --quiet") == (
        3,
        problems("not all of them are live and recorded by an apply"),
    )
    user.git.git("branch", "--quiet", "-D", INVENTORY_BRANCH)
    assert user.plan("--section trigger_tokens")[1][:3] == problems("not all of them are live and recorded by an apply")
    assert writes(user) == []
    # An apply that adopts nothing does not make it certain, and `accept` leaves all names as they are.
    user.commit("second")
    assert user.apply("--quiet")[0] == 3
    assert user.plan("--section trigger_tokens")[1][:3] == problems("not all of them are live and recorded by an apply")
    assert user.run("accept") == (0, ["manifests/project.yaml", "2 differences accepted; 1 file written."])
    assert user.plan() == (0, [])


def test_what_was_applied_before_it_was_committed_stays_exchanged(user: Checkout) -> None:
    started(user)
    user.declare(TOKENS)
    assert user.apply("--section trigger_tokens --quiet") == (0, [])
    user.commit("second")
    why = "the manifests that declared it were never committed"
    assert user.plan("--section trigger_tokens") == (3, problems(why))
    declared(user, FIRST, "third")
    assert user.apply("--quiet")[0] == 0
    assert called(user, "trigger_tokens") == {1: "b", 2: "a"}


def test_written_again_names_are_exchanged_again(user: Checkout) -> None:
    started(user)
    for name in ("second", "third"):
        declared(user, TOKENS, name)
        assert user.apply("--section trigger_tokens --quiet") == (0, [])
        declared(user, FIRST, f"after {name}")
        assert user.apply("--section trigger_tokens --quiet") == (0, [])
    assert called(user, "trigger_tokens") == {1: "a", 2: "b"}


def test_a_name_that_its_object_keeps_is_given_to_no_other(user: Checkout) -> None:
    started(user)
    user.change(lambda project: project["trigger_tokens"][1].update(owner="bob"))
    declared(user, TOKENS, "second")
    kept = 'cannot get its name: the object that is called "b" keeps it, since this plan does not rename it'
    whose = "the trigger token belongs to another user, and only its owner or an administrator may rename it"
    lines = ["project acme/api", f'  ! trigger token "a": {whose}', f'  ! trigger token "b": {kept}']
    assert user.plan("--section trigger_tokens") == (3, lines)
    assert user.apply("--section trigger_tokens --quiet") == (3, lines)
    assert writes(user) == []


def test_one_of_them_that_is_gone_is_created_under_no_name_that_is_in_doubt(user: Checkout) -> None:
    started(user)
    declared(user, TOKENS, "second")
    user.change(lambda project: project["trigger_tokens"].pop())
    assert user.plan("--section trigger_tokens") == (3, problems("not all of them are live and recorded by an apply"))
    user.change(lambda project: project["trigger_tokens"].pop())
    assert user.plan("--section trigger_tokens")[1][2:4] == [
        '  + trigger token "a"                         nothing named "b" to rename, loosens',
        '  + trigger token "b"                         nothing named "a" to rename, loosens',
    ]


def test_a_revert_exchanges_them_back(user: Checkout) -> None:
    started(user)
    declared(user, SECOND, "second")
    assert user.apply("--quiet") == (0, [])
    user.cli.sandbox.clear_log()
    assert user.run("revert --last --yes --quiet")[0] == 0
    assert [line for line, _ in writes(user)] == [
        f"PUT {path}" for path in ("milestones/2", "milestones/3", "milestones/1", "milestones/2")
    ] + [f"PUT {section}/{number}" for section in ("triggers", "approval_rules") for number in (1, 2, 1)]
    assert called(user) == {1: "a", 2: "b", 3: "c"}
    # The manifests still declare it.
    assert user.plan() == (0, SHOWN)


def test_accept_keeps_their_names_and_takes_the_fields_over(user: Checkout) -> None:
    started(user)
    user.write("manifests/project.yaml", HEAD + EXCHANGED_LINES)
    user.commit("second")
    assert user.run("accept") == (0, ["manifests/project.yaml", "2 differences accepted; 1 file written."])
    text = (user.git.folder / "manifests/project.yaml").read_text()
    assert text == HEAD + EXCHANGED_LINES.replace("second, renamed_from: b", "first").replace(
        "first, renamed_from: a", "second"
    )
    assert user.plan() == (0, [])


HEAD = "apiVersion: reconciler/v1\nkind: Project\nmetadata: {path: acme/api}\n"

EXCHANGED_LINES = """spec:
  trigger_tokens: {a: {}, b: {}}
  approval_rules: {a: {approvals_required: 1, users: [ada]}, b: {approvals_required: 2, users: [ada, bob]}}
  milestones:
    a: {description: second, renamed_from: b}
    # The one that goes first.
    b: {description: first, renamed_from: a}
    c: {}
"""
