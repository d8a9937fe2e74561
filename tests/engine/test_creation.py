"""What changes need that this run creates."""

from reconciler.engine.compare.creation import needs
from reconciler.model.item import Create
from reconciler.model.protocols import Request
from reconciler.model.targets import Address
from tests.building import API, LIB
from tests.render.creations import TEAM, TOOLS, creations


def test_a_change_needs_its_target_the_groups_above_and_what_it_refers_to() -> None:
    team, tools, api, _, allowed, *_ = creations().changes
    assert [set(needs(each)) for each in (team, tools, api)] == [
        {"group acme"},
        {"group acme", str(TEAM)},
        {"group acme", str(TEAM)},
    ]
    assert str(TOOLS) not in {*needs(allowed)}
    assert [*needs(allowed)] == [
        *("project acme/new-team/api", "group acme/new-team", "group acme"),
        *("project acme/new-team/web", "group acme/new-team", "group acme"),
    ]
    deep = Request("POST", f"{API.url}things", {"ids": [7, {"id_of": "project ACME/Lib"}], "name": "x"})
    change = Create(Address(API, "things", "things", "thing", "x"), {}, (deep,))
    assert [*needs(change)] == ["project acme/api", "group acme", str(LIB), "group acme"]
