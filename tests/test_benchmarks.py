"""The benchmarks: each row in a tiny size, its shape, and that the README tells of it. No time is asserted."""

import json
import sys
from itertools import islice
from pathlib import Path

import pytest
import yaml

from benchmarks.__main__ import main
from benchmarks.bench import TINY, Bench
from benchmarks.figures import Figure, Results
from benchmarks.fleet import LINES, PARTS, manifest, project, write_state
from benchmarks.rows import ROWS, exporting, rendering, sections
from benchmarks.rows.peers import PEERS
from benchmarks.running import Failed
from benchmarks.tables import BEGIN, END, README, RESULTS, lines, text, write, write_json

pytestmark = pytest.mark.untraced

HERE = [name for name in ROWS if name not in {"browser", "peers"}]
"""The rows that need nothing from elsewhere."""

UNITS = dict.fromkeys(("browser", "export", "reading", "render", "section", "show"), "s")
UNITS |= {"cpu": "ms", "layers": "ms", "memory": "MB", "order": "ms", "tls": "ms"}
"""Of the first figure of a row, where it is no ratio and no count."""


@pytest.fixture
def _started_quickly(name: str, program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a start costs is measured when the benchmarks are; here it would take most of the time."""
    if name in ("cpu", "latency"):  # what these subtract from each other must be of whole processes
        return
    for path, module in [*sys.modules.items()]:
        if path.startswith("benchmarks.") and hasattr(module, "RECONCILER"):
            monkeypatch.setattr(module, "RECONCILER", (str(program),))


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(TINY, tmp_path_factory.mktemp("bench"))


@pytest.mark.usefixtures("_started_quickly")
@pytest.mark.parametrize("name", HERE)
def test_each_row_measures(name: str, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    # Each of these takes processes of its own, and other tests prove what the commands do.
    monkeypatch.setattr(rendering, "FORMATS", ("text", "html"))
    monkeypatch.setattr(sections, "SORTS", {"deletions": sections.SORTS["deletions"]})
    monkeypatch.setattr(exporting, "WAYS", {way: exporting.WAYS[way] for way in (exporting.NEW, exporting.EXISTING)})
    figures = ROWS[name](bench)
    assert figures[0].unit == UNITS.get(name, "")
    assert all(figure.value >= 0 for figure in figures)
    assert all((figure.at_most is None) == (name == "layers") for figure in figures)
    assert [len(line) for line in lines(name, figures)] == [7] * len(figures)
    if name in ("requests", "since"):
        assert figures[0].reached


def test_a_manifest_has_sixty_lines_and_is_the_same_each_time() -> None:
    written = [manifest(project(index)) for index in range(30)]
    assert {each.count("\n") for each in written} == {LINES}
    assert written == [manifest(project(index)) for index in range(30)]
    assert len(yaml.safe_load(written[0])["spec"]) == 7


def test_a_fleet_in_order_takes_nothing_but_reads(tmp_path: Path) -> None:
    work = write_state(tmp_path / "state.json", 20)
    assert (work.plan, work.apply) == (20 * PARTS, 20 * PARTS)
    drifted = write_state(tmp_path / "drifted.json", 20, drifted=True)
    assert drifted.plan == work.plan + 1  # the library that no list has yet
    assert drifted.apply > drifted.plan
    assert drifted.apply == write_state(tmp_path / "again.json", 20, drifted=True).apply


def test_peers_are_told_of_the_same_projects() -> None:
    for peer in PEERS:
        told = json.dumps(peer.configuration(map(project, range(10)), "http://127.0.0.1:9"))
        assert [f'"{project(index).path}"' in told for index in range(10)] == [True] * 10


def test_figures_are_medians_with_their_spread_and_their_share_of_the_target() -> None:
    figure = Figure("reading", (3.0, 1.0, 2.0), "s", 4)
    assert (figure.value, figure.spread, figure.ratio, figure.reached) == (2.0, 1.0, 0.5, True)
    assert Figure("requests", (9.0,), "", 8, exactly=True).reached is False
    assert Figure("told only", (0.0,)).as_json()["ratio"] is None
    assert lines("reading", [figure]) == [("reading", "reading", "≤ 4 s", "2 s", "100.0% of 3", "0.50", "yes")]


def test_results_are_written_between_the_markers_and_as_json(tmp_path: Path) -> None:
    results = Results("tiny", {"reading": [Figure("to read", (0.5,), "s", 6, about="quick")]}, {"reading": 1.0})
    readme, file = tmp_path / "README.md", tmp_path / "results.json"
    readme.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    earlier = {"reading": [Figure("to read", (9.0,), "s", 6)], "start": [Figure("to start", (2.0,), "", 5)]}
    write_json(Results("tiny", earlier, {"reading": 1.0, "start": 2.0}).as_json(), file)
    write(results, ["start", "reading", "never measured"], readme, file)
    table = [line for line in readme.read_text().splitlines() if line.startswith("| `")]
    assert table == [
        "| `start` | to start | ≤ 5 | 2 | 0.0% of 1 | 0.40 | yes |",
        "| `reading` | to read | ≤ 6 s | 0.50 s | 0.0% of 1 | 0.08 | yes |",
    ]
    assert "old" not in readme.read_text()
    assert readme.read_text().startswith("before\n")
    assert readme.read_text().endswith(f"{END}\nafter\n")
    assert json.loads(file.read_text())["rows"]["reading"]["figures"][0]["reached"] is True
    assert [line.split()[0] for line in islice(text(results).splitlines(), 2)] == ["row", "reading"]


def test_the_readme_has_every_row_and_the_results_are_those_of_the_table() -> None:
    table = README.read_text().partition(BEGIN)[2].partition(END)[0]
    assert [name for name in ROWS if f"| `{name}` |" not in table] == []
    assert list(json.loads(RESULTS.read_text())["rows"]) == list(ROWS)


def test_a_row_that_fails_is_told_and_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_bench: Bench) -> list[Figure]:
        raise Failed("no such thing")

    monkeypatch.setitem(ROWS, "start", fail)
    before = README.read_text()
    with pytest.raises(SystemExit) as ended:
        main(["start", "--tiny", "--write", "--json", str(tmp_path / "results.json")])
    assert ended.value.code == 1
    assert "start: no such thing" in capsys.readouterr().err
    assert json.loads((tmp_path / "results.json").read_text())["rows"] == {}
    assert README.read_text() == before
