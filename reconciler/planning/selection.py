"""Narrowing a run: by target, by label, by section. Pure."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from reconciler.errors import UsageError
from reconciler.model.plan import Plan, Problem, SectionPlan, TargetPlan
from reconciler.model.state import DesiredState, DesiredTarget, Section
from reconciler.model.targets import Address, Target

FORGOTTEN = "not done before and not planned now: no manifest declares it; to delete it, repeat the --since of that run"


@dataclass(frozen=True, slots=True)
class Selection:
    """What a run is narrowed to; nothing given means everything.

    Attributes:
        targets: globs on paths or numeric IDs, as manifests or the service name them; `user` for the user.
        labels: all of these `key=value` pairs must be among a target's labels.
        sections: names of sections.
        only: targets and sections; None for all.
    """

    targets: tuple[str, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    sections: tuple[str, ...] = ()
    only: Collection[tuple[Target, str]] | None = None


def select(desired: DesiredState, selection: Selection) -> DesiredState:
    """Return the part of the desired state that is selected; the digest stays that of the whole.

    Raises:
        UsageError: nothing is left of a state that was not empty, or no target declares a section that is selected,
            which is never what was meant.
    """
    targets = tuple(_selected(desired.targets, selection))
    if not desired.targets:
        return desired
    if not targets and selection.only is None:
        raise UsageError("no target is selected: check --target and --selector against the manifests")
    declared = {section.kind for target in desired.targets for section in target.sections}
    missing = [section for section in selection.sections if section not in declared]
    if missing:
        raise UsageError(
            f"no target declares {missing[0]}; declared are: {', '.join(sorted(declared)) or 'no sections'}"
        )
    return replace(desired, targets=targets)


def restrict(plan: Plan, addresses: Collection[Address]) -> Plan:
    """Return a plan less all changes of other addresses, and less the problems of other objects."""
    return replace(plan, targets=tuple(replace(t, sections=tuple(_kept(t, addresses))) for t in plan.targets))


def add_missing(
    plan: Plan, addresses: Collection[Address], declared: Collection[tuple[Target, str]], selection: Selection
) -> Plan:
    """Return a plan in which each address is a problem that nothing declares any more, unless it is in order by now.

    What was to be deleted because the manifests no longer declare it is planned only with the `--since` of that time:
    without it, the deletion would silently be forgotten.

    Args:
        plan: for the addresses, see `restrict`.
        addresses: what is to be planned.
        declared: the targets and sections that manifests declare.
        selection: what else the plan is narrowed to; what lies outside is no problem.
    """
    planned = {(t.target, section.section): section for t in plan.targets for section in t.sections}
    missing: dict[Target, list[Problem]] = {}
    for address in sorted(addresses, key=lambda each: (each.target.order, each.section, each.part, str(each.name))):
        section = planned.get((address.target, address.section))
        if section is not None:
            lost = any(each.address == address for each in section.unmanaged)
        else:
            lost = (address.target, address.section) not in declared and _spans(selection, address)
        if lost:
            missing.setdefault(address.target, []).append(Problem(address, FORGOTTEN))
    targets = [_with_problems(target, missing.pop(target.target, ())) for target in plan.targets]
    targets += [_with_problems(TargetPlan(scope, ()), problems) for scope, problems in missing.items()]
    return replace(plan, targets=tuple(sorted(targets, key=lambda target: target.target.order)))


def hold_back(plan: Plan, reasons: Mapping[Target, str]) -> Plan:
    """Return a plan in which some targets, each for its reason, are a problem and not changed."""
    if not reasons:
        return plan
    targets = tuple(_held_back(target, reasons.get(target.target)) for target in plan.targets)
    dependent = tuple(section for section in plan.dependent if section.target not in reasons)
    return replace(plan, targets=targets, dependent=dependent)


def hold_back_moved(plan: Plan, moved: Mapping[Target, object]) -> Plan:
    """Hold back the targets that have moved, each to where the mapping says."""
    advice = "name it so in the manifest, or write to it all the same with --follow-moved"
    return hold_back(plan, {target: f"moved to {place}: {advice}" for target, place in moved.items()})


def add_problems(plan: Plan, reasons: Mapping[Target, str]) -> Plan:
    """Return a plan in which some targets, each for its reason, are a problem too; their changes stay."""
    return replace(plan, targets=tuple(_with_problem(target, reasons.get(target.target)) for target in plan.targets))


def _held_back(target: TargetPlan, reason: str | None) -> TargetPlan:
    if reason is None:
        return target
    unchanged = tuple(replace(section, changes=()) for section in target.sections)
    return _with_problem(replace(target, sections=unchanged), reason)


def _with_problem(target: TargetPlan, reason: str | None) -> TargetPlan:
    if reason is None:
        return target
    address = Address(target.target, "", "", str(target.target.level), target.target.ref)
    return replace(target, sections=(*target.sections, SectionPlan("", problems=(Problem(address, reason),))))


def _kept(target: TargetPlan, addresses: Collection[Address]) -> Iterator[SectionPlan]:
    """Yield the sections with their changes and problems; what is wrong with a section concerns all that is in it."""
    for section in target.sections:
        changes = tuple(change for change in section.changes if change.address in addresses)
        problems = tuple(
            problem
            for problem in section.problems
            if problem.address in addresses or problem.address.name is None or not section.section
        )
        yield replace(section, changes=changes, problems=problems)


def _with_problems(target: TargetPlan, problems: Iterable[Problem]) -> TargetPlan:
    """Return a target with further problems, each in its section, which is added where the target has none."""
    sections = {section.section: section for section in target.sections}
    for problem in problems:
        name = problem.address.section
        section = sections.get(name, SectionPlan(name))
        sections[name] = replace(section, problems=(*section.problems, problem))
    return replace(target, sections=tuple(sections.values()))


def _spans(selection: Selection, address: Address) -> bool:
    """Tell whether a selection takes in an object of which no manifest tells the labels."""
    return (
        not selection.labels
        and (not selection.sections or address.section in selection.sections)
        and (
            not selection.targets
            or any(_matches(DesiredTarget(address.target, ()), glob) for glob in selection.targets)
        )
    )


def _selected(targets: Iterable[DesiredTarget], selection: Selection) -> Iterator[DesiredTarget]:
    for target in targets:
        if selection.targets and not any(_matches(target, glob) for glob in selection.targets):
            continue
        if any(target.labels.get(key) != value for key, value in selection.labels):
            continue
        if selection.sections or selection.only is not None:
            kept = tuple(section for section in target.sections if _wants(selection, section))
            if kept or selection.only is None:
                yield replace(target, sections=kept)
        else:
            yield target


def _wants(selection: Selection, section: Section) -> bool:
    if selection.sections and section.kind not in selection.sections:
        return False
    return selection.only is None or (section.target, section.kind) in selection.only


def _matches(target: DesiredTarget, glob: str) -> bool:
    names = {str(target.target.level if target.target.ref is None else target.target.ref), target.path or ""}
    return any(fnmatchcase(name.casefold(), glob.casefold()) for name in names - {""})
