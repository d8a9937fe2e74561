"""How often a value stays in a module is counted, through the command line, so that the way through the house is short."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

MOST = {
    "a due date, from its file to the request": 125,
    "a live value, from the response to its line": 129,
    "a bad date, from its file to the error": 51,
    "a token, from its variable to the header": 57,
    "functions that take both a reader and a concurrency": 25,
}


@pytest.mark.untraced
def test_no_value_stays_more_often_than_it_did() -> None:
    """Who makes a way shorter lowers its number here; who makes one longer raises it and says what that bought."""
    root = Path(__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.stays"], cwd=root, capture_output=True, text=True, check=True
    )
    counted = {line[1]: int(line[2]) for line in re.finditer(r"^(.*): ([0-9]+)", done.stdout, re.MULTILINE)}
    assert counted.keys() == MOST.keys()
    assert {what: number for what, number in counted.items() if number > MOST[what]} == {}
