"""The log of applies as columns of text, and as JSON: `log_text` and `log_json`, for `log`."""

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from shlex import join
from typing import Literal

from pydantic import TypeAdapter

from reconciler.document.checksum import DOCUMENT
from reconciler.memory.absence import SHORT_SHA_LENGTH
from reconciler.memory.apply_log import Apply, KilledRun, revert_words, short
from reconciler.system.terminal import escaped

HEADS = ("apply", "when", "by", "changes", "manifests", "")
NONE_YET = "No apply is recorded yet.\n"


@dataclass(frozen=True, slots=True)
class Log:
    """The last applies."""

    __pydantic_config__ = DOCUMENT

    format: Literal["reconciler.log/v1"]
    """The format of this document."""
    applies: tuple[Apply, ...]
    """The latest first."""
    killed: tuple[KilledRun, ...] = ()
    """The runs of this clone that were killed since the last one that came to its end, the latest first."""


def log_text(applies: Iterable[Apply], killed: Iterable[KilledRun] = (), local_reports: Collection[str] = ()) -> str:
    """Return a line for each run that was killed, and one for each apply, below the names of the columns.

    Args:
        applies: the latest first.
        killed: the latest first.
        local_reports: the full IDs of applies whose report is in this clone.
    """
    unfinished = "".join(f"{_killed(run)}\n" for run in killed)
    if not applies:
        return unfinished + NONE_YET
    rows = [HEADS, *(_row(apply, local_reports) for apply in applies)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADS))]
    lines = ("  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)) for row in rows)
    return unfinished + "".join(f"{line.rstrip()}\n" for line in lines)


def log_json(applies: Iterable[Apply], killed: Iterable[KilledRun] = ()) -> str:
    """Return the applies, and the runs that were killed, as a document."""
    document = TypeAdapter(Log).dump_python(Log("reconciler.log/v1", tuple(applies), tuple(killed)), mode="json")
    return json.dumps(document, indent=2) + "\n"


def _killed(run: KilledRun) -> str:
    """Return a sentence about a killed run, with the command to go on."""
    when = f"that began at {run.began_at:%Y-%m-%d %H:%M} UTC was killed"
    if run.reverts:
        return f"A revert of the apply {escaped(short(run.reverts))} {when}; to finish it: " + escaped(
            f"{join(revert_words(run.reverts))} --yes"
        )
    manifests = f" of {escaped(run.manifests[:SHORT_SHA_LENGTH])}" if run.manifests else ""
    return f"An apply{manifests} {when}; to see what is left: reconciler plan"


def _row(apply: Apply, local_reports: Collection[str]) -> tuple[str, ...]:
    changes = ", ".join(f"{number:,} {verb}" for verb, number in apply.counts.items())
    notes = [
        "report at hand" if apply.id in local_reports else "",
        f"reverts {short(apply.reverts)}" if apply.reverts else "",
        f"canary {apply.canary}" if apply.canary else "",
        f"exit code {apply.result}" if apply.result else "",
        apply.job,
    ]
    cells = (
        apply.id[:SHORT_SHA_LENGTH],
        f"{apply.when:%Y-%m-%d %H:%M} UTC",
        apply.author,
        changes or "nothing changed",
        apply.manifests[:SHORT_SHA_LENGTH],
        ", ".join(filter(None, notes)),
    )
    return tuple(map(escaped, cells))
