"""The document in which a value is written so that a target has it: `place` decides by these rules. Pure.

1. A locked value stays; a minimum is never lowered.
2. A field changes in the topmost layer that declares it: the target's own document, or a profile or set.
3. A profile or set changes only if all its targets need the same change, except those to which its value makes no
   difference. A target that cannot have the section never prevents a change; an unread target always does.
4. Otherwise the target's own document declares the value, in its own spelling.
5. An item that must no longer be declared leaves all layers above the topmost null; if one of these cannot change, the
   item is null in the own document.
6. An item that must be declared again replaces its null, or the own document drops the null that hides it.
7. An item gets its former name back in all layers that declare it; if one of these cannot change, the own document has
   a null for the new name, and the whole item under the former one.
8. An entry of lists that unite leaves all layers or stays: no document can take it from the lists of others.
9. A field that must no longer be declared leaves the topmost layer or stays: no document can take it from another.
10. A new item goes into a profile or set whose `prune` counts for any target, if all its targets that may have the
    section need it; else into the own document.
"""

from collections.abc import Callable, Collection, Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product
from types import MappingProxyType
from typing import Any, NamedTuple

from reconciler.edit.edits import Add, Change, Drop, Edit, Put, Rename
from reconciler.manifests.layers import OLD_NAMES, Layer, Stack, fill, literal
from reconciler.manifests.locks import is_as_strict, lock_on
from reconciler.manifests.sources import Document, Steps
from reconciler.manifests.trace import Declaration, declarations
from reconciler.model.targets import Key, Target

Delta = Put | Drop | Rename | Add
"""A change that a target needs, at some steps of its merged spec.

The last step to an entry of a list is the entry's identity: see `Collection.identity`.
"""

NO_DELTAS: Mapping[Steps, Delta] = MappingProxyType({})
NOTHING_PREVENTED: Mapping[Steps, str] = MappingProxyType({})

Difference = tuple[Target, str, Key | None, str | None]
"""A target and a section, the name of an object in it, and its field; None means all."""


