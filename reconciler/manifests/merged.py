"""One merged target: its desired state, and the place in the manifests from which each of its values comes.

`targets` creates a `MergedTarget` for each target; `explain`, plans and reports ask it for places.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reconciler.manifests.creation import CREATE_KEY
from reconciler.manifests.diagnostics import Diagnostic
from reconciler.manifests.exceptions import exceptions_on
from reconciler.manifests.layers import (
    DEFAULT_BRANCH,
    NAMES,
    PATH_NAMES,
    PRUNE,
    UNMANAGED,
    SectionSpec,
    Stack,
    fill_all,
    literal,
    placeholders_in,
    unfilled,
)
from reconciler.manifests.locks import lock_on
from reconciler.manifests.trace import declarations, field_path, find, object_path
from reconciler.manifests.validation import may_be_renamed, names_taken
from reconciler.model.endpoints import Collection
from reconciler.model.obstacle import Obstacle
from reconciler.model.state import DesiredTarget
from reconciler.model.targets import Address, Key


@dataclass(frozen=True, slots=True)
class MergedTarget:
    """A target as the planner gets it, and the layers behind it.

    Attributes:
        desired: its sections, checked.
        stack: its layers, and the spec that they merge into.
        diagnostics: the errors and the advice about its sections.
        contradictions: by section, what contradicts the name of the default branch.
    """

    desired: DesiredTarget
    stack: Stack
    diagnostics: tuple[Diagnostic, ...] = ()
    contradictions: Mapping[str, Obstacle] = field(default_factory=dict)
    _taken: dict[str, Mapping[str, str]] = field(default_factory=dict, compare=False, repr=False)
    """By section, the names that its items have or had, once they were asked for."""

    @property
    def spec(self) -> dict[str, Any]:
        """The merged spec."""
        stack = self.stack
        head: dict[str, Any] = {PRUNE: stack.prune} if stack.prune else {}
        if stack.unmanaged or stack.let_go:
            written = stack.layers[-1].document.value["spec"][UNMANAGED]
            head[UNMANAGED] = fill_all(written, stack.values)
        return {**head, **stack.sections}

    @property
    def as_written(self) -> dict[str, Any]:
        """The merged spec as one manifest writes it, with literal braces doubled."""
        values = self.stack.values
        if values is None:
            return self.spec
        names = NAMES if DEFAULT_BRANCH in values else PATH_NAMES
        return {key: literal(value, names) for key, value in self.spec.items()}

    def unmanaged(self, field: str) -> str:
        """Return the place where the target's document leaves a section, or one object, alone; empty if it does not.

        Args:
            field: the section, or the section and the object, joined by a dot.

        Returns:
            The place, as `path:line`.
        """
        document = self.stack.layers[-1].document
        section, _, inner = field.partition(".")
        if section in self.stack.unmanaged:
            return document.find(("spec", UNMANAGED)).line
        named = (each for each in self.stack.let_go if each.section == section)
        is_list = self.stack.specs[section].items is None if section in self.stack.specs else False
        entries = (each for each in named if is_list or f"{inner}.".startswith(f"{each.name}."))
        return next((document.find(("spec", *each.steps)).line for each in entries), "")

    def hands_down(self, section: str) -> bool:
        """Whether the objects of this group in a section apply to all targets below the group too."""
        spec = self.stack.specs.get(section)
        return spec is not None and any(
            isinstance(part, Collection) and part.listing.inherits for part in spec.kind.parts
        )

    def origin(self, address: Address, field: str | None = None) -> str:
        """Return the place of an object, a field of it, or its creation, as `path:line`; empty if it is not declared.

        For an undeclared object of a pruned section, the place is the section's entry in `prune`.
        """
        stack = self.stack
        if self.desired.creation and not address.section:
            return stack.layers[-1].document.find((CREATE_KEY,), at_key=True).line
        if address.section not in stack.sections:
            return ""
        part = () if address.part == address.section else (address.part,)
        steps = object_path(stack, address.section, part, address.name, field)
        if address.name is not None and len(steps) <= 1 + len(part) and address.section in stack.prune:
            steps = (PRUNE, stack.prune.index(address.section))
        return find(stack, steps, at_key=True)[1].line

    def declaration(self, address: Address, others: Iterable[Key] = ()) -> tuple[str, tuple[str, ...]] | None:
        """Return the place of an item in the lowest layer, as `path:line`, and names as they would be written there.

        Args:
            address: of the item.
            others: further names, of the same target.

        Returns:
            The place; the item's own name and the further names, with the placeholders that the item's own name has.
            None if no layer declares the item, or if `validate` would refuse the further names as its former names.
        """
        section = self.stack.sections.get(address.section)
        if not isinstance(section, dict) or address.name not in section:
            return None
        spec, olds = self.stack.specs[address.section], list(map(str, others))
        if olds and not self._may_be_renamed(spec, address.section, str(address.name), olds):
            return None
        declared = declarations(self.stack, (address.section, address.name))
        lowest = next((declaration for declaration in declared if declaration.value is not None), declared[0])
        own_name = str(lowest.steps[-1])
        if olds and DEFAULT_BRANCH in placeholders_in(own_name):
            return None  # the default branches of other projects have had other names
        values = self.stack.values or {}
        used = {name: value for name, value in values.items() if name in placeholders_in(own_name)}
        return lowest.line, (own_name, *(unfilled(other, used) for other in olds))

    def _may_be_renamed(self, spec: SectionSpec, section: str, name: str, olds: list[str]) -> bool:
        items = self.stack.sections[section]
        taken = self._taken.get(section) or self._taken.setdefault(section, names_taken(items))
        is_free = all(taken.get(old, name) == name for old in olds)
        return is_free and may_be_renamed(spec, name, items[name], olds, self.stack.target.level)

    def remarks(self, key_path: Sequence[str | int]) -> list[str]:
        """Return a line for the lock or the minimum of a field, and a line for each exception that covers the field.

        Args:
            key_path: the keys from the spec downwards.
        """
        lock = lock_on(self.stack, tuple(key_path))
        exceptions = exceptions_on(self.desired.exceptions, self.stack, tuple(key_path))
        return [
            *([lock.words] if lock else []),
            *(f"excepted until {accepted.until}: {accepted.reason} ({accepted.origin})" for accepted in exceptions),
        ]

    def explain(self, path_or_keys: str | Sequence[str | int]) -> list[tuple[str, Any]]:
        """Return `path:line` and value of each layer that sets a field, lowest first; nothing if none does.

        Args:
            path_or_keys: the keys from the spec downwards, as a sequence or joined by dots; a key may hold dots.
        """
        steps = field_path(path_or_keys, self.spec) if isinstance(path_or_keys, str) else tuple(path_or_keys)
        declared = declarations(self.stack, steps) if steps else ()
        return [(declaration.line, declaration.value) for declaration in declared]
