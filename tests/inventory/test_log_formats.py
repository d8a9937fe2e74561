"""The log as text and as JSON."""

import json
from datetime import UTC, datetime

from reconciler.memory.apply_log import Apply
from reconciler.reports.log import log_json, log_text
from tests.inventory.test_text import FIRST, SECOND, SERVICE, THIRD

WHEN = datetime(2026, 12, 1, 10, 5, tzinfo=UTC)
LOG = (
    Apply(id=THIRD, when=WHEN, author="\x1b[31mEve", committer="Ada", service=SERVICE, reverts=SECOND),
    Apply(
        id=SECOND,
        when=WHEN,
        author="Ada",
        author_email="ada@example.com",
        committer="Ada",
        counts={"created": 3, "updated": 1200},
        manifests=FIRST,
        service=SERVICE,
        result=3,
        job="https://x/-/jobs/1",
        canary="acme/a",
    ),
)


def test_the_log_is_a_line_for_each_apply() -> None:
    assert log_text(LOG) == (
        "apply    when                  by             changes                   manifests\n"
        "ccccccc  2026-12-01 10:05 UTC  \\u001b[31mEve  nothing changed                      reverts bbbbbbb\n"
        "bbbbbbb  2026-12-01 10:05 UTC  Ada            3 created, 1,200 updated  aaaaaaa    "
        "canary acme/a, exit code 3, https://x/-/jobs/1\n"
    )


def test_no_apply_yet_is_one_line() -> None:
    assert log_text([]) == "No apply is recorded yet.\n"
    assert json.loads(log_json([])) == {"format": "reconciler.log/v1", "applies": [], "killed": []}


def test_programs_read_the_log_as_json() -> None:
    assert json.loads(log_json(LOG))["applies"][1] == {
        "id": SECOND,
        "when": "2026-12-01T10:05:00Z",
        "author": "Ada",
        "author_email": "ada@example.com",
        "committer": "Ada",
        "counts": {"created": 3, "updated": 1200},
        "manifests": FIRST,
        "service": SERVICE,
        "result": 3,
        "job": "https://x/-/jobs/1",
        "canary": "acme/a",
        "reverts": "",
    }
