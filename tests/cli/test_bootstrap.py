"""`examples/bootstrap`: from an empty service to a group with all its projects in one apply, and no request too many."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.kinds import all_kinds
from reconciler.model.targets import Level
from tests.cli_runner import CliRunner
from tests.items import changes_of

EXAMPLE = Path(__file__).parents[2] / "examples" / "bootstrap"


@pytest.fixture
def example(cli_runner: CliRunner, dialect: str, monkeypatch: pytest.MonkeyPatch) -> CliRunner:
    shutil.copytree(EXAMPLE / "manifests", "manifests")
    shutil.copytree(EXAMPLE / "templates", "templates")
    state = yaml.safe_load((EXAMPLE / "state.yaml").read_text())
    state["instance"]["dialect"] = dialect
    cli_runner.sandbox.replace_state(state)
    monkeypatch.setenv("GITHUB_TOKEN", "ghp_example")
    return cli_runner


def test_one_apply_creates_everything_with_the_fewest_requests(example: CliRunner) -> None:
    assert example("plan --out plan.json").code == 0
    plan = json.loads(Path("plan.json").read_text())
    example.sandbox.clear_log()
    done = example("apply --yes --tokens-to tokens.jsonl --report json=report.json")
    assert (done.code, json.loads(Path("report.json").read_text())["summary"]["created"]) == (0, 38)
    log = example.sandbox.log()
    writes = [each for each in log if each["method"] != "GET"]
    assert len(writes) == sum(len(change["requests"]) for change in changes_of(plan))
    assert len(log) - len(writes) == fewest_reads(plan)
    assert "ghp_example" not in done.out + done.err + Path("plan.json").read_text() + Path("report.json").read_text()
    example.sandbox.clear_log()
    again = example("plan")
    assert (again.code, "No changes: 10 targets are in order, 1 unmanaged. " in again.out) == (0, True)
    assert example("drift").code == 0


def fewest_reads(plan: dict[str, Any]) -> int:
    """Return how many reads it takes at least to plan, to apply and to verify, all being well.

    What is below a missing target is not looked for. Of what was created, each part that is declared is read once
    before and once after it is written; of what existed before, the plan is the first reading.
    """
    places = {(change["target"], change["section"], change.get("part")) for change in changes_of(plan)}
    creations = sum(not section for _, section, _ in places)
    parts = sum(bool(section) for _, section, _ in places)
    # Of the archive: the group, and its subgroups, labels, milestones and epics, until two counts agree.
    of_archive, of_import, of_labels, topmost_missing = 1 + 2 * 4, 1, 1, 1
    return topmost_missing + creations + of_archive + of_import + of_labels + 2 * parts


def test_the_manifests_are_short_and_hold_sections_of_every_level() -> None:
    texts = [file.read_text() for file in (EXAMPLE / "manifests").iterdir()]
    assert sum(text.count("\n") for text in texts) <= 60
    specs = [document.get("spec", {}) for text in texts for document in yaml.safe_load_all(text)]
    kinds = [all_kinds()[name] for spec in specs for name in spec]
    assert {level for kind in kinds for level in kind.models} == {*Level}
