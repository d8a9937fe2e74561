"""Feed the manifest reader mutated manifests until the time is up: it must never raise anything but its own errors.

    python -m tests.fuzz.manifests --seconds 3600 --seed 1

Ends with 1 and the offending input on stderr if it finds one. The same seed mutates in the same way.
"""

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from reconciler.errors import ManifestErrors
from reconciler.kinds import all_kinds
from reconciler.manifests import read_contents

SEEDS = [file.read_bytes() for file in sorted((Path(__file__).parents[2] / "examples").rglob("*.yaml"))]
PIECES = [
    b"&a ", b"*a", b"<<: ", b"!!str ", b"!x ", b"{", b"}", b"[", b"]", b"- ", b": ", b"? ", b"|", b">", b"'", b'"', b"\n", b"\t",
    b"  ", b"---\n", b"...\n", b"%YAML 1.1\n", b"# ", b"null", b"~", b"1e999", b".nan", b"0x1f", b"2026-13-45", b"{path}", b"{{",
    b"}", b"{% for x in range(9) %}", b"{{ x }}", b"\x00", b"\xff", b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"\xf0\x9f\x98\x80",
    b"renamed_from: ", b"prune: ", b"profiles: ", b"kind: ", b"select: ", b"id: ", b"rotate_after: ", b"x" * 300,
]  # fmt: skip


def mutated(chance: random.Random) -> bytes:
    """Return a manifest with up to eight things done to it."""
    text = bytearray(chance.choice(SEEDS))
    for _ in range(chance.randint(1, 8)):
        chance.choice(MUTATIONS)(text, chance)
    return bytes(text)


def insert(text: bytearray, chance: random.Random) -> None:
    place = chance.randint(0, len(text))
    text[place:place] = chance.choice(PIECES)


def delete(text: bytearray, chance: random.Random) -> None:
    place = chance.randint(0, len(text))
    del text[place : place + chance.randint(1, 40)]


def repeat(text: bytearray, chance: random.Random) -> None:
    place, length = chance.randint(0, len(text)), chance.randint(1, 200)
    text[place:place] = text[place : place + length] * chance.randint(1, 5)


def overwrite(text: bytearray, chance: random.Random) -> None:
    if text:
        text[chance.randrange(len(text))] = chance.randrange(256)


def swap_lines(text: bytearray, chance: random.Random) -> None:
    lines = text.split(b"\n")
    first, second = chance.randrange(len(lines)), chance.randrange(len(lines))
    lines[first], lines[second] = lines[second], lines[first]
    text[:] = b"\n".join(lines)


MUTATIONS: list[Callable[[bytearray, random.Random], None]] = [insert, insert, delete, repeat, overwrite, swap_lines]


def main() -> int:
    """Fuzz and tell how it went."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    chance, kinds, ended = random.Random(given.seed), all_kinds(), Counter[str]()  # noqa: S311 - repeatable, not secret
    until = time.monotonic() + given.seconds
    while time.monotonic() < until:
        files = {f"{n}.yaml{chance.choice(['', '', '.j2'])}": mutated(chance) for n in range(chance.randint(1, 3))}
        try:
            read_contents(files, kinds)
            ended["valid"] += 1
        except ManifestErrors as errors:
            ended["refused"] += 1
            ended["faults"] += len(errors.diagnostics)
        except BaseException:
            sys.stderr.write(f"{files!r}\n")
            raise
    sys.stdout.write(f"seed {given.seed}, {given.seconds:.0f} s: {dict(ended)}; nothing but our own errors\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
