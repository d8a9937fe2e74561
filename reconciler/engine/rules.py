"""The rules: each reason not to read, plan or change a declaration. Begin with `RULES` and `find_obstacles`.

A rule is a row of one table. A rule that needs records asks the roster for those of all targets at once, side by side.
Then it judges each target by the known facts, without a further request.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from enum import Enum, auto

from reconciler.engine.compare.exceptions import excepting_section
from reconciler.engine.compare.planner import NO_PLAN
from reconciler.engine.crew import ask_each
from reconciler.engine.lookups import look_up, look_up_paths
from reconciler.engine.planned import Declared, Planned
from reconciler.engine.read import answer_or_error
from reconciler.engine.roster import Move, Roster, TargetRecord, fetch_record
from reconciler.engine.run import Run
from reconciler.engine.why import AT_THE_TOP, address_of, lacking_sections, unchangeable
from reconciler.errors import ServiceError
from reconciler.manifests import UnlistedSet
from reconciler.model.kind import Archived
from reconciler.model.obstacle import Effect, Obstacle
from reconciler.model.plan import Plan
from reconciler.model.protocols import Reader
from reconciler.model.state import DesiredState, DesiredTarget, LiveState, Reference, Section, Unreadable
from reconciler.model.targets import Identity, Level, Target
from reconciler.model.wording import listed

NOTHING_READ = LiveState({}, {})


class Moment(Enum):
    """The stage at which a rule is checked: as soon as its records are known, so that no request is wasted."""

    DECLARED = auto()
    """Before live state is read."""
    READ = auto()
    """After live state is read."""
    EXPLAINED = auto()
    """After the causes of unreadable parts are known."""
    PLANNED = auto()
    """After the differences are planned."""


@dataclass(frozen=True, slots=True)
class Facts:
    """The input of a rule.

    Attributes:
        run: the request of the command.
        roster: the groups and projects.
        declared: all declarations, and the part to plan.
        live: the live state as it was read.
        compared: the plan of all differences, without regard to obstacles.
        obstacles: the obstacles of earlier rules.
        same: for each target that is declared twice, its ID and all declared targets with this ID.
        archived: the archived projects that no list shows, each with the sections that are read-only there.
    """

    run: Run
    roster: Roster
    declared: Declared
    live: LiveState = NOTHING_READ
    compared: Plan = NO_PLAN
    obstacles: tuple[Obstacle, ...] = ()
    same: Mapping[Target, tuple[int, Sequence[DesiredTarget]]] = field(default_factory=dict)
    archived: Mapping[Target, Sequence[Section]] = field(default_factory=dict)

    @property
    def targets(self) -> tuple[DesiredTarget, ...]:
        """The targets to plan."""
        return self.declared.desired.targets

    @property
    def today(self) -> date:
        """The day by the service's clock, by which exceptions expire."""
        return self.roster.now().date()


def nothing(facts: Facts) -> Facts:
    """Return the facts unchanged: the rule needs no further record."""
    return facts


@dataclass(frozen=True, slots=True)
class Rule:
    """A row of the table.

    Attributes:
        moment: the stage at which the rule is checked.
        obstacles: yields the obstacles of a target, by facts alone.
        needs: the records that the rule depends on, and their cost in requests.
        look_up: reads these records, and returns the facts with their values.
        absent: whether an obstacle means that no part of the target is read or planned.
        checked: whether the doctor reports the obstacles of this rule too; it finds other causes itself.
    """

    moment: Moment
    obstacles: Callable[[DesiredTarget, Facts], Iterable[Obstacle]]
    needs: str
    look_up: Callable[[Facts], Facts] = nothing
    absent: bool = False
    checked: bool = False


