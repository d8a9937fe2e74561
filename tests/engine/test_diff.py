"""Comparing resources."""

from typing import Any

import pytest

from reconciler.document.wording import details
from reconciler.kinds.milestones import Milestone
from reconciler.kinds.notification_settings import NotificationSettings
from reconciler.model.diff import AsRead, as_read, become, differences, fields_of, moved, without
from reconciler.model.item import Update
from reconciler.model.resource import LiveRecord
from tests.building import API


def test_fields_are_json_with_mapping_fields_taken_apart() -> None:
    settings = NotificationSettings.model_validate({"level": "custom", "events": {"new_issue": None, "new_note": True}})
    assert fields_of(settings) == {"level": "custom", "events.new_issue": False, "events.new_note": True}
    milestone = Milestone.model_validate({"due_date": "2026-12-31", "renamed_from": "old"})
    assert fields_of(milestone) == {"due_date": "2026-12-31"}


def test_what_is_not_shown_differs_from_whatever_is_wanted() -> None:
    found = NotificationSettings.model_validate({"level": "watch"})
    wanted = NotificationSettings.model_validate({"level": "watch", "events": {"new_note": False}})
    assert differences(wanted, LiveRecord(found)) == ({"events.new_note": None}, {"events.new_note": False})


def test_fields_can_be_left_out_of_what_is_wanted() -> None:
    events = {"new_issue": True, "new_note": True}
    wanted = NotificationSettings.model_validate({"level": "custom", "events": events})
    assert without(wanted, {}) is wanted
    assert fields_of(without(wanted, {"events.new_issue", "level"})) == {"events.new_note": True}
    assert without(wanted, {"events.new_issue", "events.new_note"}).model_fields_set == {"level"}


def test_what_an_object_becomes_has_all_its_fields() -> None:
    found = Milestone.model_validate({"start_date": "2026-01-01", "state": "closed"})
    wanted = Milestone.model_validate({"due_date": "2026-02-01"})
    assert fields_of(become(found, wanted)) == {
        "description": None,
        "start_date": "2026-01-01",
        "due_date": "2026-02-01",
        "state": "closed",
    }


def test_it_is_told_what_of_an_object_has_moved() -> None:
    one = as_read(LiveRecord(Milestone.model_validate({"state": "active", "description": "a" * 60}), ("a", 1), 1))
    others = {
        "state: active -> closed": LiveRecord(
            Milestone.model_validate({"state": "closed", "description": "a" * 60}), ("a", 1), 1
        ),
        "object name: a -> b": LiveRecord(
            Milestone.model_validate({"state": "active", "description": "a" * 60}), ("b", 1), 1
        ),
        "ID: 1 -> 2": LiveRecord(Milestone.model_validate({"state": "active", "description": "a" * 60}), ("a", 1), 2),
    }
    assert moved(one, one) == ""
    assert {moved(one, as_read(found)): found for found in others.values()} == others
    long = as_read(LiveRecord(Milestone.model_validate({"description": "b"}), ("a", 1), 1, read_only={"state": "why"}))
    assert moved(one, long) == (f"description: {'a' * 60} -> b, state: active -> none, read-only.state: none -> why")
    null, absent = AsRead(1, ("a",), {"state": None}, {}), AsRead(1, ("a",), {}, {})
    assert {moved(null, absent), moved(absent, null)} == {"state: none -> none"}, "whatever differs is no empty text"


@pytest.mark.parametrize(
    ("field", "before", "after", "words"),
    [
        ("domains", ["ada", "bob", "cyd"], ["bob", "cyd"], "- ada"),
        (
            "allowed_to_push",
            ["developer", {"user": "ada"}],
            [{"user": "ada"}, {"deploy_key": "release"}],
            "+ deploy key release, - developer",
        ),
        ("allowed_to_push", [], ["maintainer", {"group": "acme/leads"}], "nobody -> maintainer, group acme/leads"),
        ("allowed_to_push", ["developer"], [], "developer -> nobody"),
        ("labels", ["bug"], [], "bug -> none"),
    ],
)
def test_lists_are_compared_as_sets(field: str, before: list[Any], after: list[Any], words: str) -> None:
    def read(value: list[Any]) -> AsRead:
        return AsRead(1, ("x",), {field: value, "flag": True}, {})

    assert moved(read(before), read(after)) == f"{field}: {words}"
    change = Update(API.address, {field: before}, {field: after}, (), read(before))
    assert [*details(change)] == [f"{field}: {words}"]


def test_what_holds_values_by_key_is_compared_by_key() -> None:
    change = Update(
        API.address, {"nested": {"a": 1, "b": 2}}, {"nested": {"a": 1, "b": 3}}, (), AsRead(1, ("x",), {}, {})
    )
    assert [*details(change)] == ["nested.b: 2 -> 3"]
