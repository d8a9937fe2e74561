"""From wishes to edits: into the layer that declares a value if all its targets agree, else into their own documents.

Pure.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from reconciler.accept.wishes import Add, Drop, Except, Put, Rename, Revive, Wish, Wishes
from reconciler.export.sharing import with_placeholder
from reconciler.manifests.sources import Document, Steps
from reconciler.manifests.stack.layers import Layer, Stack
from reconciler.manifests.stack.locks import lock_on
from reconciler.manifests.stack.placeholders import fill, literal
from reconciler.manifests.stack.sections import OLD_NAMES
from reconciler.manifests.stack.trace import Declaration, declarations
from reconciler.model.targets import Target

Place = tuple[str, int]
"""The file of a document, and its number there: the same for all versions of it."""


def place_of(document: Document) -> Place:
    """Return the place of a document."""
    return document.source.path, document.number


@dataclass(frozen=True, slots=True)
class Edit:
    """One change of one document.

    Attributes:
        document: None for the document that its target does not have yet.
        beside: the document that declares the value so far.
        steps: from the spec down, as the document writes them.
        wish: what happens there; `Add` appends an entry to a list, `Except` an exception to the metadata.
        targets: those that wish it.
        shared: whether the document is a profile or a set.
        is_needless: whether it drops a field of a profile or set, which what changes above it may do as well.
        revives: whether it replaces the null of an item in a profile or set.
    """

    document: Document | None
    beside: Document
    steps: Steps
    wish: Put | Drop | Rename | Add | Except
    targets: list[Target]
    shared: bool = False
    is_needless: bool = False
    revives: bool = False

    @property
    def section(self) -> str:
        """The section that changes."""
        return str(self.steps[0])

    @property
    def uncovers(self) -> bool:
        """Whether it takes an item or a field from a profile or set, so that what lies beneath counts."""
        return self.shared and isinstance(self.wish, Drop) and len(self.steps) == 2


@dataclass(frozen=True)
class Placement:
    """The values that targets need, and the documents that they go into.

    Attributes:
        wholes: the merged specs of all targets.
        wishes: those of each target that has any.
        known: the targets and sections of which everything was read: no other target agrees to anything.
        inapplicable: sections that a target cannot have; such a target agrees to any value.
        closed: the files that must not change, each with the reason.
        banned: the places of profiles and sets, each with a section that stays as it is there.
        restated: targets, each with a section that their own documents are to declare as a whole, as they must where
            they are read before it is known what profiles and sets they have.
        given_up: targets, each with a section that stays as it is.
    """

    wholes: Collection[Stack]
    wishes: Mapping[Target, Wishes]
    known: Collection[tuple[Target, str]]
    inapplicable: Collection[tuple[Target, str]]
    closed: Mapping[str, str]
    banned: Collection[tuple[Place, str]]
    restated: Collection[tuple[Target, str]]
    given_up: Collection[tuple[Target, str]]
    edits: dict[tuple[Any, Steps], Edit] = field(default_factory=dict)
    verdicts: dict[tuple[Layer, Steps, str], bool] = field(default_factory=dict)
    entries: dict[tuple[Target, Layer, str, str], Mapping[Steps, list[int]]] = field(default_factory=dict)

    @cached_property
    def members(self) -> Mapping[Layer, list[Stack]]:
        """The targets of each layer."""
        members: dict[Layer, list[Stack]] = {}
        for whole in self.wholes:
            for layer in dict.fromkeys(whole.layers):
                members.setdefault(layer, []).append(whole)
        return members

    def place(self) -> list[Edit]:
        """Return the edits; a wish that has no place is refused, with the reason."""
        for whole in self.wholes:
            self._leave(whole)
        adds = []
        for whole in self.wholes:
            wishes = self.wishes.get(whole.target, Wishes()).wishes
            adds += [(whole, steps, wish) for steps, wish in wishes.items() if isinstance(wish, Add)]
            renames = {steps: wish for steps, wish in wishes.items() if isinstance(wish, Rename)}
            replaced = {steps for steps, wish in renames.items() if self._replace(whole, steps, wish)}
            for steps, wish in wishes.items():
                if steps[:2] not in replaced:
                    self._place(whole, steps, wish)
            for section in {steps[0] for steps in wishes if (whole.target, steps[0]) in self.restated}:
                self._restate(whole, section)
        self._add(adds)
        return [*self.edits.values()]

    def _leave(self, whole: Stack) -> None:
        """Take out what a lock holds, and sections that are given up, so that no other target counts on them."""
        wishes = self.wishes.get(whole.target, Wishes()).wishes
        held: set[Steps] = set()
        for steps in sorted(wishes, key=len):
            around = (steps[:length] for length in range(1, len(steps)))
            is_within = not held.isdisjoint(around)
            lock = None if is_within else lock_on(whole, steps)
            held |= {steps} if is_within or lock else set()
            if lock is not None:
                self._refuse(whole, steps, f"locked by {lock}: change it there")
        for steps in held:
            del wishes[steps]
        for steps in [each for each in wishes if (whole.target, each[0]) in self.given_up]:
            del wishes[steps]

    def _place(self, whole: Stack, steps: Steps, wish: Wish) -> None:
        is_item = len(steps) == 2 and whole.specs[steps[0]].items is not None
        match wish:
            case Put():
                self._put(whole, steps, wish)
            case Rename():
                for layer, at in _declared(whole, steps):
                    self._edit(whole, layer, at, wish)
            case Revive():
                self._revive(whole, steps, wish)
            case Drop() if is_item:
                self._drop_item(whole, steps, wish)
            case Drop() if len(steps) == 3 and steps[1] in whole.specs[steps[0]].lists:
                self._drop_entry(whole, steps, wish)
            case Drop():
                self._drop_field(whole, steps, wish)

    def _restate(self, whole: Stack, section: str) -> None:
        """Declare all declared fields of a section in the target's own document."""
        values = {
            (section, name, *keys): value[keys[0]] if keys else value
            for name, value in whole.sections[section].items()
            for keys in ([(key,) for key in value] if isinstance(value, dict) else [()])
        }
        wishes = {steps: self._wished(whole, steps) for steps in values}
        for steps in [each for each in values if not isinstance(wishes[each], Drop)]:
            *_, (layer, at) = _declared(whole, steps)
            wish = wishes[steps]
            self._override(whole, layer, steps, at, wish if isinstance(wish, Put) else Put(literal(values[steps])))

    def _put(self, whole: Stack, steps: Steps, wish: Put) -> None:
        declarations = _declared(whole, steps) if _is_declared(whole, steps) else []
        if not declarations:
            *_, (layer, _) = _declared(whole, steps[:1])
            written = _as_written(steps)
            if not layer.title or self._agree_to_add(layer, written, wish):
                self._edit(whole, layer, written, wish)
            else:
                self._override(whole, layer, steps, written, wish)
            return
        layer, at = declarations[-1]
        if not layer.title or self._agree(layer, at, wish):
            self._edit(whole, layer, at, wish)
        else:
            self._override(whole, layer, steps, at, wish)

    def _drop_field(self, whole: Stack, steps: Steps, wish: Drop) -> None:
        """Remove a declared field; another change of the target's own document may make one go that cannot be."""
        *_, (layer, at) = _declared(whole, steps)
        if not layer.title or self._agree(layer, at, wish):
            self._edit(whole, layer, at, wish, is_needless=bool(layer.title))
        elif steps[-1] == OLD_NAMES:
            self._override(whole, layer, steps, at, Put([]))
        else:
            self._refuse(whole, steps, f"{Declaration(layer, at, None)} declares it for other targets too")

    def _drop_item(self, whole: Stack, steps: Steps, wish: Drop) -> None:
        """Remove an item from all layers that declare it, or else let it be null in the target's own document."""
        declarations = _declaring(whole, steps)
        shared = [(layer, at) for layer, at in declarations if layer.title]
        if all(self._agree(layer, at, wish) for layer, at in shared):
            for layer, at in declarations:
                self._edit(whole, layer, at, wish)
        else:
            layer, at = shared[-1]
            self._override(whole, layer, steps, at, Put(None))

    def _drop_entry(self, whole: Stack, steps: Steps, wish: Drop) -> None:
        """Remove all entries for an object from all layers that list one, or none of them: the lists unite."""
        section, name, entry = steps
        listing = [
            (layer, (section, name, index), each)
            for each in wish.together
            for layer in dict.fromkeys(whole.layers)
            for index in self._entries(whole, layer, section, name).get((section, name, each), ())
        ]
        for layer, at, each in listing:
            if layer.title and not self._agree(layer, at, wish):
                title = whole.specs[section].lists[name].title
                reason = (
                    f"{Declaration(layer, at, None)} lists the {title} {each} for other targets too, and lists unite"
                )
                self._refuse(whole, steps, reason)
                return
        for layer, at, each in listing:
            if each == entry:
                self._edit(whole, layer, at, wish)

    def _entries(self, whole: Stack, layer: Layer, section: str, name: str) -> Mapping[Steps, list[int]]:
        """Return where a layer lists the entries of a target's list: many of them are asked for."""
        place = whole.target, layer, section, name
        if place not in self.entries:
            found: dict[Steps, list[int]] = {}
            for index in range(len(layer.sections.get(section, {}).get(name, ()))):
                found.setdefault(_steps_in(whole, layer, (section, name, index)), []).append(index)
            self.entries[place] = found
        return self.entries[place]

    def _revive(self, whole: Stack, steps: Steps, wish: Revive) -> None:
        """Replace a null by what is there, or remove it where another layer declares the item."""
        *others, (layer, at) = _declared(whole, steps)
        lower = [each for each in others if _value(*each) is not None]
        if lower and not layer.title:
            self._edit(whole, layer, at, Drop())
        elif not layer.title or self._agree(layer, at, wish):
            self._edit(whole, layer, at, Put(wish.fields), revives=bool(layer.title))
        else:
            self._override(whole, layer, steps, at, Put(wish.fields))

    def _add(self, adds: Sequence[tuple[Stack, Steps, Add]]) -> None:
        """Declare objects where their sections are pruned."""
        added: set[tuple[Target, Steps]] = set()
        for whole, steps, wish in adds:
            layer, spec = _pruning(whole), whole.specs[steps[0]]
            written = steps if spec.items is None else (steps[0], with_placeholder(spec, steps[1], whole.target))
            if layer.title and (whole.target, steps) not in added and self._agree_to_add(layer, written, wish):
                self._edit(whole, layer, written[:2], wish if spec.items is None else Put(wish.value))
                added |= {(member.target, _added_to(member, written)) for member in self.members[layer]}
        for whole, steps, wish in adds:
            if (whole.target, steps) not in added:
                is_item = whole.specs[steps[0]].items is not None
                own = (steps[0], literal(steps[1])) if is_item else steps[:2]
                self._override(whole, _pruning(whole), own, own, Put(wish.value) if is_item else wish)

    def _replace(self, whole: Stack, steps: Steps, wish: Rename) -> bool:
        """Replace an item by one of its former name in the own document, where others keep it; return whether."""
        wishes = self.wishes[whole.target].wishes
        declarations = _declared(whole, steps)
        if all(not layer.title or self._agree(layer, at, wish) for layer, at in declarations):
            return False
        section, name = steps
        fields = {key: literal(value) for key, value in whole.sections[section][name].items() if key != OLD_NAMES}
        for at, other in wishes.items():
            if at[:2] == steps and len(at) > 2:
                _change(fields, at[2:], other)
        layer, at = next((layer, at) for layer, at in reversed(declarations) if layer.title)
        self._override(whole, layer, steps, at, Put(None))
        former = (section, wish.name)
        self._override(whole, layer, former, former, Put(fields))
        return True

    def _agree(self, layer: Layer, at: Steps, wish: Wish) -> bool:
        """Whether all targets of a layer that depend on what it declares there wish the same."""

        def concerned(whole: Stack) -> Steps | None:
            steps = _steps_in(whole, layer, at)
            return steps if _depends(whole, layer, steps) else None

        return self._all_agree(layer, at, wish, concerned)

    def _agree_to_add(self, layer: Layer, written: Steps, wish: Wish) -> bool:
        """Whether all targets of a layer that may have a section wish to add the same."""

        def concerned(whole: Stack) -> Steps | None:
            has_level = whole.target.level in whole.specs[written[0]].kind.models
            may_have = has_level and written[0] not in whole.unmanaged
            return _added_to(whole, written) if may_have else None

        return self._all_agree(layer, written, wish, concerned)

    def _all_agree(self, layer: Layer, at: Steps, wish: Wish, concerned: Callable[[Stack], Steps | None]) -> bool:
        """Whether all targets of a layer that are concerned wish the same: many of them ask the same question."""
        question = layer, at, repr(wish)
        if question not in self.verdicts:
            self.verdicts[question] = (place_of(layer.document), at[0]) not in self.banned and all(
                steps is None or self._agrees(whole, steps, wish)
                for whole in self.members[layer]
                for steps in [concerned(whole)]
            )
        return self.verdicts[question]

    def _agrees(self, whole: Stack, steps: Steps, wish: Wish) -> bool:
        place = whole.target, steps[0]
        return place in self.inapplicable or (place in self.known and self._wished(whole, steps) == wish)

    def _wished(self, whole: Stack, steps: Steps) -> Wish | None:
        wishes = self.wishes.get(whole.target)
        return None if wishes is None else wishes.wishes.get(steps)

    def _override(self, whole: Stack, layer: Layer, steps: Steps, written: Steps, wish: Put | Add) -> None:
        """Write into the target's own document what a layer declares otherwise, in the document's own spelling."""
        own = whole.layers[-1]
        if own.title:
            self._note((whole.target, written), Edit(None, layer.document, written, wish, [whole.target]))
            return
        for length in range(len(steps), 0, -1):
            if _is_declared(whole, steps[:length]):
                at = next((at for each, at in _declared(whole, steps[:length]) if each is own), None)
                if at is not None:
                    written = (*at, *written[length:])
                    break
        self._edit(whole, own, written, wish)

    def _edit(
        self,
        whole: Stack,
        layer: Layer,
        at: Steps,
        wish: Put | Drop | Rename | Add,
        *,
        is_needless: bool = False,
        revives: bool = False,
    ) -> None:
        reason = self.closed.get(layer.document.source.path)
        if reason is not None:
            at = (*at[:-1], _steps_in(whole, layer, at)[-1]) if isinstance(at[-1], int) else at
            self._refuse(whole, at, f"declared at {Declaration(layer, at, None)}, {reason}; change it there")
            return
        edit = Edit(layer.document, layer.document, at, wish, [whole.target], bool(layer.title), is_needless, revives)
        self._note((layer.document, at), edit)

    def _note(self, key: tuple[Any, Steps], edit: Edit) -> None:
        if isinstance(edit.wish, Add):
            key = (key[0], (*key[1], str(edit.wish.value)))
        noted = self.edits.setdefault(key, edit)
        if noted is not edit:
            noted.targets.extend(edit.targets)

    def _refuse(self, whole: Stack, steps: Steps, reason: str) -> None:
        section, *names = steps
        spec = whole.specs[section]
        name = names.pop(0) if spec.items is not None else names[-1] if names[0] in spec.lists else None
        field_ = None if spec.items is None and names[0] in spec.lists else ".".join(names) or None
        self.wishes[whole.target].refused[section, name, field_] = reason


