"""Results as text: a table for the terminal, and the same in the README, between its markers."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.figures import Figure, Results

BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"
HEADINGS = ("row", "work", "to reach", "median", "spread", "of target", "reached")
README = Path(__file__).parent / "README.md"
RESULTS = Path(__file__).parent / "results.json"


def lines(name: str, figures: list[Figure]) -> list[tuple[str, ...]]:
    """Return the cells of the lines of one row."""
    return [
        (
            name,
            figure.work,
            _target(figure),
            _number(figure.value, figure.unit),
            f"{figure.spread:.1%} of {len(figure.samples)}",
            "" if figure.ratio is None else f"{figure.ratio:.2f}",
            {True: "yes", False: "no", None: ""}[figure.reached],
        )
        for figure in figures
    ]


def text(results: Results) -> str:
    """Return the results as a table for the terminal."""
    cells = [HEADINGS, *(line for name, figures in results.rows.items() for line in lines(name, figures))]
    widths = [max(len(line[column]) for line in cells) for column in range(len(HEADINGS))]
    return "".join("  ".join(map(str.ljust, line, widths)).rstrip() + "\n" for line in cells)


def markdown(results: Results) -> str:
    """Return the results as a table for the README, with what there is to know of each figure below it."""
    cells = [line for name, figures in results.rows.items() for line in lines(name, figures)]
    table = [HEADINGS, ("---",) * len(HEADINGS), *((f"`{row}`", *rest) for row, *rest in cells)]
    machine = results.as_json()["machine"]
    notes = [
        f"- `{name}`: {about}"
        for name, figures in results.rows.items()
        for about in dict.fromkeys(figure.about for figure in figures if figure.about)
    ]
    where = (
        f"Sizes: {results.sizes}; {machine['cores']} cores, {machine['system']}, Python {machine['python']}; "
        f"{sum(results.seconds.values()) / 60:.0f} minutes in all. The spread is the largest sample less the smallest, "
        "as a share of the median, and how many samples there were."
    )
    return "\n".join([*("| " + " | ".join(line) + " |" for line in table), "", where, "", *notes, ""])


def write(results: Results, names: Iterable[str], readme: Path = README, file: Path = RESULTS) -> None:
    """Write the results into the README, and beside it as JSON; rows that were not measured stay as they are there."""
    results = results.completed(names, Results.from_json(json.loads(file.read_text(encoding="utf-8"))))
    before, _, rest = readme.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    readme.write_text(f"{before}{BEGIN}\n{markdown(results)}{END}{after}", encoding="utf-8")
    write_json(results.as_json(), file)


def write_json(results: Mapping[str, Any], file: Path) -> None:
    """Write results as JSON."""
    file.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def _target(figure: Figure) -> str:
    if figure.at_most is None:
        return ""
    return f"{'' if figure.exactly else '≤ '}{_number(figure.at_most, figure.unit)}"


def _number(number: float, unit: str) -> str:
    digits = f"{number:.0f}" if number == int(number) or number >= 100 else f"{number:.2f}"
    return f"{digits} {unit}".rstrip()