@dataclass(frozen=True, slots=True)
class Membership:
    """The targets of profiles and sets, and the changes of manifests that each needs.

    Attributes:
        stacks: by layer, its targets.
        deltas: by target, its changes by their steps.
        known: the targets and sections that were read; any other one prevents each change of its profiles and sets.
        inapplicable: the sections that a target cannot have: such a target never prevents a change of them.
        fixed: the layers with targets that are not known yet.
        prevented: by target, the changes that locks prevent, by their steps, with the reason; not among `deltas`.
    """

    stacks: Mapping[Layer, Sequence[Stack]]
    deltas: Mapping[Target, Mapping[Steps, Delta]]
    known: Container[tuple[Target, str]]
    inapplicable: Container[tuple[Target, str]] = ()
    fixed: Container[Layer] = ()
    prevented: Mapping[Target, Mapping[Steps, str]] = field(default_factory=dict)
    _verdicts: dict[tuple[Layer, Steps, str], bool] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(
        cls,
        stacks: Iterable[Stack],
        deltas_by_target: Mapping[Target, Mapping[Steps, Delta]],
        known_sections: Container[tuple[Target, str]],
        inapplicable: Container[tuple[Target, str]] = (),
        fixed: Container[Layer] = (),
    ) -> "Membership":
        """Return the members among some targets; deltas that a lock prevents are separated."""
        members: dict[Layer, list[Stack]] = {}
        prevented: dict[Target, Mapping[Steps, str]] = {}
        for stack in stacks:
            for layer in dict.fromkeys(stack.layers):
                members.setdefault(layer, []).append(stack)
            prevented[stack.target] = _prevented(stack, deltas_by_target.get(stack.target, NO_DELTAS))
        granted = {
            target: {steps: delta for steps, delta in own.items() if steps not in prevented[target]}
            for target, own in deltas_by_target.items()
        }
        return cls(members, granted, known_sections, inapplicable, fixed, prevented)

    def delta(self, stack: Stack, steps: Steps) -> Delta | None:
        """Return the delta of a target at some steps; None if the target needs none there."""
        return self.deltas.get(stack.target, NO_DELTAS).get(steps)

    def may_change(self, layer: Layer, at: Steps, delta: Delta) -> bool:
        """Whether a declared value may change: in an own document, or if all dependent targets need the same."""
        return not layer.title or self._all(layer, at, delta, lambda stack: self._dependent(stack, layer, at))

    def may_add(self, layer: Layer, at: Steps, delta: Delta) -> bool:
        """Whether a layer may declare a new item: all its targets that may have the section need it."""
        return not layer.title or self._all(layer, at, delta, lambda stack: _receiving(stack, at))

    def prunes(self, layer: Layer) -> bool:
        """Whether the `prune` of a layer counts for any of its targets."""
        return layer.prune is not None and any(_pruning(stack) is layer for stack in self.stacks[layer])

    def _all(self, layer: Layer, at: Steps, delta: Delta, concerned: Callable[[Stack], Steps | None]) -> bool:
        """Whether all concerned targets need the same delta.

        The result is kept, since thousands of targets may share a layer.
        """
        if layer in self.fixed:
            return False
        # By its `repr`: the values of a delta may be lists and mappings, which have no hash.
        question = layer, at, repr(delta)
        if question not in self._verdicts:
            places = ((stack, concerned(stack)) for stack in self.stacks[layer])
            self._verdicts[question] = all(
                steps is None or self._allows(stack, steps, delta) for stack, steps in places
            )
        return self._verdicts[question]

    def _dependent(self, stack: Stack, layer: Layer, at: Steps) -> Steps | None:
        """Return the steps to a layer's value in the spec of a target; None if it does not matter to the target."""
        steps = steps_in(stack, layer, at)
        if is_entry(stack, steps):
            return None if stack.leaves_alone(steps[0], steps[2], str(steps[1])) else steps
        if not is_merged(stack, steps) and self.delta(stack, steps) is None:
            return None
        declared = declarations(stack, steps)
        is_among = is_item(stack, steps) and any(other.layer is layer for other in _above_null(stack, steps))
        return steps if is_among or declared[-1].layer is layer else None

    def _allows(self, stack: Stack, steps: Steps, delta: Delta) -> bool:
        place = stack.target, steps[0]
        return place in self.inapplicable or (place in self.known and self.delta(stack, steps) == delta)


UNITED = "and lists unite: `unmanaged` in its own document lets go of it"
"""The reason for which an entry that a profile or set declares cannot be removed for one target."""


class Spot(NamedTuple):
    """A place where a document changes.

    Attributes:
        layer: the layer of the document.
        steps: as the layer writes them.
        change: the change.
        in_own: whether the target's own document changes instead of this layer: it overrides what the layer declares,
            and may not exist yet.
    """

    layer: Layer
    steps: Steps
    change: Change
    in_own: bool = False


Spots = list[Spot] | str
"""The places where a value is written; a text is the reason for which no document can be changed for one target."""


def place(delta: Delta, steps: Steps, stack: Stack, members: Membership) -> Spots:
    """Return the spots where a value is written.

    Args:
        delta: of the target.
        steps: to the value in its merged spec.
        stack: its layers.
        members: the targets of these layers.
    """
    prevented = members.prevented.get(stack.target, NOTHING_PREVENTED).get(steps)
    if prevented is not None:
        return prevented
    match delta:
        case Rename():
            spots: Spots = _rename(delta, steps, stack, members)
        case Add():
            spots = _add(delta, steps, stack, members)
        case Put() if is_item(stack, steps):
            revives = bool(declarations(stack, steps))
            spots = _revive(delta, steps, stack, members) if revives else _add(delta, steps, stack, members)
        case Put():
            spots = _put(delta, steps, stack, members)
        case _ if is_item(stack, steps):
            spots = _drop_item(delta, steps, stack, members)
        case _ if is_entry(stack, steps):
            spots = _drop_entry(delta, steps, stack, members)
        case _:
            spots = _drop_field(delta, steps, stack, members)
    return spots


