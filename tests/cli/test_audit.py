"""`--report audit=DIR`: exceptions with the authors of their lines, undeclared access, adopted objects and applies."""

import csv
import re
from pathlib import Path

import pytest

from tests.cli_runner import CliRunner
from tests.fleet.repository import repository

MANIFEST = """\
apiVersion: reconciler/v1
kind: Project
metadata:
  path: acme/api
  exceptions:
    - {section: milestones, item: a, fields: [due_date], until: 2099-01-02, reason: "=HYPERLINK(1)"}
    - {section: trigger_tokens, until: 2099-01-01, reason: OPS-12}
spec:
  milestones: {a: {due_date: 2026-12-01}, b: {}}
  trigger_tokens: {theirs: {}}
"""

EXCEPTIONS = """\
target,section,item,fields,until,days left,reason,manifest,committed by,on
project acme/api,trigger_tokens,,,2099-01-01,N,OPS-12,manifests/project.yaml:7,Ada,2026-03-01
project acme/api,milestones,a,due_date,2099-01-02,N,'=HYPERLINK(1),manifests/project.yaml:6,Ada,2026-03-01
"""

ACCESS = """\
target,section,object,id,owner,last used
project acme/api,trigger_tokens,"trigger token ""forgotten""\",22,bob,
"""

ADOPTED = """\
target,section,object,id,owner
project acme/api,milestones,"milestone ""a""\",5,
project acme/api,trigger_tokens,"trigger token ""theirs""\",21,bob
"""

APPLIES = "apply,ended,by,created,updated,deleted,exit code,commit,reverts,job\n"


def live(cli_runner: CliRunner) -> None:
    """Give the project objects of others, and commit manifests that declare some of them."""
    cli_runner.service(
        milestones=[{"id": 5, "iid": 1, "title": "a"}],
        trigger_tokens=[
            {"id": 21, "description": "theirs", "owner": "bob"},
            {"id": 22, "description": "forgotten", "owner": "bob"},
        ],
    )
    Path("manifests").mkdir()
    Path("manifests/project.yaml").write_text(MANIFEST)


def read(table: str) -> str:
    """Return a table, without what depends on the day."""
    text = Path("audit", f"{table}.csv").read_bytes().decode()
    assert text.count("\r\n") == text.count("\n")
    return re.sub(r"(?m)(?<=,2099-01-0[12],)[0-9]+", "N", text.replace("\r\n", "\n"))


@pytest.mark.untraced
def test_an_audit_has_four_tables_and_the_fleet_page_shows_them(cli_runner: CliRunner) -> None:
    live(cli_runner)
    commit = repository(cli_runner.folder).commit()
    plan = cli_runner("plan --report audit=audit --report fleet=fleet.html").out
    assert '  = trigger token "theirs" is adopted         it belongs to bob\n' in plan
    assert (read("exceptions"), read("access"), read("adopted")) == (EXCEPTIONS, ACCESS, ADOPTED)
    assert read("applies") == APPLIES
    page = Path("fleet.html").read_text()
    assert re.findall(r'<h2 id="audit-[a-z]+-title">(.*)</h2>', page) == [
        "All exceptions: 2",
        "Access that no manifest declares: 1",
        "Adopted: live before an apply recorded it: 2",
    ]
    assert '<td data-label="committed by">Ada</td>' in page
    assert cli_runner("apply --yes").code == 0
    assert "is adopted" not in cli_runner("plan --report audit=audit").out
    assert read("adopted") == ADOPTED.partition("\n")[0] + "\n"
    (apply,) = csv.DictReader(read("applies").splitlines())
    assert {name: apply[name] for name in ("created", "updated", "deleted", "exit code", "commit")} == {
        "created": "1",
        "updated": "0",
        "deleted": "0",
        "exit code": "0",
        "commit": commit,
    }


def test_lines_that_no_commit_has_are_by_nobody(cli_runner: CliRunner) -> None:
    live(cli_runner)
    cli_runner("plan --report audit=audit")
    outside = [row["committed by"] for row in csv.DictReader(read("exceptions").splitlines())]
    made = repository(cli_runner.folder)
    cli_runner("plan --report audit=audit")
    unknown = [row["committed by"] for row in csv.DictReader(read("exceptions").splitlines())]
    made.commit()
    Path("manifests/project.yaml").write_text(MANIFEST.replace("OPS-12", "OPS-13"))
    cli_runner("plan --report audit=audit")
    edited = [row["committed by"] for row in csv.DictReader(read("exceptions").splitlines())]
    assert (outside, unknown, edited) == (["", ""], ["", ""], ["", "Ada"])


def test_a_long_table_is_cut_on_the_page_alone(cli_runner: CliRunner) -> None:
    cli_runner.service(trigger_tokens=[{"id": n, "description": f"t{n}", "owner": "bob"} for n in range(1, 121)])
    cli_runner.project("{trigger_tokens: {}}")
    cli_runner("plan --report audit=audit --report fleet=fleet.html")
    assert read("access").count("\n") == 121
    page = Path("fleet.html").read_text()
    assert page.count('<td data-label="last used">') == 100
    assert "<p>20 more: <code>--report audit=DIR</code> writes all as CSV.</p>" in page


def test_an_audit_is_a_folder_and_of_a_plan(cli_runner: CliRunner) -> None:
    live(cli_runner)
    Path("audit").write_text("mine")
    done = cli_runner("plan --report audit=audit")
    assert (done.code, done.out) == (64, "")
    assert "--report audit: audit is a file; name a folder for the tables" in done.err
    assert Path("audit").read_text() == "mine"
    refused = cli_runner("apply --yes --report audit=tables")
    assert refused.code == 64
    assert "no format audit" in refused.err
