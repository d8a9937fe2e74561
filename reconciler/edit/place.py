"""Where a value is written so that a target has it: `place`, by these rules. Pure.

1. What a lock holds stays as it is.
2. A field changes in the topmost layer that declares it: the target's own document, or a profile or set.
3. A profile or set changes only if all its targets wish the same, as far as it matters to them what stands there. A
   target that cannot have the section agrees to anything; one that was not read agrees to nothing.
4. Where they do not agree, the target's own document declares the value, in its own spelling.
5. An item that is to go leaves all layers above the topmost null; unless all agree, it is null in the own document.
6. An item that is to come back takes the place of its null, or uncovers the item beneath a null in the own document.
7. An item gets its former name back in all layers that declare it; unless all agree, the own document has a null for
   the new name, and the whole item under the former one.
8. An entry of lists that unite leaves all layers or stays: no document can take it from the others' lists.
9. A field that is to go leaves the topmost layer or stays: no document can take it from another.
10. What is new goes into a profile or set whose `prune` counts for any target, if all its targets that may have the
    section wish for it; else into the own document.
"""

from collections.abc import Callable, Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product
from types import MappingProxyType
from typing import Any

from reconciler.manifests.sources import Steps
from reconciler.manifests.stack.layers import Layer, Stack
from reconciler.manifests.stack.locks import lock_on
from reconciler.manifests.stack.placeholders import fill, literal
from reconciler.manifests.stack.sections import OLD_NAMES
from reconciler.manifests.stack.trace import Declaration, declarations
from reconciler.model.targets import Target


@dataclass(frozen=True, slots=True)
class Put:
    """A declared field gets another value, which is as a manifest writes it."""

    value: Any