def is_item(stack: Stack, steps: Steps) -> bool:
    """Whether steps lead to an item of a section."""
    return len(steps) == 2 and stack.specs[steps[0]].items is not None


def is_entry(stack: Stack, steps: Steps) -> bool:
    """Whether steps lead to an entry of a list of names."""
    return len(steps) == 3 and steps[1] in stack.specs[steps[0]].lists


def is_merged(stack: Stack, steps: Steps) -> bool:
    """Whether the merged spec of a target has a value at some steps."""
    here: Any = stack.sections
    for step in steps:
        if not isinstance(here, Mapping) or step not in here:
            return False
        here = here[step]
    return True


def steps_in(stack: Stack, layer: Layer, at: Steps) -> Steps:
    """Return the steps in the merged spec of a target, for steps of a layer; an entry of a list by its identity."""
    section, *written = at
    spec, values = stack.specs[section], stack.values if layer.normalized is None else None
    if len(written) == 2 and written[0] in spec.lists:
        name, index = written
        entry = spec.normalize_entry(name, layer.sections[section][name][index], values)
        return section, name, spec.lists[name].identity(entry)
    first, *others = written
    return (section, spec.normalize_key(first, values), *(fill(step, spec.values_of(values)) for step in others))


def _put(put: Put, steps: Steps, stack: Stack, members: Membership) -> Spots:
    if declared := declarations(stack, steps):
        layer, at, _ = declared[-1]
        may_change = members.may_change(layer, at, put)
    elif enclosing := declarations(stack, steps[:1]):
        layer, at = enclosing[-1].layer, tuple(map(literal, steps))
        may_change = members.may_add(layer, at, put)
    else:
        return [Spot(stack.layers[-1], steps, put, in_own=True)]
    return [Spot(layer, at, put)] if may_change else [_override(put, steps, stack, members, (layer, at))]


def _rename(rename: Rename, steps: Steps, stack: Stack, members: Membership) -> Spots:
    declared = declarations(stack, steps)
    if all(members.may_change(layer, at, rename) for layer, at, _ in declared):
        return [Spot(layer, at, rename) for layer, at, _ in declared]
    # other targets keep the name: the own document drops the item by null, and declares it under its former name
    section, name = steps
    fields = {key: literal(value) for key, value in stack.sections[section][name].items() if key != OLD_NAMES}
    for at, change in members.deltas[stack.target].items():
        if at[:2] == steps and len(at) > 2:
            _change(fields, at[2:], change)
    layer, at = next((layer, at) for layer, at, _ in reversed(declared) if layer.title)
    former: Steps = (section, rename.name)
    own = _spelt(stack, steps, at)[0], _spelt(stack, former, former)[0]
    return [Spot(layer, own[0], Put(None), in_own=True), Spot(layer, own[1], Put(fields), in_own=True)]


def _revive(put: Put, steps: Steps, stack: Stack, members: Membership) -> Spots:
    *lower, (layer, at, _) = declarations(stack, steps)
    # without the own null, the item of a profile or set is merged again
    if not layer.title and any(declaration.value is not None for declaration in lower):
        return [Spot(layer, at, Drop())]
    may_change = members.may_change(layer, at, put)
    return [Spot(layer, at, put) if may_change else _override(put, steps, stack, members, (layer, at))]


def _drop_item(delta: Drop, steps: Steps, stack: Stack, members: Membership) -> Spots:
    declared = _above_null(stack, steps)
    if all(members.may_change(layer, at, delta) for layer, at, _ in declared):
        return [Spot(layer, at, delta) for layer, at, _ in declared]
    layer, at = next((layer, at) for layer, at, _ in reversed(declared) if layer.title)
    return [_override(Put(None), steps, stack, members, (layer, at))]


