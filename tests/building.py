"""The engine's values from plain data, as manifests and responses would make them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import TypeAdapter

from reconciler.engine.read import learn_ids
from reconciler.kinds import all_kinds
from reconciler.model.diff import AsRead
from reconciler.model.item import Change, Finding, Item, Note, Outcome, hints, pages, section_of, unused_names
from reconciler.model.kind import Kinds
from reconciler.model.obstacle import Obstacle
from reconciler.model.plan import TargetPlan
from reconciler.model.resource import Objects
from reconciler.model.state import DesiredState, DesiredTarget, LivePart, LiveState, Reference, Section
from reconciler.model.targets import Key, Level, Target

KINDS: Kinds = all_kinds()

API = Target(Level.PROJECT, "acme/api")
LIB = Target(Level.PROJECT, "acme/lib")
ACME = Target(Level.GROUP, "acme")
USER = Target(Level.USER)

READ = AsRead(1, ("x",), {}, {})
"""What was read of an object, where a test does not care."""


def section(kind: str, value: Any, target: Target = API, *, prune: bool = False) -> Section:
    """Return a declared section of a target."""
    checked = TypeAdapter(KINDS[kind].models[target.level]).validate_python(value)
    return Section(target, kind, KINDS[kind].wanted(checked, prune=prune), prune)


def desired(*sections: Section) -> DesiredState:
    """Return the desired state of all targets of some sections."""
    scopes = dict.fromkeys(each.target for each in sections)
    targets = [DesiredTarget(target, tuple(each for each in sections if each.target == target)) for target in scopes]
    return DesiredState(tuple(targets), "digest")


def live(
    answers: Mapping[tuple[Target, str, str], Any], ids: Mapping[Reference, int | Obstacle] | None = None
) -> LiveState:
    """Return live state decoded from responses of the service; other values are taken as they are."""
    parts: dict[tuple[Target, str, str], LivePart] = {}
    for (target, kind, name), answer in answers.items():
        part = KINDS[kind].part(name)
        match answer:
            case dict():
                parts[target, kind, name] = part.read(target, answer)
            case list():
                parts[target, kind, name] = Objects(tuple(part.read(target, entry) for entry in answer))
            case _:
                parts[target, kind, name] = answer
    return LiveState(parts, {**learn_ids(parts, KINDS), **(ids or {})})


def noted(
    hint: str = "", losses: Iterable[str] = (), page: str = "", former: Sequence[Key] = (), **data: Mapping[str, Any]
) -> tuple[Note, ...]:
    """Return the notes of a change: a hint, what is lost, its page, unused names, and others with their data."""
    others = (Note(code, data=facts) for code, facts in data.items())
    return (*unused_names(former), *hints(hint), *(Note("loss", loss) for loss in losses), *pages(page), *others)


@dataclass(frozen=True)
class SectionPlan:
    """The items of one section of a target, as a test writes them down; see `target_plan`."""

    section: str
    found: int = 0
    changes: Sequence[Change] = ()
    findings: Sequence[Finding] = ()
    outcomes: Sequence[Outcome] = field(default=(), kw_only=True)

    def saying(self, *findings: Finding) -> "SectionPlan":
        """Return the section with more that is said of it."""
        return replace(self, findings=(*self.findings, *findings))

    @property
    def items(self) -> tuple[Item, ...]:
        """What the section adds to the list of its target."""
        return (*self.outcomes, *self.changes[len(self.outcomes) :], *self.findings)


def target_plan(target: Target, sections: Iterable[SectionPlan] = (), origin: str = "", **more: Any) -> TargetPlan:
    """Return the plan of a target from its sections."""
    sections = tuple(sections)
    items = tuple(item for each in sections for item in each.items)
    found = {each.section: each.found for each in sections}
    return TargetPlan(target, {**dict.fromkeys(map(section_of, items), 0), **found}, items, origin, **more)


def sections_of(target: TargetPlan) -> list[SectionPlan]:
    """Return the plan of a target, section by section."""
    alone = {name: target.only([name]) for name in target.found}
    return [
        SectionPlan(name, target.found[name], own.changes, own.findings, outcomes=own.outcomes)
        for name, own in alone.items()
    ]


def with_sections(target: TargetPlan, sections: Iterable[SectionPlan]) -> TargetPlan:
    """Return the plan of a target with other sections."""
    other = target_plan(target.target, sections)
    return replace(target, found=other.found, items=other.items)