@dataclass(frozen=True, slots=True)
class Drop:
    """A declared field, item or entry is not there.

    Attributes:
        together: the identities of all entries that stand for the same object, such as a path and an ID; one that stays
            keeps the object declared. Targets agree whichever they have.
    """

    together: tuple[Hashable, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Revive:
    """An item that must not exist is there; `fields` are what is declared of it if nothing else declares it."""

    fields: Any


@dataclass(frozen=True, slots=True)
class Rename:
    """An item is there by its former name, which is as a manifest writes it."""

    name: str


@dataclass(frozen=True, slots=True)
class Add:
    """An item, or an entry of a list, is there and would be deleted.

    Attributes:
        value: the fields of the item, or the entry, as a manifest writes them.
    """

    value: Any


Wish = Put | Drop | Revive | Rename | Add
"""One change of what is declared for a target, at some steps of its merged spec.

The last step to an entry of a list is the entry's identity: see `Collection.identity`.
"""

NO_WISHES: Mapping[Steps, Wish] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Membership:
    """The targets of profiles and sets, and what each wishes.

    Attributes:
        stacks: by layer, its targets.
        wishes: by target, its wishes by their steps.
        known: the targets and sections that agree to what they wish; others agree to nothing.
        inapplicable: sections that a target cannot have: it agrees to any value.
        fixed: the layers that have targets which nobody knows.
        held: by target, the wishes that locks prevent, by their steps; these are not among `wishes`.
    """

    stacks: Mapping[Layer, Sequence[Stack]]
    wishes: Mapping[Target, Mapping[Steps, Wish]]
    known: Container[tuple[Target, str]]
    inapplicable: Container[tuple[Target, str]] = ()
    fixed: Container[Layer] = ()
    held: Mapping[Target, Mapping[Steps, "NoPlace"]] = field(default_factory=dict)
    _verdicts: dict[tuple[Layer, Steps, str], bool] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(
        cls,
        stacks: Iterable[Stack],
        wishes: Mapping[Target, Mapping[Steps, Wish]],
        known: Container[tuple[Target, str]],
        inapplicable: Container[tuple[Target, str]] = (),
        fixed: Container[Layer] = (),
    ) -> "Membership":
        """Return the members among some targets; no target counts on a wish that a lock prevents."""
        members: dict[Layer, list[Stack]] = {}
        held: dict[Target, Mapping[Steps, NoPlace]] = {}
        for stack in stacks:
            for layer in dict.fromkeys(stack.layers):
                members.setdefault(layer, []).append(stack)
            held[stack.target] = _held(stack, wishes.get(stack.target, NO_WISHES))
        granted = {
            target: {steps: wish for steps, wish in wished.items() if steps not in held[target]}
            for target, wished in wishes.items()
        }
        return cls(members, granted, known, inapplicable, fixed, held)

    def wish(self, stack: Stack, steps: Steps) -> Wish | None:
        """Return what a target wishes at some steps."""
        return self.wishes.get(stack.target, NO_WISHES).get(steps)

    def agree(self, layer: Layer, at: Steps, wish: Wish) -> bool:
        """Whether what a layer declares may change: it is an own document, or all that depend on it wish the same."""
        return not layer.title or self._all(layer, at, wish, lambda stack: self._dependent(stack, layer, at))

    def agree_to_add(self, layer: Layer, at: Steps, wish: Wish) -> bool:
        """Whether a layer may declare something new: all its targets that may have the section wish for it."""
        return not layer.title or self._all(layer, at, wish, lambda stack: _receiving(stack, at))

    def prunes(self, layer: Layer) -> bool:
        """Whether the `prune` of a layer counts for any of its targets."""
        return layer.prune is not None and any(_pruning(stack) is layer for stack in self.stacks[layer])

    def _all(self, layer: Layer, at: Steps, wish: Wish, concerned: Callable[[Stack], Steps | None]) -> bool:
        """Whether all targets that are concerned wish the same: many of them ask the same question."""
        if layer in self.fixed:
            return False
        question = layer, at, repr(wish)
        if question not in self._verdicts:
            places = ((stack, concerned(stack)) for stack in self.stacks[layer])
            self._verdicts[question] = all(steps is None or self._agrees(stack, steps, wish) for stack, steps in places)
        return self._verdicts[question]

    def _dependent(self, stack: Stack, layer: Layer, at: Steps) -> Steps | None:
        """Return the steps to a layer's value in the spec of a target; None if it does not matter to the target."""
        steps = steps_in(stack, layer, at)
        if is_entry(stack, steps):
            return None if steps[0] in stack.unmanaged else steps
        if not is_merged(stack, steps) and self.wish(stack, steps) is None:
            return None
        declared = declared_at(stack, steps)
        is_among = is_item(stack, steps) and any(other is layer for other, _ in _above_null(stack, steps))
        return steps if is_among or declared[-1][0] is layer else None

    def _agrees(self, stack: Stack, steps: Steps, wish: Wish) -> bool:
        place = stack.target, steps[0]
        return place in self.inapplicable or (place in self.known and self.wish(stack, steps) == wish)


Change = Put | Drop | Rename | Add
"""The change of a document; `Add` appends an entry to a list."""


@dataclass(frozen=True, slots=True)
class InLayers:
    """Layers change that declare the value, or the section.

    Attributes:
        places: each layer, with the steps as it writes them.
        change: what happens there.
    """

    places: tuple[tuple[Layer, Steps], ...]
    change: Change


@dataclass(frozen=True, slots=True)
class InOwn:
    """The target's own document declares otherwise what a layer declares; it may not exist yet.

    Attributes:
        beside: the layer.
        changes: by the steps as the own document writes them.
    """

    beside: Layer
    changes: Mapping[Steps, Put | Add]


@dataclass(frozen=True, slots=True)
class NoPlace:
    """No document can be changed so that the target has the value, and others keep theirs."""

    reason: str


Placing = InLayers | InOwn | NoPlace


NOTHING_HELD: Mapping[Steps, NoPlace] = MappingProxyType({})


def place(wish: Wish, steps: Steps, stack: Stack, members: Membership) -> Placing:
    """Return where a value is written.

    Args:
        wish: what the target wishes.
        steps: to the value in its merged spec.
        stack: its layers.
        members: the targets of these layers.
    """
    held = members.held.get(stack.target, NOTHING_HELD).get(steps)
    if held is not None:
        return held
    match wish:
        case Put():
            placing = _put(wish, steps, stack, members)
        case Rename():
            placing = _rename(wish, steps, stack, members)
        case Revive():
            placing = _revive(wish, steps, stack, members)
        case Add():
            placing = _add(wish, steps, stack, members)
        case Drop() if is_item(stack, steps):
            placing = _drop_item(wish, steps, stack, members)
        case Drop() if is_entry(stack, steps):
            placing = _drop_entry(wish, steps, stack, members)
        case _:
            placing = _drop_field(wish, steps, stack, members)
    return placing


def override(
    change: Put | Add, steps: Steps, stack: Stack, members: Membership, beside: tuple[Layer, Steps] | None = None
) -> InOwn:
    """Return the change of a target's own document that declares otherwise what a layer declares.

    Args:
        change: what happens there.
        steps: to the value in the target's merged spec.
        stack: its layers.
        members: see `place`.
        beside: the layer, with the steps as it writes them; None for the topmost that declares the value.
    """
    layer, at = declared_at(stack, steps)[-1] if beside is None else beside
    return InOwn(layer, {_own_steps(stack, steps, at, members): change})


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
    """Return the steps in the merged spec of a target to what a layer writes; an entry of a list by its identity."""
    section, *written = at
    spec, values = stack.specs[section], stack.values if layer.normalized is None else None
    if len(written) == 2 and written[0] in spec.lists:
        name, index = written
        entry = spec.normalize_entry(name, layer.sections[section][name][index], values)
        return section, name, spec.lists[name].identity(entry)
    first, *others = written
    return (section, spec.normalize_key(first, values), *(fill(step, values) for step in others))


def declared_at(stack: Stack, steps: Steps) -> list[tuple[Layer, Steps]]:
    """Return the layers that declare a value, lowest first, each with the steps as it writes them."""
    return [(declaration.layer, declaration.steps) for declaration in declarations(stack, steps)]


def _put(wish: Put, steps: Steps, stack: Stack, members: Membership) -> Placing:
    declared = declared_at(stack, steps)
    if declared:
        beside = declared[-1]
        is_agreed = members.agree(*beside, wish)
    elif around := declared_at(stack, steps[:1]):
        layer, _ = around[-1]
        beside = layer, tuple(map(literal, steps))
        is_agreed = members.agree_to_add(*beside, wish)
    else:
        return InOwn(stack.layers[-1], {steps: wish})
    return InLayers((beside,), wish) if is_agreed else override(wish, steps, stack, members, beside)


def _rename(wish: Rename, steps: Steps, stack: Stack, members: Membership) -> Placing:
    declared = declared_at(stack, steps)
    if all(members.agree(layer, at, wish) for layer, at in declared):
        return InLayers(tuple(declared), wish)
    section, name = steps
    fields = {key: literal(value) for key, value in stack.sections[section][name].items() if key != OLD_NAMES}
    for at, change in members.wishes[stack.target].items():
        if at[:2] == steps and len(at) > 2:
            _change(fields, at[2:], change)
    layer, at = next((layer, at) for layer, at in reversed(declared) if layer.title)
    former: Steps = (section, wish.name)
    own = _spelt(stack, steps, at)[0], _spelt(stack, former, former)[0]
    return InOwn(layer, {own[0]: Put(None), own[1]: Put(fields)})


def _revive(wish: Revive, steps: Steps, stack: Stack, members: Membership) -> Placing:
    *lower, (layer, at, _) = declarations(stack, steps)
    if not layer.title and any(declaration.value is not None for declaration in lower):
        return InLayers(((layer, at),), Drop())
    change = Put(wish.fields)
    is_agreed = members.agree(layer, at, wish)
    return InLayers(((layer, at),), change) if is_agreed else override(change, steps, stack, members)


def _drop_item(wish: Drop, steps: Steps, stack: Stack, members: Membership) -> Placing:
    declared = _above_null(stack, steps)
    if all(members.agree(layer, at, wish) for layer, at in declared):
        return InLayers(tuple(declared), wish)
    shared = next((layer, at) for layer, at in reversed(declared) if layer.title)
    return override(Put(None), steps, stack, members, shared)


def _drop_entry(wish: Drop, steps: Steps, stack: Stack, members: Membership) -> Placing:
    section, name, entry = steps
    places = []
    for other in wish.together:
        for layer in dict.fromkeys(stack.layers):
            for at in _listed(stack, layer, section, name).get(other, ()):
                if not members.agree(layer, at, wish):
                    title, declaration = stack.specs[section].lists[name].title, Declaration(layer, at, None)
                    return NoPlace(f"{declaration} lists the {title} {other} for other targets too, and lists unite")
                places += [(layer, at)] if other == entry else []
    return InLayers(tuple(places), wish)


def _drop_field(wish: Drop, steps: Steps, stack: Stack, members: Membership) -> Placing:
    counting, declared = {layer for layer, _ in _above_null(stack, steps[:2])}, declared_at(stack, steps)
    *lower, (layer, at) = [place for place in declared if place[0] in counting] or declared
    agreeing = [place for place in reversed(lower) if members.agree(*place, wish)]
    is_agreed = members.agree(layer, at, wish)
    if steps[-1] == OLD_NAMES and not (is_agreed and len(agreeing) == len(lower)):
        return override(Put([]), steps, stack, members)
    if is_agreed:
        return InLayers(((layer, at), *agreeing), wish)
    return NoPlace(f"{Declaration(layer, at, None)} declares it for other targets too")


def _add(wish: Add, steps: Steps, stack: Stack, members: Membership) -> Placing:
    section, name, *_ = steps
    spec, pruned = stack.specs[section], section in stack.prune
    declared = declared_at(stack, steps[:2]) if spec.items is None else []
    declaring = [layer for layer, _ in declared or declared_at(stack, steps[:1])]
    asking = [layer for layer in stack.layers if members.prunes(layer)] if pruned else declaring
    shared = [layer for layer in dict.fromkeys(asking) if layer.title]
    if spec.items is None:
        change: Put | Add = wish
        own, places = steps[:2], [steps]
    else:
        change, own = Put(wish.value), (section, literal(name))
        places = [*dict.fromkeys(((section, spec.shared_key(name, stack.target)), own))]
    for layer, at in product(shared, places):
        if members.agree_to_add(layer, at, wish):
            return InLayers(((layer, at[:2]),), change)
    return override(change, own, stack, members, (_pruning(stack) if pruned else declaring[-1], own))


def _pruning(stack: Stack) -> Layer:
    """Return the layer whose `prune` counts for a target."""
    return next(layer for layer in reversed(stack.layers) if layer.prune is not None)


def _held(stack: Stack, wishes: Iterable[Steps]) -> Mapping[Steps, NoPlace]:
    """Return the wishes that a lock prevents, or that are within such a wish."""
    held: dict[Steps, NoPlace] = {}
    for steps in sorted(wishes, key=len) if stack.has_locks else ():
        around = next((held[steps[:length]] for length in range(1, len(steps)) if steps[:length] in held), None)
        lock = lock_on(stack, steps) if around is None else None
        if around or lock:
            held[steps] = around or NoPlace(f"locked by {lock}: change it there")
    return held


def _receiving(stack: Stack, at: Steps) -> Steps | None:
    """Return the steps to a new item of a layer in the spec of a target; None if it cannot have the section."""
    section, name, *entry = at
    spec = stack.specs[section]
    if stack.target.level not in spec.kind.models or section in stack.unmanaged:
        return None
    return (section, name if entry else spec.normalize_key(name, stack.values), *entry)


def _above_null(stack: Stack, steps: Steps) -> list[tuple[Layer, Steps]]:
    """Return the layers of which an item is merged, lowest first: those above the topmost null."""
    declared = declarations(stack, steps)
    nulls = [number for number, declaration in enumerate(declared) if declaration.value is None]
    return declared_at(stack, steps)[nulls[-1] + 1 if nulls else 0 :]


@lru_cache(maxsize=1024)  # accept places the wishes of one target after those of all others
def _listed(stack: Stack, layer: Layer, section: str, name: str) -> Mapping[Hashable, list[Steps]]:
    """Return where a layer lists the entries of a target's list, by their identities: many of them are asked for."""
    places: dict[Hashable, list[Steps]] = {}
    for index in range(len(layer.sections.get(section, {}).get(name, ()))):
        at: Steps = (section, name, index)
        places.setdefault(steps_in(stack, layer, at)[-1], []).append(at)
    return places


def _own_steps(stack: Stack, steps: Steps, at: Steps, members: Membership) -> Steps:
    """Return steps as a target's own document spells them; an item that gets its former name back is written under it.

    Args:
        stack: of the target.
        steps: to the value in its merged spec.
        at: the steps as another layer writes them.
        members: see `place`.
    """
    spelt, length = _spelt(stack, steps, at)
    rename = members.wish(stack, steps[:2])
    return (spelt[0], rename.name, *spelt[2:]) if isinstance(rename, Rename) and length < 2 else spelt


def _spelt(stack: Stack, steps: Steps, at: Steps) -> tuple[Steps, int]:
    """Return steps as the own document spells those that it declares, and the others as given; and how many it does."""
    own = stack.layers[-1]
    for length in range(0 if own.title else len(steps), 0, -1):
        for layer, spelt in declared_at(stack, steps[:length]):
            if layer is own:
                return (*spelt, *at[length:]), length
    return at, 0


def _change(fields: dict[str, Any], steps: Steps, wish: Wish) -> None:
    """Change a field of an item, or a key of a field."""
    name, *keys = steps
    holder = fields if not keys else fields.setdefault(name, {})
    if isinstance(wish, Put):
        holder[keys[0] if keys else name] = wish.value
    else:
        holder.pop(keys[0] if keys else name, None)