def _drop_entry(delta: Drop, steps: Steps, stack: Stack, members: Membership) -> Spots:
    section, name, entry = steps
    spots = []
    for other in delta.together:
        for layer in dict.fromkeys(stack.layers):
            for at in _listed(stack, layer, section, name).get(other, ()):
                if not members.may_change(layer, at, delta):
                    title, declaration = stack.specs[section].lists[name].title, Declaration(layer, at, None)
                    return f"{declaration} lists the {title} {other} for other targets too, {UNITED}"
                spots += [Spot(layer, at, delta)] if other == entry else []
    return spots


def _drop_field(delta: Drop, steps: Steps, stack: Stack, members: Membership) -> Spots:
    counting = {declaration.layer for declaration in _above_null(stack, steps[:2])}
    declared = declarations(stack, steps)
    *lower, (layer, at, _) = [each for each in declared if each.layer in counting] or declared
    below_spots = [
        Spot(below, spelt, delta) for below, spelt, _ in reversed(lower) if members.may_change(below, spelt, delta)
    ]
    may_change = members.may_change(layer, at, delta)
    if steps[-1] == OLD_NAMES and not (may_change and len(below_spots) == len(lower)):
        return [_override(Put([]), steps, stack, members, declared[-1][:2])]
    if may_change:
        return [Spot(layer, at, delta), *below_spots]
    return f"{Declaration(layer, at, None)} declares it for other targets too"


def _add(addition: Put | Add, steps: Steps, stack: Stack, members: Membership) -> Spots:
    section, name, *_ = steps
    spec, pruned = stack.specs[section], section in stack.prune
    declared = declarations(stack, steps[:2]) if spec.items is None else []
    declaring = [declaration.layer for declaration in declared or declarations(stack, steps[:1])]
    asking = [layer for layer in stack.layers if members.prunes(layer)] if pruned else declaring
    shared = [layer for layer in dict.fromkeys(asking) if layer.title]
    own = steps[:2] if spec.items is None else (section, literal(name))
    places = [steps] if spec.items is None else [*dict.fromkeys(((section, spec.shared_key(name, stack.target)), own))]
    # the key with placeholders first: it is the name of the object in every target
    for layer, at in product(shared, places):
        if members.may_add(layer, at, addition):
            return [Spot(layer, at[:2], addition)]
    return [_override(addition, own, stack, members, (_pruning(stack) if pruned else declaring[-1], own))]


def _override(
    addition: Put | Add, steps: Steps, stack: Stack, members: Membership, beside: tuple[Layer, Steps]
) -> Spot:
    """Return the change of a target's own document that overrides what a layer declares at some steps.

    It is in the own document's spelling; an item that gets its former name back is written under that name.
    """
    layer, at = beside
    spelt, length = _spelt(stack, steps, at)
    rename = members.delta(stack, steps[:2])
    own = (spelt[0], rename.name, *spelt[2:]) if isinstance(rename, Rename) and length < 2 else spelt
    return Spot(layer, own, addition, in_own=True)


def _pruning(stack: Stack) -> Layer:
    """Return the layer whose `prune` counts for a target."""
    return next(layer for layer in reversed(stack.layers) if layer.prune is not None)


def _is_as_strict(stack: Stack, steps: Steps, delta: Delta) -> bool:
    """Whether a delta sets a field to a value that its minimum allows."""
    is_field = not (is_item(stack, steps) or is_entry(stack, steps))
    return is_field and isinstance(delta, Put) and is_as_strict(stack, steps, delta.value)


def _prevented(stack: Stack, own_deltas: Mapping[Steps, Delta]) -> Mapping[Steps, str]:
    """Return the deltas that a lock or a minimum prevents, and those within such a delta, each with the reason."""
    prevented: dict[Steps, str] = {}
    # outer values first: within a prevented change, nothing changes either
    for steps in sorted(own_deltas, key=len) if stack.has_locks else ():
        enclosing = next(
            (prevented[steps[:length]] for length in range(1, len(steps)) if steps[:length] in prevented), None
        )
        lock = lock_on(stack, steps) if enclosing is None else None
        if enclosing or (lock and not (lock.is_minimum and _is_as_strict(stack, steps, own_deltas[steps]))):
            prevented[steps] = enclosing or f"{lock and lock.words}: change it there"
    return prevented


