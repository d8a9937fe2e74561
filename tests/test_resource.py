"""The fields of resources that say how, not what."""

from datetime import timedelta

import pytest
from pydantic import ValidationError

from reconciler.resource import Resource, Rotated


@pytest.mark.parametrize(
    ("text", "time"),
    [("90d", timedelta(days=90)), ("12h", timedelta(hours=12)), ("5m", timedelta(minutes=5)), (None, None)],
)
def test_a_time_is_a_number_and_a_unit(text: str | None, time: timedelta | None) -> None:
    assert Rotated.model_validate({"rotate_after": text}).rotate_after == time


@pytest.mark.parametrize("wrong", ["", "d", "90", "0d", "-1d", "1.5d", "90 d", "90w", 90, ["90d"]])
def test_what_is_no_time_is_refused(wrong: object) -> None:
    with pytest.raises(ValidationError):
        Rotated.model_validate({"rotate_after": wrong})


def test_former_names_are_one_or_many() -> None:
    assert Rotated.model_validate({"renamed_from": "a"}).renamed_from == ("a",)
    assert Rotated.model_validate({"renamed_from": ["a", "b"]}).renamed_from == ("a", "b")


def test_a_resource_without_rules_contradicts_nothing_and_leaves_no_doubt() -> None:
    assert [*Resource().contradictions(), *Resource().doubts()] == []