def _steps_in(whole: Stack, layer: Layer, at: Steps) -> Steps:
    """Return the steps in the merged spec of a target to what a layer writes; an entry of a list by its identity."""
    section, *written = at
    spec, values = whole.specs[section], whole.values if layer.normalized is None else None
    if len(written) == 2 and written[0] in spec.lists:
        field_, index = written
        entry = spec.normalize_entry(field_, layer.sections[section][field_][index], values)
        return section, field_, spec.lists[field_].identity(entry)
    first, *others = written
    return (section, spec.normalize_key(first, values), *(fill(step, values) for step in others))


def _added_to(whole: Stack, written: Steps) -> Steps:
    """Return the steps in the merged spec of a target to a new item that a layer writes; an entry is as it is."""
    section, name, *entry = written
    return (section, name if entry else whole.specs[section].normalize_key(name, whole.values), *entry)


def _depends(whole: Stack, layer: Layer, steps: Steps) -> bool:
    """Whether a target would have something else without what a layer declares."""
    section, *names = steps
    spec = whole.specs[section]
    if section not in whole.unmanaged and len(names) == 2 and names[0] in spec.lists:
        return True
    if not _is_declared(whole, steps):
        return False
    *_, (top, _) = _declared(whole, steps)
    is_item = len(names) == 1 and spec.items is not None
    return top is layer or (is_item and any(each is layer for each, _ in _declaring(whole, steps)))


