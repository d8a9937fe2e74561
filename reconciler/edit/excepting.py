"""Differences become exceptions in the targets' own documents: declared values stay, and count again later. Pure.

Begin with `accept_until`.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from reconciler.edit.differences import (
    CONTRADICTION,
    Acceptance,
    DifferencePlace,
    Drift,
    ManifestFiles,
    differences_of,
    number_of_changes,
    place,
    plan_again,
)
from reconciler.edit.drafts import Drafts, accepted
from reconciler.edit.edits import Drop, Edit, Except
from reconciler.manifests import Manifests
from reconciler.manifests.layers import DEFAULT_BRANCH, PRUNE, UNMANAGED, Stack, literal, placeholders_in
from reconciler.manifests.sources import Document, Steps
from reconciler.manifests.trace import declarations
from reconciler.model.item import Finding
from reconciler.model.kind import Kinds
from reconciler.model.state import Unreadable
from reconciler.model.targets import Key, Target


@dataclass(frozen=True, slots=True)
class Deferral:
    """The time for which differences are accepted, and the reason.

    Attributes:
        until: the last day.
        reason: for readers of plans and reports.
        only_locks: whether only values that break a lock are accepted.
    """

    until: date
    reason: str
    only_locks: bool = False

    def exception(self, section: str, written_name: Any, field_names: Iterable[str]) -> dict[str, Any]:
        """Return an entry of `metadata.exceptions`.

        Args:
            section: the section.
            written_name: the name of the item as a manifest writes it; None for the whole section.
            field_names: the fields; none for all.
        """
        about = {"section": section, **({} if written_name is None else {"item": written_name})}
        about |= {"fields": [*field_names]} if field_names else {}
        return {**about, "until": self.until.isoformat(), "reason": literal(self.reason)}


def accept_until(drift: Drift, kinds: Kinds, files: ManifestFiles, deferral: Deferral) -> Acceptance:
    """Return the manifests with an exception for each section or item that differs, about the fields that do.

    A value of an own document that breaks a lock is removed: the exception covers the locked value instead. Outside of
    the compared targets and sections, broken locks are ignored. These differences cannot be excepted: a target that
    does not exist yet, a section that cannot be read, a document that comes from a template.

    Args:
        drift: the differences; its manifests may break locks.
        kinds: all kinds.
        files: the places of the manifests.
        deferral: of the exceptions.

    Raises:
        ManifestErrors: a lock is broken in another way than by a value of an own document.
    """

    def attempt(closed: Mapping[str, str], drafts: Drafts) -> tuple[Drafts, int, list[Finding]]:
        return _Excepting(drift, kinds, deferral, closed).run(drafts)

    return accepted(
        drift, files, attempt, () if deferral.only_locks else drift.unacceptable, with_paths=not deferral.only_locks
    )


@dataclass(frozen=True, slots=True)
class _Excepting:
    """One attempt, with some files closed.

    Attributes:
        drift: see `accept_until`.
        kinds: all kinds.
        deferral: of the exceptions.
        closed: by file, the reason for which it must not change.
    """

    drift: Drift
    kinds: Kinds
    deferral: Deferral
    closed: Mapping[str, str]

    def run(self, drafts: Drafts) -> tuple[Drafts, int, list[Finding]]:
        """Return the documents with exceptions, the number of covered changes, and the others with reasons."""
        manifests, planned = self.drift.manifests, self.drift.planned
        # first without the values that break a lock: the locked values count then, and may differ from the live ones
        taken_out = [*self._returned()]
        broken = [self._in_whole(*needed) for edit in taken_out for needed in edit.needed_by]
        returned = drafts.edited(taken_out, {}, {})
        changed, _ = returned.documents
        sound = manifests.with_documents(changed, binds=self._binds)
        plan, live = plan_again(sound.desired, planned, self.drift.live, self.kinds)
        differences = [problem for problem in differences_of(plan) if self._is_meant(problem, broken)]
        asked = Counter(map(place, differences))
        reasons = {place(problem): why for problem in differences if (why := self._refusal(problem, sound))}
        excepted = (problem for problem in differences if place(problem) not in reasons)
        edits = [*self._edits(excepted, sound)]
        read: dict[Hashable, Document | Target] = {document: old for old, document in changed.items()}
        drafts = returned.edited(edits, read, {})
        changed, new = drafts.documents
        revised = manifests.with_documents(changed, new.values(), self._binds)
        plan, _ = plan_again(revised.desired, planned, live, self.kinds)
        remaining = [problem for problem in differences_of(plan) if self._is_meant(problem, broken)]
        covered = number_of_changes(asked - Counter(map(place, remaining)))
        return drafts, covered, [self._with_reason(problem, reasons) for problem in remaining]

    def _returned(self) -> Iterator[Edit]:
        """Yield the edits that remove values which break locks, in the compared sections."""
        for target, layer, steps in self.drift.manifests.deviations:
            if (target, steps[0]) in self.drift.planned and layer.document.source.path not in self.closed:
                yield Edit(layer.document, layer.document, steps, Drop(), [(target, steps)])

    def _binds(self, target: Target, steps: Steps) -> bool:
        """Whether a lock on a value counts: its section is compared."""
        if steps[0] in (PRUNE, UNMANAGED):
            return any(target == compared.target for compared in self.drift.desired.targets)
        return (target, steps[0]) in self.drift.planned

    def _is_meant(self, finding: Finding, broken: Iterable[tuple[Target, Steps]]) -> bool:
        """Return whether to accept a difference: any difference, or only that of a value that breaks a lock.

        An entry of a list has no steps of its own: if it is removed, a new difference appears.
        """
        if not self.deferral.only_locks or place(finding) not in self.drift.asked:
            return True
        address, field = finding.address, finding.field
        at = (address.section, *(() if address.name is None else (address.name,)), *(field.split(".") if field else ()))
        return any(target == address.target and at[: len(steps)] == steps[: len(at)] for target, steps in broken)

    def _in_whole(self, target: Target, steps: Steps) -> tuple[Target, Steps]:
        """Return steps of an own document with the canonical name of an item, as in differences."""
        whole = self.drift.manifests.of(target).stack
        section, *keys = steps
        spec = whole.specs[str(section)]
        name = [spec.normalize_key(str(key), whole.values) for key in keys[:1]] if spec.items else keys[:1]
        return target, (section, *name, *keys[1:])

    def _edits(self, findings: Iterable[Finding], sound: Manifests) -> Iterator[Edit]:
        """Yield an edit for each exception."""
        wholes = {whole.target: whole for whole in sound.stacks}
        fields: dict[tuple[Target, str, Key | None], list[str | None]] = {}
        for problem in findings:
            address = problem.address
            fields.setdefault((address.target, address.section, address.name), []).append(problem.field)
        for (target, section, item), differing in fields.items():
            named = [] if None in differing else [field for field in dict.fromkeys(differing) if field]
            exception = self.deferral.exception(section, _as_written(wholes[target], section, item), named)
            document, beside = _documents(target, section, wholes[target], sound)
            yield Edit(document, beside, (section,), Except(exception), [(target, (section,))])

    def _refusal(self, finding: Finding, sound: Manifests) -> str:
        """Return the reason for which a difference cannot be excepted; empty if it can."""
        target, section, part = finding.address.target, finding.address.section, finding.address.part
        if isinstance(self.drift.live.parts.get((target, section, part)), Unreadable):
            return finding.reason
        own = sound.index.targets.get(target.identity)
        file = own.document.source.path if own else ""
        return (
            f"its document is in {file}, {self.closed[file]}; write the exception there" if file in self.closed else ""
        )

    def _with_reason(self, finding: Finding, reasons: Mapping[DifferencePlace, str]) -> Finding:
        reason = reasons.get(place(finding)) or finding.reason or CONTRADICTION
        return replace(finding, reason=reason, fix=finding.fix if reason == finding.reason else "")


def _as_written(stack: Stack, section: str, item_name: Key | None) -> Key | None:
    """Return the name of an item as an exception writes it: with `{default_branch}` where it is declared with that.

    So the exception holds for the next default branch too, as the declaration does.
    """
    declared = declarations(stack, (section, item_name)) if isinstance(item_name, str) else ()
    names = (str(declaration.steps[-1]) for declaration in declared)
    by_default_branch = (name for name in names if DEFAULT_BRANCH in placeholders_in(name))
    return next(by_default_branch, literal(item_name))


def _documents(target: Target, section: str, stack: Stack, sound: Manifests) -> tuple[Document | None, Document]:
    """Return the own document of a target, None if it has none, and the document that declares the section."""
    own = sound.index.targets.get(target.identity)
    beside = next(layer for layer in reversed(stack.layers) if section in layer.sections).document
    return (own.document if own else None), beside
