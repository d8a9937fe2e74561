"""A section that a document leaves alone: its objects are released, and no later plan deletes them."""

import pytest

from tests.inventory.checkout import Checkout

PROFILE = """\
apiVersion: reconciler/v1
kind: Profile
metadata: {name: base}
spec: {milestones: {a: {}, b: {}}}
"""


@pytest.mark.untraced
def test_objects_of_an_unmanaged_section_are_released_by_the_next_apply_and_stay(user: Checkout) -> None:
    user.write("manifests/base.yaml", PROFILE)
    user.declare("{trigger_tokens: {nightly: {}}}", more=", profiles: [base]")
    user.commit("first")
    assert user.apply("--tokens-to tokens")[0] == 0
    assert user.listed() == ["project 100 a <first>", "project 100 b <first>", "project 100 nightly <first>"]
    user.declare("{unmanaged: [milestones], trigger_tokens: {nightly: {}}}", more=", profiles: [base]")
    user.write("manifests/base.yaml", PROFILE.replace("b: {}", "c: {}"))
    user.commit("second")
    left = ["milestones of 1 project is unmanaged; its 2 objects stay"]
    assert user.plan() == (0, left)
    assert user.plan("--since applied") == (0, left)
    assert user.apply() == (0, left)
    assert (user.live(), user.listed()) == (["a", "b"], ["project 100 nightly <first>"])
    assert (user.plan(), user.plan("--since applied")) == ((0, []), (0, []))
    user.declare("{trigger_tokens: {nightly: {}}}", more=", profiles: [base]")
    user.commit("third")
    assert user.plan() == (0, ["project acme/api", '  + milestone "c"'])


def test_a_saved_plan_releases_too_and_a_document_of_nothing_else_has_not_left(user: Checkout) -> None:
    user.milestones("a", "b")
    user.commit("first")
    assert user.apply()[0] == 0
    user.declare("{unmanaged: all}")
    user.commit("second")
    assert user.plan("--out ../plan.json") == (0, ["milestones of 1 project is unmanaged; its 2 objects stay"])
    assert user.run("apply --yes --plan ../plan.json") == (
        0,
        ["milestones of 1 project is unmanaged; its 2 objects stay"],
    )
    assert (user.live(), user.listed()) == (["a", "b"], [])
    user.milestones("a")
    user.commit("third")
    assert (user.apply(), user.live()) == ((0, []), ["a", "b"])


PRUNING = """\
apiVersion: reconciler/v1
kind: Profile
metadata: {name: base}
spec: {prune: [trigger_tokens], milestones: {a: {}, b: {}}, trigger_tokens: {nightly: {}}}
"""


def test_single_objects_are_released_by_the_next_apply_and_stay_while_they_are_named(user: Checkout) -> None:
    user.write("manifests/base.yaml", PRUNING)
    user.declare("{milestones: {c: {}}, trigger_tokens: {own: {}}}", more=", profiles: [base]")
    user.commit("first")
    assert user.apply("--tokens-to tokens")[0] == 0
    names = ["a", "b", "c", "nightly", "own"]
    assert user.listed() == [f"project 100 {name} <first>" for name in names]
    user.declare("{unmanaged: [{milestones: [b, c], trigger_tokens: [own]}]}", more=", profiles: [base]")
    user.commit("second")
    left = [
        "1 object in milestones of 1 project is unmanaged, and stays; the next apply forgets it",
        "1 object in milestones of 1 project is unmanaged, and stays as long as `unmanaged` names it",
        "1 object in trigger_tokens of 1 project is unmanaged, and stays as long as `unmanaged` names it",
    ]
    assert user.plan() == (0, left)
    assert user.plan("--since applied") == (0, left)
    assert user.apply() == (0, left)
    assert user.listed() == ["project 100 a <first>", "project 100 nightly <first>"]
    assert (user.plan(), user.plan("--since applied")) == ((0, []), (0, []))
    user.declare("{}", more=", profiles: [base]")
    user.commit("third")
    assert user.plan() == (0, ["project acme/api", '  - trigger token "own"                       tightens'])
    user.write("manifests/base.yaml", PRUNING.replace("a: {}, b: {}", "a: {}"))
    user.declare("{trigger_tokens: {own: {}}}", more=", profiles: [base]")
    user.commit("fourth")
    assert user.plan() == (0, [])
    assert (user.apply(), user.live()) == ((0, []), ["a", "b", "c"])


def test_an_entry_of_an_allowlist_is_the_same_by_path_and_by_number(user: Checkout) -> None:
    base = PRUNING.partition("spec:")[0] + "spec: {job_token_scope: {projects: [101, acme/web], groups: [acme]}}\n"
    user.write("manifests/base.yaml", base)
    user.declare("{}", more=", profiles: [base]")
    user.commit("first")
    assert user.apply()[0] == 0
    assert len(user.listed()) == 3
    entries = "{projects: [Acme/Lib, 102]}"
    user.declare(f"{{unmanaged: [{{job_token_scope: {entries}}}]}}", more=", profiles: [base]")
    user.commit("second")
    left = ["2 objects in job_token_scope.projects of 1 project are unmanaged, and stay; the next apply forgets them"]
    assert user.plan() == (0, left)
    assert user.apply() == (0, left)
    assert [line.rpartition(" ")[0] for line in user.listed()] == ["project 100 acme"]
    user.write("manifests/base.yaml", base.replace("101, acme/web", ""))
    user.commit("third")
    assert user.plan() == (0, [])
    user.write(
        "manifests/base.yaml", base.replace("101, acme/web", "").replace("{job", "{prune: [job_token_scope], job")
    )
    user.commit("fourth")
    assert user.plan() == (0, [])
    user.declare("{}", more=", profiles: [base]")
    assert user.plan() == (
        0,
        [
            "project acme/api",
            '  - allowlisted project "acme/lib"            tightens',
            '  - allowlisted project "acme/web"            tightens',
        ],
    )
