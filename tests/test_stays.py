"""How often a value stays in a module is counted, through the command line, so that the way through the house is short."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

MOST = {
    "a due date, from its file to the request": 295,
    "a live value, from the response to its line": 225,
    "a bad date, from its file to the error": 56,
    "a token, from its variable to the header": 41,
    "functions that take both a reader and a concurrency": 0,
}
"""Some above what was counted last: a figure is a witness, not an aim.

A live value stayed 132 times before plans were lists, and a due date 206: a list is asked for its changes, and a document
for its number, where a field was read before. A bad date passes what finds the line of a project in the list of a set.
A live value stays a few times more since each change is asked for its effect on protection, and a due date since each
section is asked for its minimums.
"""


@pytest.mark.untraced
def test_no_value_is_sent_on_a_long_way_round() -> None:
    """Who makes a way much longer raises its number here, and says what that bought."""
    root = Path(__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.stays"], cwd=root, capture_output=True, text=True, check=True
    )
    counted = {line[1]: int(line[2]) for line in re.finditer(r"^(.*): ([0-9]+)", done.stdout, re.MULTILINE)}
    assert counted.keys() == MOST.keys()
    assert {what: number for what, number in counted.items() if number > MOST[what]} == {}
