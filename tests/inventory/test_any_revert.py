"""Any apply is reverted, whenever the revert is killed: the same command finishes it, and all is as before the apply."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from reconciler.memory.store import INVENTORY_BRANCH
from tests.inventory.checkout import Checkout
from tests.inventory.killing import Killed, mortal
from tests.states import a_small_service
from tests.trust.all_writes import essence

pytestmark = pytest.mark.untraced

Spec = dict[str, Any]

PRUNED = ["milestones", "trigger_tokens", "job_token_scope", "container_repository_protection_rules"]
LEVELS = st.sampled_from(["maintainer", "owner", "admin"])

milestones = st.fixed_dictionaries(
    {"state": st.sampled_from(["active", "closed"]), "description": st.sampled_from(["", "x", "y"])}
)
specs = st.fixed_dictionaries(
    {
        "milestones": st.dictionaries(st.sampled_from("abc"), milestones),
        "trigger_tokens": st.dictionaries(st.sampled_from("tu"), st.just({})),
        "job_token_scope": st.fixed_dictionaries(
            {
                "enabled": st.booleans(),
                "projects": st.lists(st.sampled_from(["acme/lib", "acme/web"]), unique=True),
                "groups": st.lists(st.just("acme/tools"), max_size=1),
            }
        ),
        "container_repository_protection_rules": st.dictionaries(
            st.sampled_from(["acme/api/x*", "acme/api/y*"]),
            st.fixed_dictionaries({"minimum_access_level_for_push": LEVELS, "minimum_access_level_for_delete": LEVELS}),
        ),
        "notification_settings": st.fixed_dictionaries({"level": st.sampled_from(["watch", "mention"])}),
        "approval_settings": st.fixed_dictionaries({"allow_author_approval": st.booleans()}),
    }
)


def renamed(spec: Spec, before: Spec) -> Spec:
    """Return a spec in which a milestone that is new has the name of one that is gone for its former name."""
    gone = sorted(before["milestones"].keys() - spec["milestones"].keys())
    new = sorted(spec["milestones"].keys() - before["milestones"].keys())
    items = {title: dict(item) for title, item in spec["milestones"].items()}
    for title, old in zip(new, gone, strict=False):
        items[title]["renamed_from"] = old
    return spec | {"milestones": items}


@settings(
    deadline=None,
    derandomize=True,
    max_examples=8,
    suppress_health_check=[*HealthCheck],
    phases=[Phase.explicit, Phase.generate],
)
@given(
    dialect=st.sampled_from(["spec", "deployed"]),
    first=specs,
    second=specs,
    renames=st.booleans(),
    kill=st.integers(1, 8),
    before=st.booleans(),
)
def test_a_revert_that_is_killed_anywhere_is_finished_by_the_same_command(
    user: Checkout,
    monkeypatch: pytest.MonkeyPatch,
    *,
    dialect: str,
    first: Spec,
    second: Spec,
    renames: bool,
    kill: int,
    before: bool,
) -> None:
    user.cli.sandbox.replace_state(a_small_service(dialect))
    if user.inventory():
        user.git.git("update-ref", "-d", f"refs/heads/{INVENTORY_BRANCH}")
    more = "--allow-deletes 99 --tokens-to ../tokens --concurrency 1"
    for spec in (first, renamed(second, first) if renames else second):
        user.declare(json.dumps({"prune": PRUNED, **spec}))
        user.git.git("add", "--all")
        user.git.git("commit", "--quiet", "--allow-empty", "--message", "next")
        state = user.cli.sandbox.state()
        assert user.apply(more)[0] == 0
    revert = f"revert --last --yes {more}"
    with mortal(monkeypatch, kill, before=before), suppress(Killed):
        user.run(revert)
    done = user.run(revert)
    assert done[0] == 0, done
    assert essence(user.cli.sandbox.state()) == essence(state)
    assert user.run("revert --last --detailed-exitcode")[0] == 0
