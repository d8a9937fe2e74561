"""The selection of a run: `select` by target, label and section, `share` by shard, `restrict` for a plan. Pure."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b

from reconciler.engine.compare.creation import needs, owners
from reconciler.engine.compare.earlier import ChangesAbove
from reconciler.errors import NothingSelected, UsageError
from reconciler.model.creation import Creation
from reconciler.model.globs import NO_GLOBS, Globs
from reconciler.model.item import Finding, Item, Keep, address_of, problem_at, section_of, source_of
from reconciler.model.kind import Kinds
from reconciler.model.plan import Plan, TargetPlan
from reconciler.model.shards import Shard
from reconciler.model.state import DesiredState, DesiredTarget, Section
from reconciler.model.targets import Address, Key, Level, Target
from reconciler.model.wording import closest, listed

FORGOTTEN_DELETION = "not done before and no longer declared: it stays"

MOST_LABELS = 20
"""Labels that a message lists."""

MOST_PATHS = 3
"""Paths that a message lists where none is similar."""

TOGETHER = "groups"
"""The common home of groups and projects if some are declared by ID, so that their hierarchy is unknown."""


@dataclass(frozen=True, slots=True)
class RunSelection:
    """The part of the manifests that a run is about; by default, everything.

    Attributes:
        targets: globs on paths or numeric IDs, as manifests or the service name them; `user` for the user.
        excluded: globs on the targets that are left out.
        labels: all of these `key=value` pairs must be among a target's labels.
        sections: names of sections.
        only: targets and sections; None for all.
    """

    targets: Globs = NO_GLOBS
    excluded: Globs = NO_GLOBS
    labels: tuple[tuple[str, str], ...] = ()
    sections: tuple[str, ...] = ()
    only: Collection[tuple[Target, str]] | None = None


def select(desired: DesiredState, selection: RunSelection, *, partly: bool = False) -> DesiredState:
    """Return the selected part of the desired state; its digest is that of the whole state.

    Raises:
        NothingSelected: a glob or a label matches no target, or no target matches all of them: mostly a mistake. It is
            not raised for an incomplete state (`partly`), or for a retry (`RunSelection.only`).
        UsageError: no target declares a section that is selected.
    """
    targets = tuple(_selected(desired.targets, selection))
    if partly:
        return replace(desired, targets=targets)
    if selection.only is None:
        hint = unmatched(selection, desired.targets)
        if hint:
            raise NothingSelected(f"no target is selected: {hint}")
    if not desired.targets:
        return replace(desired, targets=())
    declared = {section.kind for target in desired.targets for section in target.sections}
    missing = [section for section in selection.sections if section not in declared]
    if missing:
        raise UsageError(
            f"no target declares {missing[0]}; declared are: {', '.join(sorted(declared)) or 'no sections'}"
        )
    return replace(desired, targets=targets)


def exclusion_warnings(selection: RunSelection, desired: DesiredState) -> Iterator[str]:
    """Yield warnings about excluded targets: a glob matches none, or no other target is selected."""
    for glob in selection.excluded.written:
        if not any(matches(target, Globs([glob])) for target in desired.targets):
            yield f"--exclude {glob} matches no target"
    chosen = [target for target in desired.targets if selects(replace(selection, excluded=NO_GLOBS), target)]
    if chosen and all(matches(target, selection.excluded) for target in chosen):
        yield "nothing is selected: --exclude leaves out every target"


def unmatched(
    selection: RunSelection,
    selectable_targets: Collection[DesiredTarget] | Collection[TargetPlan],
    by_path: str = "--target",
    by_label: str = "--selector",
) -> str:
    """Return the paths and labels that match no target, with suggestions, in words; empty if a target matches all.

    Args:
        selection: by path and label.
        selectable_targets: all targets.
        by_path: the option that gave the globs.
        by_label: the option that gave the labels.
    """
    by_globs = [f"{by_path} {glob}" for glob in selection.targets.written]
    by_labels = [f"{by_label} {key}={value}" for key, value in selection.labels]
    if not (by_globs or by_labels) or not selectable_targets:
        return f"{listed([*by_globs, *by_labels])}: there are no targets" if by_globs or by_labels else ""
    paths = sorted({name for target in selectable_targets for name in _names(target)})
    labels = sorted({f"{key}={value}" for target in selectable_targets for key, value in target.labels.items()})
    hints = []
    for glob, option in zip(selection.targets.written, by_globs, strict=True):
        if not any(map(Globs([glob]).match, paths)):
            path = closest(glob, paths, most=None)
            hints.append(f"{option} matches nobody{_instead(path, paths)}")
    for (key, value), option in zip(selection.labels, by_labels, strict=True):
        if f"{key}={value}" not in labels:
            present = f"the labels there are: {_some(labels, MOST_LABELS)}" if labels else "no target has labels"
            hints.append(f"{option} matches nobody: {present}")
    if not hints and not any(selects(replace(selection, excluded=NO_GLOBS), target) for target in selectable_targets):
        hints.append(f"no target matches all of {listed([*by_globs, *by_labels])}")
    return "; ".join(hints)


def _instead(path: str | None, paths: Sequence[str]) -> str:
    return f": the most similar path is {path}" if path else f"; there are {_some(paths, MOST_PATHS)}"


def _some(words: Sequence[str], most: int) -> str:
    return ", ".join(words[:most]) + (", ..." if len(words) > most else "")


def read_canary(text: str) -> RunSelection:
    """Read `KEY=VALUE`, a label, or a glob of paths.

    Raises:
        UsageError: it is neither.
    """
    key, labelled, value = text.partition("=")
    if not key:
        raise UsageError(
            f"--canary takes KEY=VALUE or a glob of paths, such as tier=canary or acme/sandbox/**; not {text}"
        )
    return RunSelection(labels=((key, value),)) if labelled else RunSelection(targets=Globs((text,)))


def selected_targets(plan: Plan, selection: RunSelection, kinds: Kinds) -> frozenset[Target]:
    """Return the targets of a plan that a selection selects by path and label, and the targets that they need.

    Needed are targets to be created that they refer to, and groups that create an object which they name, or that
    free a name which they get.
    """
    above = ChangesAbove(kinds)
    for target in plan.targets:
        above.add(target)
    by_name = {str(target.target).casefold(): target for target in plan.targets}
    created = {name for name, target in by_name.items() if target.creation is not None}
    chosen = {target.target: target for target in plan.targets if selects(selection, target)}
    todo = [*chosen.values()]
    while todo:
        current = todo.pop()
        changes = [*current.changes]
        names = created.intersection(name for change in changes for name in needs(change))
        groups = (name for change in changes for request in change.requests for name in owners(request.body))
        names |= by_name.keys() & {*groups, *above.groups_freeing_names(current)}
        needed = [by_name[name] for name in names if by_name[name].target not in chosen]
        chosen |= {target.target: target for target in needed}
        todo += needed
    return frozenset(chosen)


def read_shard(text: str) -> Shard:
    """Read `I/N`.

    Raises:
        UsageError: it is not that.
    """
    match = re.fullmatch(r"([1-9][0-9]{0,5})/([1-9][0-9]{0,5})", text)
    if not match or int(match[1]) > int(match[2]):
        raise UsageError(f"--shard takes I/N with I from 1 to N, such as 2/5; not {text}")
    return Shard(int(match[1]), int(match[2]))


def share(desired: DesiredState, declared_state: DesiredState, shard: Shard, kinds: Kinds) -> DesiredState:
    """Return a shard of the desired state.

    A project whose settings depend on those of a declared group is in the shard of that group; so is a target with
    `create` below a group with `create`. Only the manifests decide, not which targets exist by now: all shards must
    divide alike.

    Args:
        desired: the state to divide.
        declared_state: all declared targets, so that narrowing a run moves no target to another shard.
        shard: the number of the shard, and the number of all shards.
        kinds: all kinds.
    """
    homes = _Homes(declared_state, kinds)
    targets = tuple(target for target in desired.targets if _number(homes.of(target), shard.total) == shard.number)
    return replace(desired, targets=targets)


def plan_in_shard(plan: Plan, shard: Shard, kinds: Kinds) -> Plan:
    """Return a shard of a plan; each target is in exactly one shard."""
    targets = (
        DesiredTarget(
            target.target,
            tuple(Section(target.target, name, {}) for name in target.sections),
            creation=Creation("") if target.creation else None,
        )
        for target in plan.targets
    )
    whole = DesiredState(tuple(targets), "")
    kept = {target.target for target in share(whole, whole, shard, kinds).targets}
    return Plan(tuple(target for target in plan.targets if target.target in kept))


def restrict(plan: Plan, addresses: Collection[Address]) -> Plan:
    """Return a plan without changes of other addresses, and without problems of other objects.

    The creation of a target is always kept.
    """
    targets = (
        replace(target, items=tuple(item for item in target.items if _is_kept(item, addresses)))
        for target in plan.targets
    )
    return replace(plan, targets=tuple(targets))


def only_change(plan: Plan) -> Plan:
    """Return a plan without differences that exist already at the revision of `--since`; needed creations are kept.

    A section that loses a change is not planned again, since that would bring the change back. If any is lost, only the
    deletions themselves report which objects they widen.
    """
    changes = [change for change in plan.changes if source_of(change) == "change"]
    needed = {name for change in changes for name in needs(change)}
    created = (target.creation for target in plan.targets if str(target.target).casefold() in needed)
    kept = {id(change) for change in (*changes, *filter(None, created))}
    lost = {(change.address.target, change.address.section) for change in plan.changes if id(change) not in kept}

    def is_kept(item: Item) -> bool:
        match item:
            case Finding():
                return not lost or item.code != "widened"
            case Keep():
                return (item.address.target, item.address.section) not in lost
        return id(item) in kept

    return Plan(tuple(replace(target, items=tuple(filter(is_kept, target.items))) for target in plan.targets))


def add_missing(
    plan: Plan,
    addresses: Collection[Address],
    declared_sections: Collection[tuple[Target, str]],
    selection: RunSelection,
) -> Plan:
    """Return a plan with a problem for each address that is no longer declared, unless it is in order by now.

    The deletion of an undeclared object is planned again only if its section is still pruned, or if the inventory has
    the object; otherwise the deletion would be forgotten silently.

    Args:
        plan: for the addresses, see `restrict`.
        addresses: the addresses to plan.
        declared_sections: the targets and sections that manifests declare.
        selection: the other selection of the run; addresses outside of it are no problem.
    """
    planned = {(target.target, section) for target in plan.targets for section in target.sections}
    unmanaged = {finding.address for finding in plan.findings_of("unmanaged")}
    missing: dict[Target, list[Finding]] = {}
    for address in sorted(
        addresses, key=lambda address: (address.target.order, address.section, address.part, str(address.name))
    ):
        if not address.section:
            continue
        if (address.target, address.section) in planned:
            lost = address in unmanaged
        else:
            lost = (address.target, address.section) not in declared_sections and _includes(selection, address)
        if lost:
            missing.setdefault(address.target, []).append(problem_at(address, FORGOTTEN_DELETION))
    targets = [target.adding(*missing.pop(target.target, ())) for target in plan.targets]
    targets += [TargetPlan(target).adding(*problems) for target, problems in missing.items()]
    return replace(plan, targets=tuple(sorted(targets, key=lambda target: target.target.order)))


def _is_kept(item: Item, addresses: Collection[Address]) -> bool:
    """Return whether an item is about one of some addresses; a problem of a section is about all of its objects."""
    if not isinstance(item, Finding):
        return isinstance(item, Keep) or address_of(item) in addresses or not section_of(item)
    match item.code:
        case "problem":
            of_object = bool(item.address.section) and item.address.name is not None
            return not of_object or item.address in addresses
        case "excepted":
            return item.address in addresses
    return item.code != "widened"


def _includes(selection: RunSelection, address: Address) -> bool:
    """Return whether a selection includes an object that no manifest declares, and that has no labels."""
    target = DesiredTarget(address.target, (Section(address.target, address.section, {}),))
    return any(selected.sections for selected in _selected([target], replace(selection, only=None)))


def _selected(targets: Iterable[DesiredTarget], selection: RunSelection) -> Iterator[DesiredTarget]:
    for target in targets:
        if not selects(selection, target):
            continue
        if selection.sections or selection.only is not None:
            kept = tuple(section for section in target.sections if _wants(selection, section))
            imported = target.creation is not None and target.creation.source is not None
            retried = selection.only is None or imported or (target.target, "") in selection.only
            created = retried and bool(kept or not selection.sections)
            if kept or created or selection.only is None:
                yield replace(target, sections=kept, creation=target.creation if created else None)
        else:
            yield target


def _wants(selection: RunSelection, section: Section) -> bool:
    if selection.sections and section.kind not in selection.sections:
        return False
    return selection.only is None or (section.target, section.kind) in selection.only


def selects(selection: RunSelection, candidate: DesiredTarget | TargetPlan) -> bool:
    """Return whether a selection selects a target by its path and its labels."""
    if (selection.targets.written and not matches(candidate, selection.targets)) or matches(
        candidate, selection.excluded
    ):
        return False
    return all(candidate.labels.get(key) == value for key, value in selection.labels)


def matches(candidate: DesiredTarget | TargetPlan, globs: Globs) -> bool:
    """Return whether one of some globs matches the path or numeric ID of a target, or its level if it has neither."""
    return any(map(globs.match, _names(candidate)))


def _names(candidate: DesiredTarget | TargetPlan) -> Collection[str]:
    """Return the names of a target that globs may match."""
    former = candidate.former_paths.values() if isinstance(candidate, DesiredTarget) else ()
    return {
        str(candidate.target.level if candidate.target.ref is None else candidate.target.ref),
        candidate.path or "",
        *former,
    } - {""}


class _Homes:
    """The homes of targets: a target itself, or the topmost group from which others inherit, or that is created."""

    def __init__(self, declared_state: DesiredState, kinds: Kinds) -> None:
        self.inherited = frozenset(name for name, kind in kinds.items() if kind.inherits)
        tied = [target for target in declared_state.targets if self._is_tied(target)]
        heirs = [target for target in tied if self._inherits(target)]
        groups = [target.target.ref for target in tied if target.target.level is Level.GROUP]
        self.groups = frozenset(ref.casefold() for ref in groups if isinstance(ref, str))
        # A group known only by its ID may be above any project, a project known only by its ID below any group.
        self.any_above = len(self.groups) < len(groups)
        self.together = any(target.target.level is Level.GROUP for target in heirs) and any(
            isinstance(target.target.ref, int) for target in heirs
        )

    def of(self, target: DesiredTarget) -> str:
        """Return the name of a target's home; targets with the same home are in the same shard."""
        # A project that moves stays in its shard: the shards may find out at different times.
        named = next(iter(target.former_paths.values()), target.target.ref)
        own = Target(*Target(target.target.level, named).identity)
        if not self._is_tied(target):
            return str(own)
        top = _topmost(own.ref, self.groups)
        if self.together and (top or self.any_above or isinstance(own.ref, int)):
            return TOGETHER
        return str(Target(Level.GROUP, top) if top else own)

    def _is_tied(self, target: DesiredTarget) -> bool:
        return target.creation is not None or self._inherits(target)

    def _inherits(self, target: DesiredTarget) -> bool:
        return target.target.ref is not None and any(section.kind in self.inherited for section in target.sections)


def _topmost(own_ref: Key | None, groups: Collection[str]) -> str | None:
    """Return the topmost of some groups that is above a path, or has that path itself."""
    parts = str(own_ref).casefold().split("/")
    return next((path for end in range(1, len(parts) + 1) if (path := "/".join(parts[:end])) in groups), None)


def _number(home: str, total: int) -> int:
    """Return the number of the shard of a home: the one with the highest hash (rendezvous hashing)."""
    # Not `hash()`, which differs from process to process: all shards must divide alike.
    return max(range(1, total + 1), key=lambda number: blake2b(f"{number} {home}".encode(), digest_size=8).digest())
