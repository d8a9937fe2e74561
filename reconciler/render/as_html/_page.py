"""The page around the changes: head, troubles, numbers with a bar for each section, and what its script needs."""

from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from importlib import resources

from reconciler.render._numbers import WHOLE, Counts
from reconciler.render.as_html._rows import Data, script_safe
from reconciler.system.terminal import escaped

SIGNS = {"create": "+", "update": "~", "delete": "&minus;", "problems": "!", "unfinished": "&times;"}
"""What is told by colour is told by these too, as HTML."""

FEW = 10
"""How many troubles of one kind are shown without a click."""

SHOWN_AS = {"created": "create", "updated": "update", "deleted": "delete"}


@dataclass(frozen=True, slots=True)
class Troubles:
    """What needs somebody.

    Attributes:
        title: how many there are of what.
        lines: of each, what it is about, what it is, and why.
    """

    title: str
    lines: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True)
class Page:
    """What a page shows.

    Attributes:
        title: the page in one line.
        facts: where it comes from, a sentence each.
        troubles: shown first.
        columns: what is counted.
        counts: by section and column.
        data: the changes.
    """

    title: str
    facts: tuple[str, ...]
    troubles: tuple[Troubles, ...]
    columns: tuple[str, ...]
    counts: Counts
    data: Data

    def __str__(self) -> str:
        """The whole file."""
        style, script = (_file(name) for name in ("page.css", "page.js"))
        policy = (
            f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
            "base-uri 'none'; form-action 'none'"
        )
        return _file("page.html").format(
            policy=policy,
            title=safe(self.title),
            style=style,
            facts="\n".join(f"<p>{safe(fact)}</p>" for fact in self.facts),
            troubles="".join(map(_troubles, self.troubles)),
            numbers=_numbers(self.columns, self.counts),
            data=script_safe(self.data),
            script=script,
        )


def safe(text: str) -> str:
    """Return text for between tags and for attributes in quotation marks."""
    return escape(escaped(text))


def _file(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def _troubles(troubles: Troubles) -> str:
    """Return what needs somebody: the first of it at once, and the rest by a click."""
    if not troubles.lines:
        return ""
    items = [
        f'<li><span class="target">{safe(target)}</span> <span class="what">{safe(what)}</span> '
        f'<span class="why">{safe(why)}</span></li>\n'
        for target, what, why in troubles.lines
    ]
    title = f"<h2>{safe(troubles.title)}</h2>"
    first = f"<ul>\n{''.join(items[:FEW])}</ul>\n"
    rest = f"<details>\n<summary>{len(items) - FEW} more</summary>\n<ul>\n{''.join(items[FEW:])}</ul>\n</details>\n"
    return f'<section class="troubles">\n{title}\n{first}{rest if len(items) > FEW else ""}</section>\n'


def _numbers(columns: Sequence[str], counts: Counts) -> str:
    """Return a table of the sections, each with its numbers and a bar that shows them."""
    if not counts:
        return ""
    sections = sorted({section for section, _ in counts})
    longest = max(sum(counts[section, column] for column in columns) for section in sections)
    head = "".join(f'<th scope="col">{_key(column)}</th>' for column in columns)
    rows = "".join(_row(section, columns, counts, longest) for section in sections)
    total = "".join(f"<td>{sum(counts[each, column] for each in sections)}</td>" for column in columns)
    return (
        '<section class="numbers">\n<h2>By section</h2>\n<div class="scroll" tabindex="0" role="region" '
        'aria-label="Numbers by section">\n<table>\n'
        f'<thead><tr><th scope="col">section</th>{head}<td class="chart"></td></tr></thead>\n'
        f'<tbody>\n{rows}</tbody>\n<tfoot><tr><th scope="row">all</th>{total}<td class="chart"></td></tr></tfoot>\n'
        "</table>\n</div>\n</section>\n"
    )


def _key(column: str) -> str:
    name = SHOWN_AS.get(column, column)
    return f'<span class="sign {name}" aria-hidden="true">{SIGNS[name]}</span> <span class="word">{column}</span>'


def _row(section: str, columns: Iterable[str], counts: Counts, longest: int) -> str:
    cells = "".join(
        f"<td>{number}</td>" if (number := counts[section, column]) else '<td class="zero">0</td>' for column in columns
    )
    bars = "".join(_bars([(SHOWN_AS.get(column, column), counts[section, column]) for column in columns], longest))
    return (
        f'<tr><th scope="row" data-section="{safe(section)}">{safe(section or WHOLE)}</th>{cells}<td class="chart">'
        f'<svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">{bars}</svg></td></tr>\n'
    )


def _bars(numbers: Iterable[tuple[str, int]], longest: int) -> Iterator[str]:
    begin = 0.0
    for name, number in numbers:
        if number:
            width = 100 * number / longest
            yield f'<rect class="{name}" x="{begin:.2f}" width="{width:.2f}" height="8"/>'
            begin += width
