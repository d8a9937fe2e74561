"""An HTML document of its own: it loads nothing from anywhere, and runs no script and no style sheet but its own.

The pages of `html` and `fleet` are made here. Begin with `document`.
"""

import re
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from hashlib import sha256
from importlib import resources

from jinja2 import Environment, PackageLoader, StrictUndefined

from reconciler.model.protocols import Json
from reconciler.reports.coverage import SEVERITY, Matrix, State
from reconciler.system.terminal import escaped

MAX_FIRST_ENTRIES = 6
"""How many entries of a list are shown at first."""

BREAK = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})|(?<=[/_])(?=[^/_\s])")
"""A date, which is never broken, or the place where a name may break; `broken` of `elements.js` does the same."""


def document(template: str, *, styles: Iterable[str], scripts: Iterable[str], **values: object) -> str:
    """Return a page.

    Args:
        template: the name of its file.
        styles: the names of the files with its style sheets.
        scripts: the names of the files with its scripts, in the order in which they run.
        values: the values of the template; `data` is for the scripts.
    """
    return (
        _environment()
        .get_template(template)
        .render(values, digest=_digest, styles=_files(styles), scripts=_files(scripts))
    )


def cells(fleet: Matrix) -> Mapping[str, Json]:
    """Return a matrix for `matrix.js`: a digit for the state of each cell, row by row."""
    return {
        "targets": [escaped(str(row.target)) for row in fleet.rows],
        "sections": [*map(escaped, fleet.sections)],
        "states": [*State],
        "cells": "".join(str(SEVERITY[state]) for row in fleet.rows for state in row.states),
    }


def parted(text: str) -> list[str | None]:
    """Return the parts of a text; between two parts is a date, or None where a line may break: see `broken.html`."""
    return BREAK.split(text)


def in_two(rows: Sequence[Json]) -> list[Sequence[Json]]:
    """Return the first entries of a list, and if there are more, a second list with these."""
    return [rows[:MAX_FIRST_ENTRIES], *([rows[MAX_FIRST_ENTRIES:]] if len(rows) > MAX_FIRST_ENTRIES else [])]


def _files(names: Iterable[str]) -> list[str]:
    return [resources.files(__package__).joinpath(name).read_text("utf-8") for name in names]


def _digest(text: str) -> str:
    """Return the digest by which the page's content security policy allows a style sheet or a script."""
    return b64encode(sha256(text.encode()).digest()).decode()


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("reconciler.reports", "html"),
        autoescape=True,
        finalize=_escaped,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"in_two": in_two, "parted": parted}
    environment.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "separators": (",", ":")}
    return environment


def _escaped(value: Json) -> Json:
    """Return a value of the template without control characters; jinja2 then escapes it for HTML."""
    return escaped(value) if type(value) is str else value
