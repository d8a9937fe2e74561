"""Rules that hold together: several may match one name, and what holds is what all of them allow. Pure.

A kind whose rules do so says in `Kind.in_effect` how. Begin with `InEffect.allowed`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from reconciler.model.protocols import Json

Fields = Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class PatternRule:
    """A rule, as far as it matters for others.

    Attributes:
        name: its name or pattern.
        fields: its fields as JSON.
    """

    name: str
    fields: Fields


@dataclass(frozen=True, slots=True)
class InEffect:
    """The way in which rules of a kind hold together.

    Attributes:
        matches: whether a rule of the first name holds for all that the second name stands for.
        together: the fields that count together, as they are for what all the given rules hold for.
        fields: their names.
    """

    matches: Callable[[str, str], bool]
    together: Callable[[Sequence[Fields]], Fields]
    fields: frozenset[str]

    def allowed(self, rules: Iterable[PatternRule], name: str) -> Fields:
        """Return the fields of the rule that some rules are for a name; none if no rule holds for it."""
        matching = [rule.fields for rule in rules if self.matches(rule.name, name)]
        return self.together(matching) if matching else {}
