"""The life of a SCIM identity of a group, which begins and goes on elsewhere."""

import re
from typing import Any

import pytest

from reconciler.document.stored import load_plan, save
from reconciler.errors import PlanRefused, Refused
from reconciler.kinds.scim_identities import IDENTITIES
from reconciler.model.protocols import Request
from tests.building import ACME, KINDS, section
from tests.engine_driver import EngineDriver, failures
from tests.kinds.out_of_band import group_in, rewriting
from tests.render.samples import saved_plan, spoilt, tree

URL = "groups/acme/scim"


def wanted(value: object, *, prune: bool = False) -> Any:
    return section("scim_identities", value, ACME, prune=prune)


@pytest.fixture
def linked(engine: EngineDriver) -> EngineDriver:
    """A group with three identities."""
    with rewriting(engine) as state:
        group_in(state)["scim_identities"] = [
            {"user_id": 1, "extern_uid": "root@idp"},
            {"user_id": 2, "extern_uid": "00U2"},
            {"user_id": 3, "extern_uid": "00u7", "active": False},
        ]
    return engine


def test_the_life_of_an_identity(linked: EngineDriver) -> None:
    assert linked.step(wanted({"00u2": {}, "ada@idp": {"renamed_from": "00u7"}})) == [
        f'PATCH {URL}/00u7 {{"extern_uid": "ada@idp"}}'
    ]
    assert linked.step(wanted({"ROOT@IDP": None})) == [f"DELETE {URL}/root%40idp"]
    assert linked.step(wanted({"00u2": {}}, prune=True)) == [f"DELETE {URL}/ada%40idp"]


def test_a_missing_one_is_a_problem_that_says_who_creates_it(linked: EngineDriver) -> None:
    assert (
        linked.problems(wanted({"00u9": {}, "00u8": {"renamed_from": "00u6"}}))
        == [
            "SCIM identity.None: does not exist, and this API cannot create one: provision the user with the identity "
            "provider, or leave the identity out"
        ]
        * 2
    )
    assert linked.changes(wanted({"00u9": {}})) == []


def test_a_uid_that_was_taken_meanwhile_is_told_in_the_services_words(linked: EngineDriver) -> None:
    plan = linked.plan(wanted({"new": {"renamed_from": "00u7"}, "gone": {"renamed_from": "00U2"}}))
    with rewriting(linked) as state:
        identities = group_in(state)["scim_identities"]
        identities[0]["extern_uid"] = "NEW"
        del identities[1]
    assert failures(linked.apply(plan)) == [
        f"failed: SCIM identity gone: PATCH {URL}/00U2: 404 Identity Not Found",
        f"failed: SCIM identity new: PATCH {URL}/00u7: 400 Extern uid has already been taken",
    ]


def test_a_blank_uid_is_refused(linked: EngineDriver) -> None:
    with pytest.raises(Refused, match="Extern uid can't be blank"):
        linked.client.send(Request("PATCH", f"{URL}/00u7", {"extern_uid": " "}))


@pytest.mark.parametrize("uid", ["", ".", ".."])
def test_a_uid_that_would_lead_elsewhere_cannot_be_read(uid: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(uid)}$"):
        IDENTITIES.read(ACME, {"extern_uid": uid, "user_id": 1})


@pytest.mark.untraced
@pytest.mark.parametrize("step", ["..", "%2e%2E", ".", "..%2e/x"])
def test_a_saved_plan_that_leads_elsewhere_is_refused(linked: EngineDriver, step: str) -> None:
    text = save(saved_plan(linked.plan(wanted({"root@idp": None}))))
    assert [change.requests[0].path for change in tree(load_plan(text, KINDS)).changes] == [f"{URL}/root%40idp"]

    def edit(plan: dict[str, Any]) -> None:
        plan["items"][0]["requests"][0]["path"] = f"{URL}/{step}"

    with pytest.raises(PlanRefused, match="does not lead to SCIM identity"):
        load_plan(spoilt(text, edit), KINDS)
