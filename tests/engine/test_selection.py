"""Narrowing a run."""

import pytest

from reconciler.engine.compare.selection import RunSelection, select
from reconciler.engine.rules import without_unlisted
from reconciler.manifests import UnlistedSet
from reconciler.manifests.documents import Selection as ByGroup
from reconciler.model.creation import Creation
from reconciler.model.globs import Globs
from reconciler.model.obstacle import Obstacle
from reconciler.model.state import DesiredState, DesiredTarget
from reconciler.model.targets import Level, Target
from tests.building import ACME, API, USER, section

NUMBERED = Target(Level.PROJECT, 12)
STATE = DesiredState(
    (
        DesiredTarget(USER, ()),
        DesiredTarget(ACME, (), labels={"team": "core"}),
        DesiredTarget(
            API, (section("milestones", {}), section("trigger_tokens", {})), labels={"team": "pay", "tier": "1"}
        ),
        DesiredTarget(NUMBERED, (section("milestones", {}, NUMBERED),)),
    ),
    "digest",
)


def selected(**given: object) -> list[str]:
    state = select(STATE, RunSelection(**given))  # type: ignore[arg-type]  # the tests give what each field takes
    return [f"{target.target}: {[each.kind for each in target.sections]}" for target in state.targets]


EVERYTHING = [
    "user: []",
    "group acme: []",
    "project acme/api: ['milestones', 'trigger_tokens']",
    "project 12: ['milestones']",
]


def test_without_a_selection_everything_is_selected() -> None:
    assert selected() == EVERYTHING


def test_targets_are_selected_by_globs_whatever_their_case() -> None:
    assert selected(targets=Globs(("ACME/*", "12"))) == EVERYTHING[2:]
    assert selected(targets=Globs(("user",))) == EVERYTHING[:1]


def test_what_is_excluded_is_left_out_of_what_is_selected() -> None:
    assert selected(excluded=Globs(("Acme/**", "user"))) == EVERYTHING[3:]
    assert selected(targets=Globs(("acme/*", "12")), excluded=Globs(("12",))) == EVERYTHING[2:3]


def test_all_labels_must_match() -> None:
    assert selected(labels=(("team", "pay"), ("tier", "1"))) == EVERYTHING[2:3]


def test_sections_are_selected_by_name() -> None:
    assert selected(targets=Globs(("acme/api",)), sections=("milestones",)) == ["project acme/api: ['milestones']"]


NEW = DesiredState(
    (
        DesiredTarget(ACME, (), creation=Creation("acme")),
        DesiredTarget(API, (section("milestones", {}),), creation=Creation("api")),
    ),
    "digest",
)


@pytest.mark.parametrize(
    ("selection", "created"),
    [
        (RunSelection(), ["group acme", "project acme/api"]),
        (RunSelection(sections=("milestones",)), ["project acme/api"]),
        (RunSelection(only={(API, ""), (API, "milestones")}), ["project acme/api"]),
        (RunSelection(only={(ACME, ""), (API, "milestones")}), ["group acme"]),
        (
            RunSelection(sections=("milestones",), only={(ACME, ""), (API, ""), (API, "milestones")}),
            ["project acme/api"],
        ),
    ],
)
def test_a_target_is_created_if_it_has_a_selected_section_or_its_creation_is_tried_again(
    selection: RunSelection, created: list[str]
) -> None:
    assert [str(each.target) for each in select(NEW, selection).targets if each.creation] == created


def test_a_creation_alone_is_tried_again() -> None:
    assert select(NEW, RunSelection(only={(ACME, "")})).targets == NEW.targets[:1]


def test_nothing_is_created_whose_sets_are_unknown() -> None:
    selected_by = UnlistedSet(Obstacle(ACME.address, "HTTP 403"), "sets.yaml:4", (), ByGroup(group="acme"))
    held = without_unlisted(NEW, [selected_by])
    assert [(str(each.target), each.creation is None) for each in held.targets] == [
        ("group acme", False),
        ("project acme/api", True),
    ]