def _receiving(stack: Stack, at: Steps) -> Steps | None:
    """Return the steps to a new item of a layer in the spec of a target; None if it cannot have the section."""
    section, name, *entry = at
    spec = stack.specs[section]
    if stack.target.level not in spec.kind.models or section in stack.unmanaged:
        return None
    steps: Steps = (section, name if entry else spec.normalize_key(name, stack.values), *entry)
    if is_entry(stack, steps):
        return None if stack.leaves_alone(section, steps[2], name) else steps
    return None if is_item(stack, steps) and stack.leaves_alone(section, steps[1]) else steps


def _above_null(stack: Stack, steps: Steps) -> Sequence[Declaration]:
    """Return the declarations above the topmost null of an item, lowest first: only they are merged."""
    declared = declarations(stack, steps)
    nulls = [number for number, declaration in enumerate(declared) if declaration.value is None]
    return declared[nulls[-1] + 1 if nulls else 0 :]


@lru_cache(maxsize=1024)  # accept places the deltas of one target after those of all others
def _listed(stack: Stack, layer: Layer, section: str, name: str) -> Mapping[Hashable, list[Steps]]:
    """Map the identity of each entry of a list to its places in the layer."""
    places: dict[Hashable, list[Steps]] = {}
    for index in range(len(layer.sections.get(section, {}).get(name, ()))):
        at: Steps = (section, name, index)
        places.setdefault(steps_in(stack, layer, at)[-1], []).append(at)
    return places


def _spelt(stack: Stack, steps: Steps, at: Steps) -> tuple[Steps, int]:
    """Return steps in the spelling of the own document, where it declares them; and the number of such steps."""
    own = stack.layers[-1]
    for length in range(0 if own.title else len(steps), 0, -1):
        for layer, spelt, _ in declarations(stack, steps[:length]):
            if layer is own:
                return (*spelt, *at[length:]), length
    return at, 0


def _change(item_fields: dict[str, Any], steps: Steps, delta: Delta) -> None:
    """Change a field of an item, or a key of a field."""
    name, *keys = steps
    holder = item_fields if not keys else item_fields.setdefault(name, {})
    if isinstance(delta, Put):
        holder[keys[0] if keys else name] = delta.value
    else:
        holder.pop(keys[0] if keys else name, None)