def find_obstacles(moment: Moment, facts: Facts, *, checking: bool = False) -> tuple[Obstacle, ...]:
    """Return all obstacles so far, including those of the rules of one moment.

    Args:
        moment: the stage.
        facts: the input of the rules.
        checking: whether only the rules of the doctor are checked.

    Raises:
        ServiceError: an error of `read.ENDS_A_RUN`.
    """
    for rule in RULES:
        if rule.moment is not moment or rule.absent or (checking and not rule.checked):
            continue
        # Rule by rule: where an earlier one has found an obstacle, a later one needs no request.
        facts = rule.look_up(facts)
        obstacles = (obstacle for target in facts.targets for obstacle in rule.obstacles(target, facts))
        facts = replace(facts, obstacles=(*facts.obstacles, *obstacles))
    return facts.obstacles


def absent_targets(moment: Moment, facts: Facts) -> dict[Identity, Obstacle]:
    """Return the obstacles of targets of which no part is read or planned, by `Target.identity`."""
    rules = [rule for rule in RULES if rule.moment is moment and rule.absent]
    return {
        target.target.identity: obstacle
        for target in facts.targets
        for rule in rules
        for obstacle in rule.obstacles(target, facts)
    }


def _path_unknown(declared: DesiredTarget, facts: Facts) -> Iterator[Obstacle]:
    reason = facts.declared.discovery.unknown.get(declared.target)
    if reason is not None:
        advice = "its manifest uses `{path}`, `{name}` or `{namespace}`; give `path` instead of `id`"
        words = f"the path of {declared.target} is not known ({reason.reason}), and {advice}"
        yield replace(reason, reason=words, effect="read only")


def _sets_unknown(declared: DesiredTarget, facts: Facts) -> Iterator[Obstacle]:
    """Yield an obstacle for targets of sets whose group cannot be listed: not all of their declarations are known."""
    target, unlisted = declared.target, facts.declared.unlisted
    hidden = [unlisted_set.obstacle for unlisted_set in unlisted if unlisted_set.may_select(declared)]
    obstacles = (unlisted_set.obstacle for unlisted_set in unlisted)
    about = [obstacle for obstacle in obstacles if obstacle.where.target.identity == target.identity]
    if hidden:
        group = hidden[-1].where.target
        yield Obstacle(target.address, f"its sets are unknown, because the projects of {group} cannot be listed")
    elif about:
        yield about[0].at(target.address)


def without_unlisted(desired: DesiredState, unlisted: Collection[UnlistedSet]) -> DesiredState:
    """Return the desired state without targets that depend on unlisted groups; see `_sets_unknown`."""
    targets = {target.target.identity: target for target in desired.targets}
    for name, target in targets.items():
        if any(unlisted_set.may_select(target) for unlisted_set in unlisted):
            targets[name] = replace(target, sections=(), creation=None)
    for unlisted_set in unlisted:
        group = unlisted_set.obstacle.where.target
        targets.setdefault(group.identity, DesiredTarget(group, (), unlisted_set.origin))
    return replace(desired, targets=tuple(sorted(targets.values(), key=lambda target: target.target.order)))


def _missing(declared: DesiredTarget, facts: Facts) -> Iterator[Obstacle]:
    obstacle = facts.declared.existence.obstacles.get(declared.target.identity)
    if obstacle is not None:
        yield obstacle


def _has_former_path(declared: DesiredTarget, facts: Facts) -> Iterator[Obstacle]:
    """Yield an obstacle for a group or project that has moved, and that documents still name by its former path."""
    places: dict[str, list[str]] = {}
    for place, path in declared.former_paths.items():
        places.setdefault(path.casefold(), []).append(place)
    if places and not facts.run.follow_moved:
        paths = listed(f"{declared.former_paths[at[0]]} ({listed(at)})" for at in places.values())
        reason = f"declared by its former path{'s' if len(places) > 1 else ''} {paths}"
        yield Obstacle(
            declared.target.address, reason, "write the new path there (`accept` does), or add --follow-moved"
        )


def _lacks_section(declared: DesiredTarget, facts: Facts) -> Iterator[Obstacle]:
    return lacking_sections(declared, facts.run.kinds, facts.today)


