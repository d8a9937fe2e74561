"""Rules that are combined: several may match one name, and their combination decides. Pure.

A kind with such rules declares the combination in `Kind.in_effect`. Begin with `InEffect.allowed`.
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
    """A rule, without the fields that do not matter for other rules.

    Attributes:
        name: its name or pattern.
        fields: its fields as JSON.
        owner: the group that has or declares it, in words, if it is not of the target itself.
    """

    name: str
    fields: Fields
    owner: str = ""

    def __str__(self) -> str:
        """Return the rule in words: `` `main` ``, `` `ma*` (a group above) ``."""
        return f"`{self.name}`{self.owner and f' ({self.owner})'}"


@dataclass(frozen=True, slots=True)
class InEffect:
    """The way in which rules of a kind are combined.

    Attributes:
        matches: returns whether a rule of the first name applies to everything that the second name matches.
        together: returns the combined fields of all the given rules.
        fields: the names of these fields.
        verbs: by field that one rule may open for another one, the verb for what it allows, such as `push`.
        flaw: takes the fields of several combined rules, each with its complete lists; returns the reason for which
            they allow nobody, or an empty text.
    """

    matches: Callable[[str, str], bool]
    together: Callable[[Sequence[Fields]], Fields]
    fields: frozenset[str]
    verbs: Mapping[str, str]
    flaw: Callable[[Sequence[Fields]], str]

    def allowed(self, rules: Iterable[PatternRule], name: str) -> Fields:
        """Return the combined fields of some rules for a name; none if no rule matches it."""
        matching = [rule.fields for rule in rules if self.matches(rule.name, name)]
        return self.together(matching) if matching else {}

    def flaw_of(self, rule: PatternRule, rules: Iterable[PatternRule]) -> str:
        """Return the reason for which nobody is allowed anything by a rule, given all rules; empty if somebody is.

        A pattern has no flaw if a more special rule has none: the pattern is for all other names.
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
        """Yield a sentence about each other rule that allows more than a rule declares.

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
                    rule, effect = _halves(verb, alone[field], both[field])
                    yield f"{rule}, but {other} {effect}"
                    break


ROLE_WORDS = {"developer": "Developers", "maintainer": "Maintainers", "admin": "administrators"}


def _halves(verb: str, declared_people: Json, people_in_effect: Json) -> tuple[str, str]:
    """Return the halves of a sentence: the people whom a rule allows, and those whom another rule adds."""
    if not isinstance(declared_people, list):
        return f"nobody may {verb}", "allows it"
    more = [entry for entry in people_in_effect if not any(covers(other, entry) for other in declared_people)]
    people = f"only {listed(_words(declared_people))}" if declared_people else "nobody"
    return f"{people} may {verb}", f"lets {listed(_words(more))}"


def _words(people: Iterable[Json]) -> list[str]:
    """Return entries in words, each once: `Developers`, `user ada`."""
    return list(dict.fromkeys(map(_word, people)))


def _word(entry: Json) -> str:
    return word(Subject(**entry)) if isinstance(entry, dict) else ROLE_WORDS.get(entry, str(entry))
