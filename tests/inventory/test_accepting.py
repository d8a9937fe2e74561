"""What `accept` does with objects that the plan deletes because they are no longer declared."""

import pytest

from tests.inventory.checkout import Checkout
from tests.states import a_small_service

SHARED = """apiVersion: reconciler/v1
kind: Profile
metadata: {name: baseline}
spec: {milestones: {MILESTONES}}
---
apiVersion: reconciler/v1
kind: ProjectSet
metadata: {name: all, profiles: [baseline]}
select: {projects: [acme/api, acme/lib]}
"""
LISTS = "{projects: [acme/lib], groups: []}"


@pytest.mark.untraced
def test_what_would_be_deleted_is_declared_again(user: Checkout) -> None:
    user.declare(f"{{milestones: {{a: {{}}, b: {{}}}}, job_token_scope: {LISTS}, trigger_tokens: {{}}}}")
    user.commit("first")
    assert user.apply()[0] == 0
    user.declare("{milestones: {a: {}}, job_token_scope: {projects: [], groups: []}, trigger_tokens: {}}")
    user.commit("second")
    assert user.plan("--detailed-exitcode") == (
        2,
        [
            "project acme/api",
            '  - allowlisted project "acme/lib"            tightens     removed from the manifests since <first>',
            '  - milestone "b"     removed from the manifests since <first>',
        ],
    )
    assert user.run("accept") == (0, ["manifests/project.yaml", "2 differences accepted; 1 file written."])
    assert user.plan("--detailed-exitcode") == (0, [])
    assert (user.cli.folder / "manifests/project.yaml").read_text() == (
        "apiVersion: reconciler/v1\n"
        "kind: Project\n"
        "metadata: {path: acme/api}\n"
        "spec: {milestones: {a: {}, b: {}}, job_token_scope: {projects: [acme/lib], groups: []}, trigger_tokens: {}}\n"
    )


@pytest.mark.untraced
def test_what_all_targets_of_a_profile_would_lose_goes_back_into_it(user: Checkout) -> None:
    user.cli.sandbox.replace_state(a_small_service("deployed"))
    user.write("manifests/shared.yaml", SHARED.replace("MILESTONES", "a: {}"))
    user.commit("first")
    assert user.apply()[0] == 0
    user.write("manifests/shared.yaml", SHARED.replace("MILESTONES", ""))
    user.commit("second")
    assert user.run("accept --target acme/api") == (
        0,
        ["manifests/acme/api.yaml", "1 difference accepted; 1 file written."],
    )
    (user.cli.folder / "manifests/acme/api.yaml").unlink()
    assert user.run("accept") == (0, ["manifests/shared.yaml", "2 differences accepted; 1 file written."])
    assert (user.cli.folder / "manifests/shared.yaml").read_text() == SHARED.replace("MILESTONES", "a: {}")
    assert user.plan("--detailed-exitcode") == (0, [])


@pytest.mark.untraced
def test_an_exception_keeps_what_would_be_deleted(user: Checkout) -> None:
    user.milestones("a", "b")
    user.commit("first")
    assert user.apply()[0] == 0
    user.milestones("a")
    user.commit("second")
    code, _ = user.run("accept --until 2099-01-01 --reason OPS-12")
    assert (code, user.plan("--detailed-exitcode")[0], user.live()) == (0, 0, ["a", "b"])


@pytest.mark.untraced
def test_without_the_list_nothing_is_said_to_be_in_order(clone: Checkout) -> None:
    clone.milestones("a")
    clone.commit("first")
    assert clone.apply()[0] == 0
    clone.remote.rename(clone.remote.with_name("elsewhere.git"))
    code, said = clone.run("accept")
    assert (code, said[-1]) == (3, "0 differences accepted; 0 files written.")
    assert said[0].startswith("not accepted: instance: the inventory cannot be read: ")
    assert clone.run("accept --no-inventory") == (0, ["0 differences accepted; 0 files written."])
