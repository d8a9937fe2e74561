"""The first days with a fleet as it is: taken up without a warning, and a project that a rule for all does not fit."""

import pytest

from reconciler.sandbox import generate
from tests.cli_runner import CliRunner

pytestmark = pytest.mark.untraced

ODD = "acme/data-6/charts-11"
RELEASE = '\n  milestones: {"2030.1": {due_date: 2030-03-31}}\n'
RELEASES = f"apiVersion: reconciler/v1\nkind: Profile\nmetadata: {{name: releases}}\nspec: {RELEASE}"
EVERYONE = (
    f"apiVersion: reconciler/v1\nkind: Profile\nmetadata: {{name: everyone}}\nspec: {RELEASE}---\n"
    "apiVersion: reconciler/v1\nkind: ProjectSet\nmetadata: {name: everyone, profiles: [everyone]}\n"
    "select: {group: acme/data-6}\n"
)
WAY_OUT = "write `unmanaged: [milestones]` in its own document"


def test_a_rule_for_all_does_not_fit_one_project_and_its_document_says_so(cli_runner: CliRunner) -> None:
    state = generate(60, 3)
    for project in state["projects"]:
        project["merge_requests_enabled"] = project["issues_enabled"]
    cli_runner.sandbox.replace_state(state)

    assert cli_runner("init --group acme/checkout-3 --group acme/data-6").code == 0
    assert cli_runner("validate").out == "Valid: 25 documents: 2 groups, 19 projects, 2 sets, 2 profiles.\n"
    planned = cli_runner("plan")
    assert (planned.code, planned.out.splitlines()[-1].partition(" unmanaged")[0]) == (
        0,
        "No changes: 21 targets are in order, 12",
    )

    # a profile of a set: the project that cannot have it is left out, although it has a document
    cli_runner.write("manifests/everyone.yaml", EVERYONE)
    planned = cli_runner("plan")
    assert (planned.code, ODD in planned.out) == (0, False)
    assert "\nPlan: 10 to create, 12 unmanaged, 1 not applicable, " in planned.out
    assert '+ milestone "2030.1"' in planned.out

    # a profile of the document: somebody has asked for it in this project
    cli_runner.write("manifests/releases.yaml", RELEASES)
    document = cli_runner.folder / f"manifests/{ODD}.yaml"
    asked = document.read_text().replace(f"path: {ODD}", f"path: {ODD}, profiles: [releases]")
    document.write_text(asked)
    planned = cli_runner("plan")
    assert planned.code == 3
    assert [line for line in planned.out.splitlines() if " ! " in line or ODD in line] == [
        f"project {ODD}",
        "  ! milestones: switched off in the project: issues and merge requests; switch issues and merge requests on, or "
        f"{WAY_OUT}     manifests/releases.yaml:5",
    ]

    document.write_text(asked.replace("spec:\n", "spec:\n  unmanaged: [milestones]\n"))
    assert cli_runner("validate").out == "Valid: 28 documents: 2 groups, 19 projects, 3 sets, 4 profiles.\n"
    planned = cli_runner("plan")
    assert (planned.code, ODD in planned.out) == (0, False)
    assert cli_runner("apply --yes").code == 0
    assert cli_runner("drift").code == 0
    assert cli_runner("doctor --target acme/data-6/charts-11").code == 0