def _declared(whole: Stack, steps: Steps) -> list[tuple[Layer, Steps]]:
    """Return the layers that declare a value, lowest first, each with the steps as it writes them."""
    return [(declaration.layer, _plain(declaration.steps)) for declaration in declarations(whole, steps)]


def _plain(steps: Steps) -> Steps:
    """Return the steps without what a renamed key knows of its former name: a second one would be taken for it."""
    return tuple(str(step) if isinstance(step, str) else step for step in steps)


def _declaring(whole: Stack, steps: Steps) -> list[tuple[Layer, Steps]]:
    """Return the layers of which an item is merged, lowest first: those above the last null."""
    declarations = _declared(whole, steps)
    above = next((n for n in range(len(declarations), 0, -1) if _value(*declarations[n - 1]) is None), 0)
    return declarations[above:]


def _is_declared(whole: Stack, steps: Steps) -> bool:
    here: Any = whole.sections
    for step in steps:
        if not isinstance(here, Mapping) or step not in here:
            return False
        here = here[step]
    return True


def _pruning(whole: Stack) -> Layer:
    """Return the layer whose `prune` counts."""
    return next(layer for layer in reversed(whole.layers) if layer.prune is not None)


def _value(layer: Layer, at: Steps) -> Any:
    here: Any = layer.sections
    for step in at:
        here = here[step]
    return here


def _as_written(steps: Steps) -> Steps:
    return tuple(literal(step) for step in steps)


def _change(fields: dict[str, Any], steps: Steps, wish: Wish) -> None:
    """Change a field of an item, or a key of a field."""
    field_, *keys = steps
    holder = fields if not keys else fields.setdefault(field_, {})
    if isinstance(wish, Put):
        holder[keys[0] if keys else field_] = wish.value
    else:
        holder.pop(keys[0] if keys else field_, None)
