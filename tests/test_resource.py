"""The fields of resources that say how, not what."""

from datetime import timedelta

import pytest
from pydantic import ValidationError

from reconciler.model.diff import fields_of
from reconciler.model.resource import Resource, Rotated, name_shown, recognized
from reconciler.model.targets import Level
from tests.building import KINDS


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("90d", timedelta(days=90)),
        ("0090d", timedelta(days=90)),
        ("12h", timedelta(hours=12)),
        ("5m", timedelta(minutes=5)),
        ("36500d", timedelta(days=36500)),
        (timedelta(days=1), timedelta(days=1)),
        (None, None),
    ],
)
def test_an_age_is_a_number_and_a_unit(text: object, time: timedelta | None) -> None:
    assert Rotated.model_validate({"rotate_after": text}).rotate_after == time


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        *(
            (wrong, "a duration is a number followed by d, h or m, such as 90d")
            for wrong in [
                "",
                "d",
                "90",
                "-1d",
                "1.5d",
                "90 d",
                "90s",
                "90w",
                "\N{ARABIC-INDIC DIGIT NINE}d",
                90,
                ["90d"],
            ]
        ),
        ("0d", "an age is more than nothing, such as 90d"),
        *((wrong, "a duration is at most 36500d") for wrong in ["36501d", "9999999999d", "9" * 5000 + "m"]),
    ],
)
def test_what_is_no_age_is_refused(wrong: object, said: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Rotated.model_validate({"rotate_after": wrong})
    assert said in str(caught.value)


def test_former_names_are_one_or_many() -> None:
    assert Rotated.model_validate({"renamed_from": "a"}).renamed_from == ("a",)
    assert Rotated.model_validate({"renamed_from": ["a", "b"]}).renamed_from == ("a", "b")


def test_a_resource_without_rules_contradicts_nothing_and_leaves_no_doubt() -> None:
    assert [*Resource().errors(), *Resource().warnings()] == []


def test_an_unknown_value_hides_neither_its_neighbours_nor_other_fields() -> None:
    model = KINDS["notification_settings"].models[Level.PROJECT]
    assert isinstance(model, type)
    assert issubclass(model, Resource)
    resource, unknown = recognized(model, {"level": "custom", "events": {"new_note": True, "new_issue": "often"}})
    assert dict(fields_of(resource)) == {"level": "custom", "events.new_note": True}
    assert unknown == {"events.new_issue": "often"}
    resource, unknown = recognized(model, {"level": ["loud"], "events": {}})
    assert (dict(fields_of(resource)), unknown) == ({}, {"level": "a list"})


@pytest.mark.parametrize("name", [None, 1.5, ["a"], {}], ids=repr)
def test_what_is_neither_text_nor_a_number_names_nothing(name: object) -> None:
    with pytest.raises(TypeError):
        name_shown(name)
