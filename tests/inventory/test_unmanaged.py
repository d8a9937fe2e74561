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
