"""The pipeline for fleets, run as it is written: `examples/ci/fleet.gitlab-ci.yml`."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import EXAMPLES
from tests.desk import Desk


@pytest.fixture(autouse=True)
def _service(desk: Desk) -> None:
    desk.sandbox.replace_state(yaml.safe_load((EXAMPLES / "state.yaml").read_text()))
    shutil.copytree(EXAMPLES / "fleet/manifests", desk.folder / "manifests")


def run(desk: Desk, job: dict[str, Any], index: str = "") -> list[str]:
    """Run the script of a job and return what each line of it printed."""
    printed = []
    for line in job["script"]:
        words = []
        for word in line.replace("$CI_NODE_INDEX", index).split()[1:]:
            words += sorted(str(each.relative_to(desk.folder)) for each in desk.folder.glob(word)) or [word]
        done = desk(" ".join(words))
        assert (done.code, done.err) == (0, "")
        printed.append(done.out)
    return printed


def test_the_pipeline_divides_a_fleet_and_puts_it_together_again(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = desk("plan").out
    jobs = yaml.safe_load((EXAMPLES / "ci/fleet.gitlab-ci.yml").read_text())
    summaries = {}
    for stage in jobs["stages"]:
        total = jobs[stage].get("parallel")
        for index in range(1, (total or 1) + 1):
            for name, value in (("CI_NODE_INDEX", str(index)), ("CI_NODE_TOTAL", str(total))):
                monkeypatch.setenv(name, value) if total else monkeypatch.delenv(name)
            summaries[stage] = run(desk, jobs[stage], str(index))[-1]
    assert summaries["review"].rpartition(" requests to apply")[0] == whole.rpartition(" requests to apply")[0]
    assert Path("tfplan.json").read_text() == '{"create": 12, "update": 2, "delete": 0}\n'
    assert "Applied: 12 created, 2 updated, 0 deleted; 0 failed, " in summaries["report"]
    monkeypatch.delenv("CI_NODE_INDEX", raising=False)
    assert desk("plan").out.startswith("Plan: 0 to create, 0 to update, 0 to delete, 0 problems")
