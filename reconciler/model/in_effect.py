"""Rules that hold together: several may match one name, and what holds is what all of them allow. Pure.

A kind whose rules do so says in `Kind.in_effect` how. Begin with `InEffect.allowed`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from reconciler.model.direction import Directions, Strictness, compare_field, covers
from reconciler.model.entries import Subject, word
from reconciler.model.protocols import Json
from reconciler.model.wording import listed

Fields = Mapping[str, Json]

LETTING_MORE = (Strictness.LOOSER, Strictness.INCOMPARABLE)


@dataclass(frozen=True, slots=True)
class PatternRule:
    """A rule, as far as it matters for others.

    Attributes:
        name: its name or pattern.
        fields: its fields as JSON.
        owner: who has it, or declares it, in words, if that is not the target itself.
    """

    name: str
    fields: Fields
    owner: str = ""

    def __str__(self) -> str:
        """Return the rule in words: `` `main` ``, `` `ma*` (a group above) ``."""
        return f"`{self.name}`{self.owner and f' ({self.owner})'}"


@dataclass(frozen=True, slots=True)
class InEffect:
    """The way in which rules of a kind hold together.

    Attributes:
        matches: whether a rule of the first name holds for all that the second name stands for.
        together: the fields that count together, as they are for what all the given rules hold for.
        fields: their names.
        verbs: by field that one rule may open for another one, what people may do by it, such as `push`.
        flaw: takes the fields of several rules that hold together, each with its whole lists; returns the reason why
            nobody can do anything by them, or an empty text.
    """

    matches: Callable[[str, str], bool]
    together: Callable[[Sequence[Fields]], Fields]
    fields: frozenset[str]
    verbs: Mapping[str, str]
    flaw: Callable[[Sequence[Fields]], str]

    def allowed(self, rules: Iterable[PatternRule], name: str) -> Fields:
        """Return the fields of the rule that some rules are for a name; none if no rule holds for it."""
        matching = [rule.fields for rule in rules if self.matches(rule.name, name)]
        return self.together(matching) if matching else {}

    def flaw_of(self, rule: PatternRule, rules: Iterable[PatternRule]) -> str:
        """Return the reason why nobody can do anything where a rule holds, given all rules; empty if somebody can.

        A pattern has no flaw if a rule for some of what it stands for has none: the pattern is for the rest.
        """
        near = (
            other.fields
            for other in rules
            if self.matches(other.name, rule.name) or self.matches(rule.name, other.name)
        )
        return self.flaw(list(near))

    def undermined(
        self, directions: Directions, declared_rule: PatternRule, other_rules: Iterable[PatternRule]
    ) -> Iterator[str]:
        """Yield a sentence about each other rule that lets more happen than a rule says.

        Args:
            directions: of the fields.
            declared_rule: the rule; only fields that it has are compared, and only with those that another rule has.
            other_rules: all other rules.
        """
        for other in other_rules:
            if not self.matches(other.name, declared_rule.name):
                continue
            alone, both = self.together([declared_rule.fields]), self.together([declared_rule.fields, other.fields])
            for field, verb in self.verbs.items():
                is_known = field in declared_rule.fields and field in other.fields
                if is_known and compare_field(directions, field, both, alone) in LETTING_MORE:
                    said, truth = _halves(verb, alone[field], both[field])
                    yield f"{said}, but {other} {truth}"
                    break


ROLE_WORDS = {"developer": "Developers", "maintainer": "Maintainers", "admin": "administrators"}


def _halves(verb: str, said: Json, truth: Json) -> tuple[str, str]:
    """Return a sentence in two halves: those who may do something by a rule, and those whom another rule lets do it."""
    if not isinstance(said, list):
        return f"nobody may {verb}", "allows it"
    more = [entry for entry in truth if not any(covers(other, entry) for other in said)]
    people = f"only {listed(_words(said))}" if said else "nobody"
    return f"{people} may {verb}", f"lets {listed(_words(more))}"


def _words(people: Iterable[Json]) -> list[str]:
    """Return entries as people say them, each once: `Developers`, `user ada`."""
    return list(dict.fromkeys(map(_word, people)))


def _word(entry: Json) -> str:
    return word(Subject(**entry)) if isinstance(entry, dict) else ROLE_WORDS.get(entry, str(entry))
