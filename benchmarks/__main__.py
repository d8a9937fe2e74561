"""`python -m benchmarks`: measures, prints a table, and writes it where it is asked to."""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import click

from benchmarks.bench import FULL, QUICK, TINY, Bench
from benchmarks.figures import Results
from benchmarks.rows import NEEDY, ROWS
from benchmarks.running import Failed
from benchmarks.tables import text, write, write_json

SIZES = {sizes.name: sizes for sizes in (FULL, QUICK, TINY)}


@click.command(epilog="Example: python -m benchmarks reading memory --json results.json")
@click.argument("rows", nargs=-1, type=click.Choice(list(ROWS)))
@click.option("--quick", "sizes", flag_value="quick", help="Less work, in two minutes; browser and peers only by name.")
@click.option("--tiny", "sizes", flag_value="tiny", help="Hardly any work: to see whether all rows run.")
@click.option("--json", "file", type=click.Path(path_type=Path, dir_okay=False), help="Write the results there too.")
@click.option(
    "--write", "into_readme", is_flag=True, help="Write these rows into benchmarks/README.md and results.json."
)
def main(rows: tuple[str, ...], sizes: str | None, file: Path | None, into_readme: bool) -> None:
    """Measure ROWS, or all there are."""
    results = Results(sizes or FULL.name)
    failed = False
    with TemporaryDirectory(prefix="benchmarks-") as folder:
        bench = Bench(SIZES[results.sizes], Path(folder))
        every = [name for name in ROWS if sizes is None or name not in NEEDY]
        for name in rows or every:
            click.echo(f"{name} ...", err=True)
            began = perf_counter()
            try:
                results.rows[name] = ROWS[name](bench)
            except Failed as error:
                click.echo(f"{name}: {error}", err=True)
                failed = True
                continue
            results.seconds[name] = perf_counter() - began
    click.echo(text(results), nl=False)
    if file is not None:
        write_json(results.as_json(), file)
    if into_readme and not failed:
        write(results, ROWS)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
