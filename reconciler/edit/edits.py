"""Edits of documents, and the values of documents after edits. Pure. Begin with `Edit` and `edited_value`."""

from collections.abc import Callable, Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from reconciler.edit.yaml_edit import RenamedKey
from reconciler.manifests.layers import OLD_NAMES, Layer, SectionSpecs, Stack, braces, has_placeholder
from reconciler.manifests.sources import Document, Steps
from reconciler.model.targets import Target


@dataclass(frozen=True, slots=True)
class Put:
    """A field or an item gets a value, as a manifest writes it."""

    value: Any


@dataclass(frozen=True, slots=True)
class Drop:
    """A declared field, item or entry is removed.

    Attributes:
        together: the identities of all entries that name the same object, such as a path and an ID: one that is kept
            keeps the object declared. It is not compared: targets may declare the same object by different entries.
    """

    together: tuple[Hashable, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Rename:
    """An item gets its former name back, as a manifest writes it."""

    name: str


@dataclass(frozen=True, slots=True)
class Add:
    """A list gets another entry, as a manifest writes it."""

    value: Any


@dataclass(frozen=True, slots=True)
class Except:
    """A deviation is accepted for a while: a new entry of `metadata.exceptions`, as a manifest writes it."""

    exception: Mapping[str, Any]


Change = Put | Drop | Rename | Add | Except


@dataclass(frozen=True, slots=True)
class Edit:
    """One change of one document.

    Attributes:
        document: None for the new document of a target without one.
        declared_in: the document that declares the value so far.
        steps: from the spec down, as the document writes them; to a list, if an entry is appended.
        change: the change.
        needed_by: the targets that need it, each with the steps in its merged spec.
        shared: whether the document is a profile or a set.
        is_conditional: whether other edits may make it unnecessary: it removes a field from a profile or set, or
            changes a value that other edits uncover.
        is_revival: whether it replaces the null of an item in a profile or set.
        lower_depth: the number of first steps that lead to values which lower layers declare too: below them, the own
            document drops mappings and lists that become empty.
    """

    document: Document | None
    declared_in: Document
    steps: Steps
    change: Change
    needed_by: list[tuple[Target, Steps]]
    shared: bool = False
    is_conditional: bool = False
    is_revival: bool = False
    lower_depth: int = 0

    @property
    def section(self) -> str:
        """The section that changes."""
        return str(self.steps[0])

    @property
    def place(self) -> Document | Target:
        """The document, or the target that does not have one yet."""
        return self.document or self.needed_by[0][0]

    @property
    def targets(self) -> list[Target]:
        """The targets that need the edit."""
        return [target for target, _ in self.needed_by]

    @property
    def uncovers(self) -> bool:
        """Whether the edit removes an item from a profile or set, so that a null in a lower layer counts."""
        is_drop = self.shared and isinstance(self.change, Drop) and len(self.steps) == len(("section", "item"))
        return is_drop and not self.is_conditional


def by_place(edits: Iterable[Edit]) -> dict[Document | Target, list[Edit]]:
    """Return the edits by their places."""
    grouped: dict[Document | Target, list[Edit]] = {}
    for edit in edits:
        grouped.setdefault(edit.place, []).append(edit)
    return grouped


def edited_value(value: Any, edits: Iterable[Edit], kept: Container[str], specs: SectionSpecs) -> Any:
    """Return the value of a document after edits: renamed keys last, and of a list the last entry first.

    Args:
        value: of the document.
        edits: of it.
        kept: the sections whose empty lists and mappings have a meaning.
        specs: of all sections.
    """
    changed = copied(value)
    spec = changed.setdefault("spec", {})
    renames: dict[Steps, dict[str, str]] = {}
    # The last entry of a list first: a removal must not move an entry that another edit names by its index.
    for edit in sorted(edits, key=lambda edit: _backwards(edit.steps)):
        match edit.change:
            case Put(value=new):
                _holder(spec, edit.steps)[edit.steps[-1]] = new
            case Add(value=new):
                _holder(spec, edit.steps).setdefault(edit.steps[-1], []).append(new)
            case Except(exception=exception):
                _except(changed.setdefault("metadata", {}).setdefault("exceptions", []), exception)
            case Drop():
                has_items = specs[edit.section].items is not None
                fields, is_kept = 3 if has_items else 2, has_items or edit.section in kept
                _drop(spec, edit.steps, kept=edit.lower_depth if is_kept else len(edit.steps), field_depth=fields)
            case _:
                renames.setdefault(edit.steps[:-1], {})[edit.steps[-1]] = edit.change.name
    for above, names in renames.items():
        _rename(_holder(spec, (*above, "")), names)
    if not spec and value.get("spec") != {}:
        del changed["spec"]
    return changed


def edited_stack(
    stack: Stack,
    edits_by_place: Mapping[Document | Target, Sequence[Edit]],
    section_names: Container[str],
    kept: Container[str],
) -> Stack:
    """Return some sections of a target as they are merged after edits of its layers.

    Args:
        stack: the layers.
        edits_by_place: as of `by_place`.
        section_names: their names.
        kept: see `edited_value`.
    """
    layers = list(stack.layers)
    if stack.target in edits_by_place:
        layers.append(Layer(edits_by_place[stack.target][0].declared_in, "", {}, None, {}, {}))
    places = [layer.document for layer in stack.layers] + [stack.target] * (len(layers) - len(stack.layers))
    merged = (
        _edited_layer(layer, edits_by_place.get(place, ()), stack, section_names, kept)
        for layer, place in zip(layers, places, strict=True)
    )
    return stack.of(*merged)


def _edited_layer(
    layer: Layer, edits: Sequence[Edit], stack: Stack, section_names: Container[str], kept: Container[str]
) -> Layer:
    """Return some sections of a layer after edits."""
    declared = {name: section for name, section in layer.sections.items() if name in section_names}
    own = [edit for edit in edits if edit.section in section_names]
    if own:
        declared = edited_value({"spec": declared}, own, kept, stack.specs).get("spec", {})
    # placeholders mean another value for each target
    if layer.normalized is None or any(has_placeholder(text) for text, *_ in braces(declared if own else {})):
        return replace(layer, sections=declared, normalized=None)
    normalized = (
        {name: stack.specs[name].normalize(section, None) for name, section in declared.items()}
        if own
        else {name: layer.normalized[name] for name in declared}
    )
    return replace(layer, sections=declared, normalized=normalized)


def copied(value: Any, key_of: Callable[[Any], Any] = lambda key: key) -> Any:
    """Return a copy of a value; keys as `key_of` returns them."""
    match value:
        case dict():
            return {key_of(name): copied(inner, key_of) for name, inner in value.items()}
        case list():
            return [copied(inner, key_of) for inner in value]
    return value


def _drop(raw_spec: Any, steps: Steps, *, kept: int, field_depth: int) -> None:
    """Remove a value, and the containers that become empty and then have no meaning.

    Args:
        raw_spec: of a document.
        steps: to the value.
        kept: the number of steps up to the deepest section, item or list that has no meaning when it is empty.
        field_depth: the number of steps to a field; an empty field that had keys of its own has no meaning.
    """
    holder = _holder(raw_spec, steps)
    del holder[steps[-1]]
    is_in_field = isinstance(holder, dict) and len(steps) > field_depth
    if not holder and len(steps) > 1 and (is_in_field or len(steps) - 1 <= kept):
        _drop(raw_spec, steps[:-1], kept=kept, field_depth=field_depth)


def _except(written_exceptions: list[Any], exception: Mapping[str, Any]) -> None:
    """Add an exception; it replaces one for the same object and fields, such as one that has expired."""
    about = _about(exception)
    written_exceptions[:] = [other for other in written_exceptions if _about(other) != about]
    written_exceptions.append(dict(exception))


def _about(exception: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in exception.items() if key not in {"until", "reason"}}


def _backwards(steps: Steps) -> tuple[int, ...]:
    return tuple(-step for step in steps[-1:] if isinstance(step, int))


def _holder(raw_spec: Any, steps: Steps) -> Any:
    """Return the mapping or list that contains a value; mappings on the way are created."""
    here = raw_spec
    for step in steps[:-1]:
        if isinstance(here, dict) and here.get(step) is None:
            here[step] = {}
        here = here[step]
    return here


def _rename(holder: dict[str, Any], new_names: Mapping[str, str]) -> None:
    """Give items their present names again, in their places, and remove the former names."""
    for key, value in list(holder.items()):
        del holder[key]
        if isinstance(value, dict) and key in new_names:
            value.pop(OLD_NAMES, None)
        written = key.former if isinstance(key, RenamedKey) else key
        holder[RenamedKey(new_names[key], written) if key in new_names else key] = value