def _is_below_the_top(declared: DesiredTarget, facts: Facts) -> Iterator[Obstacle]:
    """Yield an obstacle for sections that a new subgroup cannot have; existing subgroups show it themselves."""
    target, kinds = declared.target, facts.run.kinds
    is_new = target.identity in facts.declared.existence.created
    for section in declared.sections if is_new and target.level is Level.GROUP and "/" in str(target.ref) else ():
        if kinds[section.kind].needs.top_level:
            about = excepting_section(section, declared.excepts(section.kind, facts.today), kinds[section.kind])
            effect: Effect = "excepted" if about else "problem"
            yield Obstacle(address_of(section, kinds), *AT_THE_TOP, effect=effect, exceptions=about)


def _is_hidden_by_move(declared: DesiredTarget, facts: Facts) -> Iterator[Obstacle]:
    """Yield an obstacle for a project that has moved and was not read at its new path."""
    if declared.target in facts.roster.moves and facts.live.unread(*declared.sections):
        yield from _moved(declared, facts)


def _is_refused(declared: DesiredTarget, facts: Facts) -> Iterator[Obstacle]:
    """Yield sections that only sets declare and that the project cannot have, as if a list had shown it."""
    for section in (section for section in declared.sections if section.kind in declared.skipped):
        causes = (part.cause for part in facts.live.unread(section).values())
        lacking = next((cause for cause in causes if cause and cause.effect == "not applicable"), None)
        if lacking is not None:
            yield lacking.at(address_of(section, facts.run.kinds))


def _has_moved(declared: DesiredTarget, facts: Facts) -> Iterator[Obstacle]:
    is_absent = declared.target.identity in facts.live.absent
    if declared.target in facts.roster.moves and not is_absent and not facts.live.unread(*declared.sections):
        yield from _moved(declared, facts)


def _moved(declared: DesiredTarget, facts: Facts) -> Iterator[Obstacle]:
    """Yield the obstacle of a target that has moved and is not declared by its present path, if any."""
    target, move = declared.target, facts.roster.moves[declared.target]
    others = [other for other in facts.declared.whole.targets if other.target != target and _is_at(other, move, facts)]
    if move.doomed:
        how = f"since {move.day}" if move.day else "with its group"
        reason = f"scheduled for deletion {how}, and called {move} until then"
        yield Obstacle(target.address, reason, "restore it, or remove it from the manifests", effect="read only")
    elif others:
        origins = listed(other.origin for other in others)
        reason = f"moved to {move}, which is declared too ({origins}): correct this path first"
        yield Obstacle(target.address, reason, effect="read only")
    elif not facts.run.follow_moved:
        remedy = "use its new path in the manifest, or add --follow-moved"
        yield Obstacle(target.address, f"moved to {move}", remedy, effect="read only")


def _is_at(declared: DesiredTarget, move: Move, facts: Facts) -> bool:
    """Return whether a declared target is the target that has moved to some place."""
    target, other = declared.target, facts.roster.moves.get(declared.target)
    numbers = {target.ref, None if other is None else other.number}
    path = (move.path or "").casefold()
    return move.number in numbers or target.identity[1] == path


def _find_same(facts: Facts) -> Facts:
    """Find the targets that are declared twice; request records only where a change might be made twice."""
    targets = _existing(facts)
    numbers = _numbers(facts, targets)
    alike: dict[tuple[Level, int], list[DesiredTarget]] = {}
    for declared in targets:
        number = _number(declared.target, numbers)
        if number is not None:
            alike.setdefault((declared.target.level, number), []).append(declared)
    several = [(number, targets) for (_, number), targets in alike.items() if len(targets) > 1]
    same = {declared.target: (number, targets) for number, targets in several for declared in targets}
    return replace(facts, same=same)


