"""Documents of ours, mutated: as JSON with a checksum that fits again, or as text. The same seed mutates in the same way."""

import copy
import json
import unicodedata
from collections.abc import Iterator
from random import Random
from typing import Any

from reconciler.document.checksum import with_checksum
from tests.fuzz.manifests import MUTATIONS

HOSTILE: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        -1,
        0,
        1,
        103,
        999,
        10**30,
        -0.5,
        1e308,
        [],
        {},
        [None],
        {"": None},
        {"id": 999},
        "",
        " ",
        ".",
    ),
    *("create", "update", "delete", "DELETE", "POST", "PUT", "user", "group", "project", "milestone", "null", "{id}"),
    *(
        "acme/web",
        "acme/lib",
        "acme",
        "102",
        "projects/102/",
        "projects/acme%2Fweb/milestones/1",
        "../../user",
        "%2e%2e",
    ),
    *(
        "\x1b]0;x\x07",
        "\x1b[2J",
        "a\nb\r\tc",
        "\u202egpj",
        "\u2028",
        "\ud800",
        "\x00",
        "##vso[task.complete]",
        "::error::x",
    ),
    *(
        "<img src=x>",
        "|x|`y`",
        "/close",
        "@all",
        "x" * 3000,
        "2026-13-45",
        "9999999999d",
        "1e999",
        "reconciler.plan/v4",
    ),
)

BIDI = frozenset("\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff")


def draw(seed: int) -> Random:
    """Return what is drawn from: the same each time."""
    return Random(seed)  # noqa: S311 - repeatable


def resealed(document: dict[str, Any], chance: Random) -> str:
    """Return a document with up to three things done to its values, with a new checksum."""
    return with_checksum(mutated({name: value for name, value in document.items() if name != "checksum"}, chance))


def mutated(document: dict[str, Any], chance: Random) -> dict[str, Any]:
    """Return a copy of a JSON object with up to three things done to its values."""
    mutant = copy.deepcopy(document)
    for _ in range(chance.randint(1, 3)):
        holders = list(_holders(mutant))
        if holders:
            chance.choice((_replace, _replace, _transplant, _drop, _double))(chance.choice(holders), chance, holders)
    return mutant


def garbled(text: str, chance: Random) -> str:
    """Return a text with up to eight things done to its bytes, in a form that a file can hold."""
    data = bytearray(text.encode())
    for _ in range(chance.randint(1, 8)):
        chance.choice(MUTATIONS)(data, chance)
    return data.decode("utf-8", "surrogateescape")


def controls(shown: str) -> set[str]:
    """Return the characters in what was shown that would do something to a terminal."""
    return {char for char in set(shown) - {"\n"} if char in BIDI or unicodedata.category(char) == "Cc"}


def _holders(value: Any) -> Iterator[Any]:
    """Yield every object and list that is not empty, outermost first."""
    if isinstance(value, dict | list) and value:
        yield value
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _holders(inner)


def _key(holder: Any, chance: Random) -> Any:
    return chance.choice(list(holder)) if isinstance(holder, dict) else chance.randrange(len(holder))


def _replace(holder: Any, chance: Random, _holders: list[Any]) -> None:
    holder[_key(holder, chance)] = copy.deepcopy(chance.choice(HOSTILE))


def _transplant(holder: Any, chance: Random, holders: list[Any]) -> None:
    """Put a value from elsewhere, preferably one of the same name."""
    key = _key(holder, chance)
    named = [each[key] for each in holders if isinstance(each, dict) and key in each]
    holder[key] = copy.deepcopy(chance.choice(named or holders))


def _drop(holder: Any, chance: Random, _holders: list[Any]) -> None:
    del holder[_key(holder, chance)]


def _double(holder: Any, chance: Random, _holders: list[Any]) -> None:
    key = _key(holder, chance)
    if isinstance(holder, list):
        holder.insert(chance.randrange(len(holder) + 1), copy.deepcopy(holder[key]))
    else:
        holder[f"{key}2"] = copy.deepcopy(holder[key])


def parsed(text: str) -> dict[str, Any]:
    """Return the JSON object in a text."""
    found: dict[str, Any] = json.loads(text)
    return found
