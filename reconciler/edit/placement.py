"""From wishes to edits of documents, each at the place that `edit.place` names. Pure."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from reconciler.edit.place import (
    Add,
    Drop,
    InLayers,
    InOwn,
    Membership,
    Put,
    Rename,
    Revive,
    Wish,
    declared_at,
    is_entry,
    is_item,
    is_merged,
    override,
    place,
    steps_in,
)
from reconciler.manifests.sources import Document, Steps
from reconciler.manifests.stack.layers import Layer, Stack
from reconciler.manifests.stack.placeholders import literal
from reconciler.manifests.stack.trace import Declaration
from reconciler.model.targets import Key, Target

Difference = tuple[Target, str, Key | None, str | None]
"""A target and a section, the name of an object there, and its field; None stands for any."""


@dataclass(frozen=True, slots=True)
class Except:
    """A deviation is accepted for a while.

    Attributes:
        exception: the entry of `metadata.exceptions`, as a manifest writes it.
    """

    exception: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Edit:
    """One change of one document.

    Attributes:
        document: None for the document that its target does not have yet.
        beside: the document that declares the value so far.
        steps: from the spec down, as the document writes them.
        change: what happens there; `Add` appends an entry to a list, `Except` an exception to the metadata.
        wished: the targets that wish it, each with the steps in its merged spec.
        shared: whether the document is a profile or a set.
        is_conditional: whether it is about a value that other edits may drop: a field of a profile or set that is to
            go, or what other edits uncover.
        is_revival: whether it replaces the null of an item in a profile or set.
    """

    document: Document | None
    beside: Document
    steps: Steps
    change: Put | Drop | Rename | Add | Except
    wished: list[tuple[Target, Steps]]
    shared: bool = False
    is_conditional: bool = False
    is_revival: bool = False

    @property
    def section(self) -> str:
        """The section that changes."""
        return str(self.steps[0])

    @property
    def place(self) -> Document | Target:
        """The document, or the target that does not have one yet."""
        return self.document or self.wished[0][0]

    @property
    def targets(self) -> list[Target]:
        """Those that wish it."""
        return [target for target, _ in self.wished]

    @property
    def uncovers(self) -> bool:
        """Whether it takes an item from a profile or set, so that a null beneath counts."""
        is_drop = self.shared and isinstance(self.change, Drop) and len(self.steps) == len(("section", "item"))
        return is_drop and not self.is_conditional


@dataclass(frozen=True, slots=True)
class Placement:
    """The edits that carry out wishes.

    Attributes:
        closed: the files that must not change, each with the reason.
        edits: by document, or the target without one, and by steps there.
        refused: why a wish is not carried out.
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
        """Place all wishes of some targets.

        Args:
            stacks: their layers.
            members: all targets of these layers, with their wishes.
            closed: see `Placement`.
            restated: targets, each with a section that their own documents are to declare as a whole, as they must
                where they are read before it is known what profiles and sets they have.
        """
        placement = cls(closed)
        wishing = [stack for stack in stacks if stack.target in members.wishes]
        for stack in wishing:
            placement._place(stack, members)
            for section in {steps[0] for steps in members.wishes[stack.target] if (stack.target, steps[0]) in restated}:
                placement._restate(stack, section, members)
        for stack in wishing:
            for steps, wish in members.wishes[stack.target].items():
                if isinstance(wish, Add):
                    placement._carry_out(stack, steps, wish, members)
        return placement

    def _place(self, stack: Stack, members: Membership) -> None:
        """Place what a target wishes but for what is new; what an item wishes that is replaced goes with it."""
        wishes = members.wishes[stack.target]
        for steps, refusal in members.held[stack.target].items():
            self._refuse(stack, steps, refusal.reason)
        replaced = set()
        for steps, wish in wishes.items():
            if isinstance(wish, Rename) and isinstance(place(wish, steps, stack, members), InOwn):
                self._carry_out(stack, steps, wish, members)
                replaced.add(steps)
        for steps, wish in wishes.items():
            if steps[:2] not in replaced and not isinstance(wish, Add):
                self._carry_out(stack, steps, wish, members)

    def _restate(self, stack: Stack, section: str, members: Membership) -> None:
        """Declare all declared fields of a section in the target's own document."""
        values = {
            (section, name, *keys): value[keys[0]] if keys else value
            for name, value in stack.sections[section].items()
            for keys in ([(key,) for key in value] if isinstance(value, dict) else [()])
        }
        wishes = {steps: members.wish(stack, steps) for steps in values}
        for steps in [steps for steps, wish in wishes.items() if not isinstance(wish, Drop)]:
            wish = wishes[steps]
            change = wish if isinstance(wish, Put) else Put(literal(values[steps]))
            self._override(stack, steps, override(change, steps, stack, members), is_conditional=False)

    def _carry_out(self, stack: Stack, steps: Steps, wish: Wish, members: Membership) -> None:
        is_field = not (is_item(stack, steps) or is_entry(stack, steps))
        uncovered = is_field and not is_merged(stack, steps) and bool(declared_at(stack, steps))
        match place(wish, steps, stack, members):
            case InLayers() as placing:
                for layer, at in placing.places:
                    shared = bool(layer.title)
                    is_conditional = uncovered or (shared and is_field and isinstance(wish, Drop))
                    is_revival = shared and isinstance(wish, Revive)
                    document, wished = layer.document, [(stack.target, steps)]
                    edit = Edit(document, document, at, placing.change, wished, shared, is_conditional, is_revival)
                    self._edit(stack, layer, edit)
            case InOwn() as placing:
                self._override(stack, steps, placing, is_conditional=uncovered)
            case refusal:
                self._refuse(stack, steps, refusal.reason)

    def _override(self, stack: Stack, steps: Steps, placing: InOwn, *, is_conditional: bool) -> None:
        own, wished = stack.layers[-1], [(stack.target, steps)]
        for at, change in placing.changes.items():
            if own.title:
                edit = Edit(None, placing.beside.document, at, change, wished, is_conditional=is_conditional)
                self._note(stack.target, edit)
            else:
                edit = Edit(own.document, own.document, at, change, wished, is_conditional=is_conditional)
                self._edit(stack, own, edit)

    def _edit(self, stack: Stack, layer: Layer, edit: Edit) -> None:
        """Note an edit of a document, unless its file is closed."""
        reason, at = self.closed.get(layer.document.source.path), edit.steps
        if reason is None:
            self._note(layer.document, edit)
        else:
            at = (*at[:-1], steps_in(stack, layer, at)[-1]) if isinstance(at[-1], int) else at
            self._refuse(stack, at, f"declared at {Declaration(layer, at, None)}, {reason}; change it there")

    def _note(self, place: Document | Target, edit: Edit) -> None:
        entry = (str(edit.change.value),) if isinstance(edit.change, Add) else ()
        noted = self.edits.setdefault((place, (*edit.steps, *entry)), edit)
        if noted is not edit:
            noted.wished.extend(edit.wished)

    def _refuse(self, stack: Stack, steps: Steps, reason: str) -> None:
        section, *names = steps
        spec = stack.specs[section]
        is_named = spec.items is None and names[0] in spec.lists
        name = names.pop(0) if spec.items is not None else names[-1] if is_named else None
        self.refused[stack.target, section, name, None if is_named else ".".join(map(str, names)) or None] = reason
