"""The input and the result of `accept`: a `Drift` between manifests and live state, and an `Acceptance`. Pure."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from difflib import unified_diff
from functools import cached_property
from io import StringIO
from pathlib import Path

from reconciler.edit.completion import drawn
from reconciler.engine.compare.planner import make_plan
from reconciler.manifests import Manifests
from reconciler.manifests.sources import TEMPLATE
from reconciler.model.item import Change, Finding, Update, problem_at
from reconciler.model.kind import Kinds
from reconciler.model.plan import Plan
from reconciler.model.state import DesiredState, LiveState
from reconciler.model.targets import Address, Target

TO_CREATE = "does not exist, and `apply` creates it"
IN_TEMPLATE = "in a template"
ODD_LAYOUT = "whose layout would be lost"
CONTRADICTION = "manifests that agree with what is live would have errors"


@dataclass(frozen=True)
class Drift:
    """Manifests and live state, and the plan between the two.

    Attributes:
        manifests: with all known groups and paths.
        desired: the planned part of the manifests: only these targets and sections are accepted.
        plan: of that part.
        live: the live state, with the answers to lookups.
        inapplicable: the sections that a target cannot have; such a target prevents no change of its profiles and sets.
    """

    manifests: Manifests
    desired: DesiredState
    plan: Plan
    live: LiveState
    inapplicable: Set[tuple[Target, str]] = frozenset()

    @cached_property
    def _out(self) -> Set[Target]:
        """The targets of which no difference can be accepted: they are to be created, or cannot be read at all."""
        targets = self.plan.targets
        created = {plan.target for plan in targets if plan.creation}
        return created | {
            plan.target for plan in targets if any(p.address == plan.target.address for p in plan.problems)
        }

    @property
    def targets(self) -> int:
        """The number of compared targets."""
        return len(self.plan.targets) - len(self._out)

    @cached_property
    def planned(self) -> Set[tuple[Target, str]]:
        """The targets and sections that are accepted."""
        return {(t.target, s.kind) for t in self.desired.targets if t.target not in self._out for s in t.sections}

    @property
    def unacceptable(self) -> Iterator[Finding]:
        """The differences that cannot be accepted by any manifest."""
        yield from (p for p in self.plan.problems if (p.address.target, p.address.section) not in self.planned)
        created = (plan.target for plan in self.plan.targets if plan.creation)
        yield from (problem_at(target.address, TO_CREATE) for target in created)

    @property
    def asked(self) -> "Counter[DifferencePlace]":
        """The differences, by their places."""
        differences = differences_of(self.plan)
        return Counter(place(p) for p in differences if (p.address.target, p.address.section) in self.planned)


@dataclass(frozen=True, slots=True)
class ManifestFiles:
    """The places of manifests.

    Attributes:
        roots: the files and folders that are searched for manifests, as the user named them.
        closed: by file, as manifests name it, the reason for which it must not change.
    """

    roots: Sequence[Path]
    closed: Mapping[str, str] = field(default_factory=dict)

    def closed_among(self, manifests: Manifests) -> dict[str, str]:
        """Return by file the reason for which it must not change; documents of a template have no text of their own."""
        return {**self.closed, **{path: IN_TEMPLATE for path in manifests.files if path.endswith(TEMPLATE)}}


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Manifests that equal the live state.

    Attributes:
        before: by path, the texts of the files that change, without a byte order mark; a new file has none.
        texts: by path, the new texts of the files that change, and those of new files; sorted.
        targets: the number of compared targets.
        accepted: the number of changes and problems that the plan no longer has, or has in part.
        refused: the remaining changes and problems of the plan as problems, each with the reason.
    """

    before: Mapping[Path, str]
    texts: Mapping[Path, str]
    targets: int
    accepted: int
    refused: tuple[Finding, ...]

    def diff(self) -> Iterator[str]:
        """Yield the lines of a unified diff, as `git apply` reads it, each with its line break."""
        for path, text in self.texts.items():
            before = self.before.get(path)
            names = "/dev/null" if before is None else f"a/{path.as_posix()}", f"b/{path.as_posix()}"
            for line in unified_diff(_lines(before or ""), _lines(text), *names):
                yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def plan_again(
    desired: DesiredState, planned_sections: Collection[tuple[Target, str]], live: LiveState, kinds: Kinds
) -> tuple[Plan, LiveState]:
    """Return the plan of some targets and sections for live state, and live state in which lookups count as unknown."""
    targets = (
        replace(target, sections=tuple(s for s in target.sections if (target.target, s.kind) in planned_sections))
        for target in desired.targets
    )
    desired = replace(desired, targets=tuple(target for target in targets if target.sections))
    return drawn(lambda known: make_plan(desired, known, kinds), live)


def differences_of(plan: Plan) -> Iterator[Finding]:
    """Yield the differences in a plan, each as a problem: one for each field of an update."""
    for target in plan.targets:
        for section in map(target.only, ([name] for name in target.sections)):
            yield from (*section.problems, *_as_problems(section.changes))


DifferencePlace = tuple[Address, str | None]
"""The address and the field of a difference, which edits do not change."""


def place(problem: Finding) -> DifferencePlace:
    """Return the place of a difference."""
    return problem.address, problem.field


def number_of_changes(difference_counts: Counter[DifferencePlace]) -> int:
    """Return the number of changes and problems that some differences are: the fields of an update are one."""
    by_address: dict[Address, int] = {}
    for (address, _), number in difference_counts.items():
        by_address[address] = max(number, by_address.get(address, 0))
    return sum(by_address.values())


def _as_problems(changes: Iterable[Change]) -> Iterator[Finding]:
    """Yield a problem for each remaining change: of an update, one for each field."""
    for change in changes:
        for field_ in change.after if isinstance(change, Update) and change.renamed_from is None else (None,):
            yield problem_at(change.address, "", field_)


def _lines(text: str) -> list[str]:
    """Return the lines as `git` sees them: other line separators may be within a text."""
    return StringIO(text).readlines()