def _is_declared_twice(declared: DesiredTarget, facts: Facts) -> Iterator[Obstacle]:
    """Yield an obstacle for a target that is declared twice: one declaration would undo the other's writes."""
    (number, alike), moves = facts.same.get(declared.target, (0, ())), facts.roster.moves
    others = [other for other in alike if other.target != declared.target]
    if not others or declared.target in moves:
        return
    former = next((other for other in others if other.target in moves), None)
    if former is not None:
        reason = f"is declared by its former path {former.target.ref} too ({former.origin}): correct that path first"
    else:
        named = " and ".join(f"{other.target} ({other.origin})" for other in others)
        level = declared.target.level
        reason = f"is the same {level} as {named}, ID {number}: keep one of these documents"
    yield Obstacle(declared.target.address, reason, effect="read only")


def _existing(facts: Facts) -> Collection[DesiredTarget]:
    """Return all declared targets that exist, each once, including targets that are not planned."""
    # A project that has moved exists, although its parts count as absent: its new path may be declared too.
    gone = facts.live.absent.keys() - {target.identity for target in facts.roster.moves}
    targets = (*facts.declared.whole.targets, *facts.targets)
    return {target.target: target for target in targets if target.target.identity not in gone}.values()


def _numbers(facts: Facts, targets: Iterable[DesiredTarget]) -> Mapping[Reference, int]:
    """Return the IDs of targets by path; request records only where a change might be made twice."""
    numbers = {reference: number for reference, number in facts.live.ids.items() if isinstance(number, int)}
    for target, move in facts.roster.moves.items():
        paths = (str(path).casefold() for path in (target.ref, move.path) if path is not None)
        numbers |= {Reference(target.level, path): move.number for path in paths}
    busy = {(change.address.target, change.address.section) for change in facts.compared.changes}
    for level in (Level.GROUP, Level.PROJECT):
        # A target given by ID and one given by path can be the same. Two paths can be only if one redirects, which
        # reading has shown already.
        by_number, by_path = _doubtful(level, targets, busy, numbers)
        # One of the two sides is looked up: the shorter one costs fewer requests.
        if len(by_path) < len(by_number):
            answers = look_up(by_path, facts.roster)
            numbers |= {reference: number for reference, number in answers.items() if isinstance(number, int)}
            continue
        for target, path in look_up_paths(by_number, facts.roster).items():
            if isinstance(path, str) and isinstance(target.ref, int):
                numbers[Reference(level, path.casefold())] = target.ref
    return numbers


def _doubtful(
    level: Level,
    targets: Iterable[DesiredTarget],
    busy: Collection[tuple[Target, str]],
    target_ids: Mapping[Reference, int],
) -> tuple[set[Target], set[Reference]]:
    """Return the targets given by ID and those given by path that may be the same, if one of the two changes.

    Both must declare the section that changes, and nothing that was read identifies them.
    """
    placed = {number for reference, number in target_ids.items() if reference.level is level}
    by_number: dict[str, set[Target]] = {}
    by_path: dict[str, set[Target]] = {}
    for declared in targets:
        target = declared.target
        unknown = target.ref not in placed if isinstance(target.ref, int) else _number(target, target_ids) is None
        if target.level is level and unknown:
            for section in declared.sections:
                (by_number if isinstance(target.ref, int) else by_path).setdefault(section.kind, set()).add(target)
    some, others = set(), set()
    for name in by_number.keys() & by_path.keys():
        changing = {target for target, section in busy if section == name}
        # A target that stays as it is may be the same as one that changes.
        some |= by_number[name] & changing if changing.isdisjoint(by_path[name]) else by_number[name]
        others |= by_path[name] & changing if changing.isdisjoint(by_number[name]) else by_path[name]
    return some, {Reference(level, str(target.ref).casefold()) for target in others}


def _number(target: Target, target_ids: Mapping[Reference, int]) -> int | None:
    if isinstance(target.ref, str):
        return target_ids.get(Reference(target.level, target.ref.casefold()))
    return target.ref


def _find_archived(facts: Facts) -> Facts:
    """Look up which projects are archived, where that matters and no list shows it."""
    doubtful, moves = dict(_perhaps_archived(facts)), facts.roster.moves

    def ask(target: Target, reader: Reader) -> TargetRecord | ServiceError:
        place = Target(target.level, moves[target].number) if target in moves else target
        return answer_or_error(lambda: fetch_record(place, reader))

    records = ask_each(ask, doubtful, facts.roster)
    archived = {
        target: doubtful[target]
        for target, record in records.items()
        if isinstance(record, TargetRecord) and record.fields.get("archived") is True
    }
    return replace(facts, archived=archived)


