"""What authors of kinds are told by `check_kind` where their kind, its example or its route is not right."""

from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import pytest

from reconciler.kinds import milestones, protected_tags
from reconciler.kinds.milestones import MILESTONES, Milestone
from reconciler.model.direction import FEWER, TRUE, Direction, Directions
from reconciler.model.endpoints import Collection, Existing, Names, Requests
from reconciler.model.kind import Kind, Role
from reconciler.model.protocols import Request
from reconciler.model.resource import Item
from reconciler.model.targets import Level
from reconciler.sandbox.routes import milestones as route
from reconciler.sandbox.routes import protected_tags as protected_tags_route
from reconciler.testing import check_kind

EXAMPLE = """
apiVersion: reconciler/v1
kind: Project
metadata: {path: acme/api}
spec:
  milestones:
    "1.0": {description: first, due_date: 2026-12-31}
"""


KIND = replace(milestones.KIND, models={Level.PROJECT: dict[str, Milestone | None]})


class Directed(Milestone):
    """A milestone with a direction for a field that no manifest has."""

    directions: ClassVar[Directions] = {"secrecy": TRUE, "renamed_from": FEWER}


class Later(Milestone):
    """A milestone whose day is never as strict as itself."""

    directions: ClassVar[Directions] = {"due_date": Direction(lambda this, that: this > that)}


class Bare(Item):
    """An item whose field nobody explains."""

    state: str = "active"


def with_part(**changes: Any) -> Kind:
    return replace(KIND, parts=(replace(MILESTONES, **changes),))


def with_writes(**changes: Any) -> Kind:
    return with_part(writes=replace(MILESTONES.writes, **changes))


def update_of_nothing(old: Existing) -> Requests:
    return (old.send({"description": old.found.resource.model_dump()["description"]}),)


def update_without_nulls(old: Existing) -> Requests:
    return (old.send({name: value for name, value in old.fields.items() if value is not None}),)


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    file = tmp_path / "milestones.yaml"
    file.write_text(EXAMPLE)
    return file


@pytest.mark.untraced
def test_a_kind_that_is_right_passes_in_a_service_that_is_made_up(manifest: Path) -> None:
    check_kind(KIND, manifest, route)


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (
            replace(with_part(model=Bare), models={Level.PROJECT: dict[str, Bare | None]}),
            "Bare.state needs a description",
        ),
        (
            replace(with_part(model=Directed), models={Level.PROJECT: dict[str, Directed | None]}),
            "Directed has directions for fields that it lacks: renamed_from, secrecy",
        ),
        (
            replace(with_part(model=Later), models={Level.PROJECT: dict[str, Later | None]}),
            "Later.due_date: '2026-12-31' must be as strict as itself",
        ),
        (with_part(model=Bare), "milestones must be a dict[str, Bare | None]"),
        (
            replace(KIND, needs=replace(KIND.needs, readers={Level.PROJECT: Role.PLANNER})),
            "the role to read milestones in a project must be lower than that to write it",
        ),
        (with_part(name="other"), "the only part of milestones must have its name, not other"),
        (
            replace(KIND, parts=KIND.parts * 2, split=lambda _value, _prune: {}),
            "two parts of milestones have one name or path",
        ),
        (with_writes(required=("key",)), "milestones has rules for fields that Milestone lacks: key"),
        (
            replace(KIND, models={Level.PROJECT: dict[str, Milestone | None], Level.GROUP: Milestone}),
            "milestones.yaml must have targets of these levels: group, project",
        ),
        (
            with_part(names=Names(error=lambda name: None if name == "1.0" else "unheard of")),
            "milestones, rename (spec dialect): no other name like '1.0' is valid: tried 1.0-2, 1.02, 21.0",
        ),
        (with_writes(update=None), "milestones, update (spec dialect): the plan has problems: 1.0: "),
        (
            with_writes(update=update_of_nothing),
            "milestones, rename (spec dialect): 1.0-2: dropped by the service: the service kept its own name",
        ),
        (
            with_writes(immutable=("description", "due_date"), required=("start_date",)),
            "milestones, apply the example (spec dialect): the plan has problems: 1.0: needs `start_date` to be created",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_step(manifest: Path, kind: Kind, reason: str) -> None:
    with pytest.raises(AssertionError) as caught:
        check_kind(kind, manifest, route)
    assert reason in str(caught.value)


def test_an_example_that_changes_nothing_is_no_example(manifest: Path) -> None:
    manifest.write_text(EXAMPLE.replace("due_date: 2026-12-31", "state: active"))
    state = {
        "users": [{"username": "checker", "tokens": ["check-token"], "admin": True}],
        "projects": [{"path": "acme/api", "milestones": [{"title": "1.0", "description": "first"}]}],
    }
    with pytest.raises(AssertionError, match="the example changes nothing of project acme/api: give it other values"):
        check_kind(KIND, manifest, route, state=state)


def test_a_route_that_the_sandbox_has_not_found_is_named(manifest: Path) -> None:
    stray = ModuleType("stray")
    stray.ROUTES = (object(),)  # type: ignore[attr-defined]  # as a route module has it
    with pytest.raises(AssertionError, match="the sandbox does not serve stray: install the package"):
        check_kind(KIND, manifest, stray)


@pytest.mark.untraced
def test_a_kind_whose_changes_cannot_be_undone_is_not_right(manifest: Path) -> None:
    state = {
        "users": [{"username": "checker", "tokens": ["check-token"]}],
        "projects": [
            {
                "path": "acme/api",
                "members": [{"user": "checker", "role": "owner"}],
                "milestones": [{"title": "1.0", "due_date": "2026-12-31"}],
            }
        ],
    }
    check_kind(KIND, manifest, route, state=state)
    with pytest.raises(AssertionError) as told:
        check_kind(with_writes(update=update_without_nulls), manifest, route, state=state)
    assert str(told.value) == (
        "milestones, revert (spec dialect): not as before the apply: milestones of project acme/api"
    )


def test_a_replacement_without_cover_is_told(tmp_path: Path) -> None:
    def bare(old: Existing) -> Requests:
        deleted, made = (
            old.part.deletion.requests(old),
            Request("POST", old.path, {**old.anew().new_name, **old.anew().fields}),
        )
        return (made, *deleted) if old.new_name else (*deleted, made)

    (part,) = protected_tags.KIND.parts
    assert isinstance(part, Collection)
    kind = replace(protected_tags.KIND, parts=(replace(part, writes=replace(part.writes, update=bare)),))
    file = tmp_path / "tags.yaml"
    file.write_text(TAGS)
    with pytest.raises(AssertionError, match="something is left without cover"):
        check_kind(kind, file, protected_tags_route)


TAGS = """\
apiVersion: reconciler/v1
kind: Project
metadata: {path: acme/api}
spec: {protected_tags: {v1: {allowed_to_create: [developer]}}}
"""
