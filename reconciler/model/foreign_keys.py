"""Keys of the service's API and of other tools for the values of a section, each with the key to write instead.

A kind declares the foreign keys of its models in `Resource.foreign_keys`, and those of the section itself in
`Kind.foreign_names`. The meaning of a foreign key is never guessed: a word that is spelled alike may mean the opposite.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from reconciler.model.wording import listed, most_like, short, unknown


@dataclass(frozen=True, slots=True)
class Alias:
    """A foreign key that has the meaning of a field of ours.

    Attributes:
        name: the key to write.
        lines: by value of the foreign key, the line to write, where values differ: `true` may be our `false`.
    """

    name: str
    lines: Mapping[Any, str] = field(default_factory=dict)

    def advice(self, key: str, raw: object) -> str:
        """Return the message about this foreign key with a value."""
        if not self.lines:
            return f"`{key}` is `{self.name}` here"
        known = {
            _written(content): f"`{key}: {_written(content)}` is `{line}` here" for content, line in self.lines.items()
        }
        return known.get(_written(raw)) or listed(known.values())


def _written(raw: object) -> str:
    return str(raw).lower()


def opposite(name: str) -> Alias:
    """Return the alias of a key whose `true` is the `false` of a field of ours."""
    return Alias(name, {True: f"{name}: false", False: f"{name}: true"})


def above(verb: str) -> dict[str, Alias]:
    """Return the alias of a refused level, which GitLab took before 17.1: ours is the lowest allowed level."""
    name = f"minimum_access_level_for_{verb}"
    next_levels = {"developer": "maintainer", "maintainer": "owner", "owner": "admin"}
    lines = {level: f"{name}: {lowest}" for level, lowest in next_levels.items()}
    return {f"{verb}_protected_up_to_access_level": Alias(name, lines)}


ForeignKeys = Mapping[str, Alias | str]
"""By foreign key, the field of ours that it stands for, or the whole message about it."""

ENFORCE = "`enforce: true` is `prune: [SECTION]` in `spec` here"
"""The message about what GitLabForm writes beside the names of items, or of entries."""

EVERYWHERE: ForeignKeys = {
    **dict.fromkeys(("id", "iid", "created_at", "updated_at", "web_url"), "the service sets this: leave it out"),
    **dict.fromkeys(
        ("project", "project_id", "group", "group_id"), "the `metadata` of the document names the target: leave it out"
    ),
    "enforce": ENFORCE,
    "timeouts": "timeouts are options of the command line: leave it out",
}
"""Foreign keys that have one answer in every section that does not declare its own."""


def foreign_keys(resource_type: type[Any]) -> ForeignKeys:
    """Return the foreign keys of a resource, and those that mean the same in every section."""
    return {**EVERYWHERE, **resource_type.foreign_keys}


def unknown_key(what: str, key: str, value: Any, known: Iterable[str], foreign: ForeignKeys) -> str:
    """Return the message about an unknown key: its meaning elsewhere, a similar key, or a list of the known keys.

    A key that is nearly a foreign one gets the message of that one.
    """
    if key in foreign:
        return advice(foreign, key, value)
    fields = list(known)
    guess = most_like(key, [*fields, *foreign])
    if guess is not None and guess in foreign:
        return f"unknown {what} `{short(key)}`: {advice(foreign, guess, value)}"
    return unknown(what, key, fields)


def advice(foreign: ForeignKeys, key: str, value: Any) -> str:
    """Return the message about a foreign key with a value."""
    entry = foreign[key]
    return entry.advice(key, value) if isinstance(entry, Alias) else entry