def _is_archived(declared: DesiredTarget, facts: Facts) -> Iterator[Obstacle]:
    """Yield an obstacle for each changed section that is read-only in an archived project."""
    for section in facts.archived.get(declared.target, ()):
        yield unchangeable(section, facts.run.kinds, is_skipped=section.kind in declared.skipped)


def archived_check_requests(checked: Planned) -> int:
    """Return the number of requests that a plan would add to those of a check, to find archived projects."""
    facts = Facts(checked.run, checked.roster, checked.declared, checked.live, checked.compared, checked.obstacles)
    return sum(not facts.roster.remembers(target) for target, _ in _perhaps_archived(facts))


def _perhaps_archived(facts: Facts) -> Iterator[tuple[Target, tuple[Section, ...]]]:
    """Yield the projects that may be archived, each with the sections that would be read-only then."""
    kinds = facts.run.kinds
    changing = {
        (change.address.target, change.address.section)
        for change in facts.compared.changes
        if change.address.section and kinds[change.address.section].needs.archived is not Archived.OPEN
    }
    # A section that is refused for another reason needs no request to find out whether the project is archived.
    explained = {(obstacle.where.target, obstacle.where.section) for obstacle in facts.obstacles}
    listed = facts.declared.listed if changing else frozenset()
    for declared in facts.targets:
        target = declared.target
        refused = tuple(
            section
            for section in declared.sections
            if (target, section.kind) in changing and explained.isdisjoint(((target, section.kind), (target, "")))
        )
        is_known = target.identity in facts.live.absent or target.identity[1] in listed or _is_active(declared, facts)
        if target.level is Level.PROJECT and refused and not is_known:
            yield target, refused


def _is_active(declared: DesiredTarget, facts: Facts) -> bool:
    """Return whether a section was read that archived projects do not show, so that the project is not archived."""
    return any(
        not isinstance(facts.live.parts[section.target, section.kind, part], Unreadable)
        for section in declared.sections
        if facts.run.kinds[section.kind].needs.archived is Archived.CLOSED
        for part in section.wanted
    )


RULES = (
    Rule(
        Moment.DECLARED,
        _path_unknown,
        "the record of a target that is given by ID and uses its path: one request, unless a list shows it",
        checked=True,
    ),
    Rule(Moment.DECLARED, _sets_unknown, "the lists of the groups of sets: nothing besides"),
    Rule(
        Moment.DECLARED,
        _missing,
        "the record of a target with `create`: one request, and one for its import",
        absent=True,
    ),
    Rule(
        Moment.DECLARED,
        _has_former_path,
        "the record of a target whose path redirects: one request",
        absent=True,
    ),
    Rule(Moment.DECLARED, _lacks_section, "archived or switched off, by the lists of groups: nothing besides"),
    Rule(Moment.DECLARED, _is_below_the_top, "the path of a target to be created: nothing"),
    Rule(
        Moment.READ,
        _is_hidden_by_move,
        "the record of a target whose path redirects: one request",
        absent=True,
    ),
    Rule(Moment.EXPLAINED, _is_refused, "why something could not be read: nothing besides"),
    Rule(
        Moment.PLANNED,
        _has_moved,
        "the record of a target whose path redirects: one request, or asked before",
        checked=True,
    ),
    Rule(
        Moment.PLANNED,
        _is_declared_twice,
        look_up=_find_same,
        needs="the record of a target that may be another one too, if one of them changes: one request",
        checked=True,
    ),
    Rule(
        Moment.PLANNED,
        _is_archived,
        look_up=_find_archived,
        needs="the record of a project that no list shows, if an archived one refuses the change: one request",
    ),
)
"""All rules, in the order in which their obstacles are reported."""