@dataclass(frozen=True, slots=True)
class Placement:
    """The edits that carry out deltas.

    Attributes:
        closed: the files that must not change, each with the reason.
        edits: by document, or the target without one, and by steps there.
        refused: by difference, the reason for which its delta is not carried out.
    """

    closed: Mapping[str, str]
    edits: dict[tuple[Document | Target, Steps], Edit] = field(default_factory=dict)
    refused: dict[Difference, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        stacks: Iterable[Stack],
        members: Membership,
        closed: Mapping[str, str],
        restated: Collection[tuple[Target, str]] = (),
    ) -> "Placement":
        """Place all deltas of some targets: former names first, new items last.

        Args:
            stacks: their layers.
            members: all targets of these layers, with their deltas.
            closed: see `Placement`.
            restated: targets, each with a section that its own document has to declare as a whole, since the document
                is read before the sets of the target are known.
        """
        placement = cls(closed)
        new = []
        for stack in (stack for stack in stacks if stack.target in members.deltas):
            for steps, reason in members.prevented[stack.target].items():
                placement._refuse(stack, steps, reason)
            replaced = set()
            deltas = members.deltas[stack.target]
            for steps, delta in sorted(deltas.items(), key=lambda item: not isinstance(item[1], Rename)):
                if _is_new(stack, steps, delta):
                    new.append((stack, steps, delta))
                elif steps[:2] not in replaced:  # the new item has these changes already
                    spots = placement._carry_out(stack, steps, delta, members)
                    replaced |= {steps} if isinstance(delta, Rename) and spots[0].in_own else set()
            for section in {steps[0] for steps in deltas if (stack.target, steps[0]) in restated}:
                placement._restate(stack, section, members)
        for stack, steps, delta in new:
            placement._carry_out(stack, steps, delta, members)
        return placement

    def _carry_out(self, stack: Stack, steps: Steps, delta: Delta, members: Membership) -> list[Spot]:
        spots = place(delta, steps, stack, members)
        if isinstance(spots, str):
            self._refuse(stack, steps, spots)
            return []
        is_field = not (is_item(stack, steps) or is_entry(stack, steps))
        uncovered = is_field and not is_merged(stack, steps) and bool(declarations(stack, steps))
        is_revival = is_item(stack, steps) and isinstance(delta, Put) and bool(declarations(stack, steps))
        for spot in spots:
            goes = is_field and isinstance(delta, Drop) and bool(spot.layer.title) and not spot.in_own
            self._note(stack, steps, spot, is_conditional=uncovered or goes, is_revival=is_revival)
        return spots

    def _restate(self, stack: Stack, section: str, members: Membership) -> None:
        """Declare all declared fields of a section in the target's own document."""
        values = {
            (section, name, *keys): value[keys[0]] if keys else value
            for name, value in stack.sections[section].items()
            for keys in ([(key,) for key in value] if isinstance(value, dict) else [()])
        }
        deltas = {steps: members.delta(stack, steps) for steps in values}
        for steps in [steps for steps, delta in deltas.items() if not isinstance(delta, Drop)]:
            delta, (layer, at, _) = deltas[steps], declarations(stack, steps)[-1]
            change = delta if isinstance(delta, Put) else Put(literal(values[steps]))
            self._note(stack, steps, _override(change, steps, stack, members, (layer, at)))

    def _note(
        self, stack: Stack, steps: Steps, spot: Spot, *, is_conditional: bool = False, is_revival: bool = False
    ) -> None:
        """Record the edit of a document, unless its file is closed."""
        own, at = stack.layers[-1], spot.steps
        layer = own if spot.in_own and not own.title else spot.layer
        document = None if spot.in_own and own.title else layer.document
        reason = self.closed.get(layer.document.source.path) if document else None
        if reason is not None:
            named = (*at[:-1], steps_in(stack, layer, at)[-1]) if isinstance(at[-1], int) else at
            self._refuse(stack, named, f"declared at {Declaration(layer, at, None)}, {reason}; change it there")
            return
        shared = document is not None and bool(layer.title)
        needed_by = [(stack.target, steps)]
        is_own = layer is own and not own.title
        lower_depth = _lower_depth(stack, steps) if is_own and isinstance(spot.change, Drop) else 0
        is_revival = shared and is_revival
        edit = Edit(
            document, layer.document, at, spot.change, needed_by, shared, is_conditional, is_revival, lower_depth
        )
        entry = (str(spot.change.value),) if isinstance(spot.change, Add) else ()
        noted = self.edits.setdefault((edit.place, (*at, *entry)), edit)
        if noted is not edit:
            noted.needed_by.extend(edit.needed_by)

    def _refuse(self, stack: Stack, steps: Steps, reason: str) -> None:
        section, *names = steps
        spec = stack.specs[section]
        is_named = spec.items is None and names[0] in spec.lists
        name = names.pop(0) if spec.items is not None else names[-1] if is_named else None
        self.refused[stack.target, section, name, None if is_named else ".".join(map(str, names)) or None] = reason


def _lower_depth(stack: Stack, steps: Steps) -> int:
    """Return the depth at which profiles or sets declare for a document: 0 (nowhere), 1 (section) or 2 (item)."""
    enclosing = [steps[:length] for length in range(1, 3 if stack.specs[steps[0]].items else 2) if length < len(steps)]
    return sum(any(each.layer.title and each.value is not None for each in declarations(stack, at)) for at in enclosing)


def _is_new(stack: Stack, steps: Steps, delta: Delta) -> bool:
    """Whether a delta adds an item or an entry that no layer declares."""
    return isinstance(delta, Add) or (
        isinstance(delta, Put) and is_item(stack, steps) and not declarations(stack, steps)
    )
