"""One group or project under two names: by path, by ID, by a set, by a former path. It is planned once, or not at all."""

import pytest

from tests.cli_runner import CliRunner
from tests.fleet.repository import Repository

ALL = """\
apiVersion: reconciler/v1
kind: ProjectSet
metadata: {name: all, labels: {tier: one}}
select: {group: acme, include: ["acme/api"]}
spec:
  trigger_tokens: {nightly: {}}
  milestones: {"{name} 1": {description: from the set, state: closed}}
"""

BY_ID = """\
apiVersion: reconciler/v1
kind: Project
metadata: {id: 100}
spec:
  trigger_tokens: {nightly: {}, "{path}": {}}
  milestones: {"api 1": {state: active}}
"""

HEADER = "apiVersion: reconciler/v1\nkind: {kind}\nmetadata: {{{ref}}}\nspec: {spec}\n"

SETTINGS = "{approval_settings: {require_reauthentication_to_approve: true}}"


def requests(cli_runner: CliRunner) -> list[str]:
    return sorted(
        f"{entry['method']} {entry['target'].removeprefix('/api/v4/').partition('?')[0]}"
        for entry in cli_runner.sandbox.log()
    )


def declare(
    cli_runner: CliRunner, *documents: tuple[str, str], kind: str = "Project", spec: str = "{trigger_tokens: {a: {}}}"
) -> None:
    """Write documents by the names of their files."""
    for name, ref in documents:
        cli_runner.write(f"manifests/{name}.yaml", HEADER.format(kind=kind, ref=ref, spec=spec))
    cli_runner.sandbox.clear_log()


@pytest.mark.untraced
def test_a_document_by_id_and_a_set_that_discovers_the_project_are_one_target(cli_runner: CliRunner) -> None:
    cli_runner.write("manifests/all.yaml", ALL)
    cli_runner.write("manifests/number.yaml", BY_ID)
    cli_runner.sandbox.clear_log()
    done = cli_runner("plan")
    assert (done.code, done.out, done.err) == (
        0,
        """\
Loosens protection:
project 100
  + trigger token "acme/api"                  loosens     manifests/number.yaml:5
  + trigger token "nightly"                   loosens     manifests/number.yaml:5
All else:
project 100
  + milestone "api 1"                         description: from the set, state: active     manifests/number.yaml:6
apply will refuse this plan: it creates 2 trigger tokens, whose value is shown only once; add --tokens-to FILE or --tokens-command CMD
Plan: 3 to create, 2 loosening. 3 writes to apply; 3 requests were made to plan.
""",
        "",
    )
    assert requests(cli_runner) == [
        "GET groups/acme/projects",
        "GET projects/100/milestones",
        "GET projects/100/triggers",
    ]
    for narrowed in ("--target 100", "--target acme/api", "--target ACME/*", "--selector tier=one"):
        assert cli_runner(f"plan {narrowed}").out == done.out
    assert cli_runner("plan --target 10").code == 1


def test_two_documents_of_one_project_are_a_problem_that_names_both_and_neither_is_planned(
    cli_runner: CliRunner,
) -> None:
    declare(cli_runner, ("number", "id: 100"), ("path", "path: Acme/API"), ("other", "path: acme/lib"))
    done = cli_runner("plan")
    assert (done.code, done.out, done.err) == (
        3,
        """\
Loosens protection:
project acme/lib
  + trigger token "a"                         loosens     manifests/other.yaml:4
All else:
project Acme/API
  ! project Acme/API: is the same project as project 100 (manifests/number.yaml:1), ID 100: keep one of these documents     manifests/path.yaml:1
project 100
  ! project 100: is the same project as project Acme/API (manifests/path.yaml:1), ID 100: keep one of these documents     manifests/number.yaml:1
apply will refuse this plan: it creates 1 trigger token, whose value is shown only once; add --tokens-to FILE or --tokens-command CMD
Plan: 1 to create, 1 loosening, 2 problems. 1 write to apply; 4 requests were made to plan.
""",
        "",
    )
    assert requests(cli_runner) == [
        "GET projects/100",
        "GET projects/100/triggers",
        "GET projects/Acme%2FAPI/triggers",
        "GET projects/acme%2Flib/triggers",
    ]
    assert "is the same project as project 100 (manifests/number.yaml:1)" in cli_runner("plan --target acme/api").out
    assert cli_runner("apply --yes --tokens-to tokens").code == 3
    assert [len(project["trigger_tokens"]) for project in cli_runner.sandbox.state()["projects"][:2]] == [0, 1]


def test_where_a_reading_tells_the_id_nothing_else_is_asked(cli_runner: CliRunner) -> None:
    cli_runner.service(milestones=[{"title": "there"}])
    declare(cli_runner, ("number", "id: 100"), ("path", "path: acme/api"), spec="{milestones: {a: {}}}")
    assert cli_runner("plan").out.count(": keep one of these documents     manifests/") == 2
    assert requests(cli_runner) == ["GET projects/100/milestones", "GET projects/acme%2Fapi/milestones"]


def test_where_fewer_targets_have_paths_their_ids_are_asked_for(cli_runner: CliRunner) -> None:
    declare(cli_runner, ("number", "id: 100"), ("another", "id: 101"), ("path", "path: acme/api"))
    done = cli_runner("plan")
    assert done.out.count(": keep one of these documents     manifests/") == 2
    assert (
        'project 101\n  + trigger token "a"                         loosens     manifests/another.yaml:4\n' in done.out
    )
    assert [each for each in requests(cli_runner) if not each.endswith("/triggers")] == ["GET projects/acme%2Fapi"]


@pytest.mark.parametrize("spec", ["{trigger_tokens: {a: null}}", "{milestones: {a: null}, trigger_tokens: {}}"])
def test_nothing_is_asked_where_nothing_would_be_changed(cli_runner: CliRunner, spec: str) -> None:
    declare(cli_runner, ("number", "id: 100"), ("path", "path: acme/api"), spec=spec)
    assert cli_runner("plan").code == 0
    assert "GET projects/100" not in requests(cli_runner)


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("spec", "told", "asked"),
    [
        ("{milestones: {b: {}}}", True, ["GET projects/100", "GET projects/100/milestones"]),
        ("{milestones: {}}", False, ["GET projects/100/milestones"]),
        (
            "{milestones: {}, trigger_tokens: {t: {}}}",
            False,
            ["GET projects/100/milestones", "GET projects/100/triggers"],
        ),
    ],
    ids=["changes what both declare", "changes nothing", "changes what the other does not declare"],
)
def test_since_a_revision_that_has_the_other_document_it_is_told_where_a_change_might_be_made_twice(
    cli_runner: CliRunner, git: Repository, spec: str, told: bool, asked: list[str]
) -> None:
    """The whole plan, which reads what the other one differs in, tells of both: the revision costs no request."""
    declare(cli_runner, ("path", "path: acme/api"), spec="{milestones: {a: {}}}")
    git.commit()
    declare(cli_runner, ("number", "id: 100"), spec=spec)
    twin = "! project 100: is the same project as project acme/api (manifests/path.yaml:1), ID 100: keep one"
    assert (twin in cli_runner("plan --since HEAD").out) == told
    assert requests(cli_runner) == asked
    assert twin in cli_runner("plan").out


def test_two_documents_of_one_group_are_a_problem_too(cli_runner: CliRunner) -> None:
    declare(cli_runner, ("number", "id: 10"), ("path", "path: acme"), ("other", "id: 999"), kind="Group", spec=SETTINGS)
    done = cli_runner("plan")
    twins = "  ! group {}: is the same group as group {}, ID 10: keep one of these documents     manifests/"
    assert "group acme\n" + twins.format("acme", "10 (manifests/number.yaml:1)") in done.out
    assert "group 10\n" + twins.format("10", "acme (manifests/path.yaml:1)") in done.out
    assert [each for each in requests(cli_runner) if "approval" not in each] == [
        "GET groups/acme",
        "GET projects/999",
        "GET user",
    ]
    (cli_runner.folder / "manifests/number.yaml").unlink()
    cli_runner.sandbox.clear_log()
    assert "group acme\n  ~ approval settings" in cli_runner("plan").out
    assert [each for each in requests(cli_runner) if "approval" not in each] == [
        "GET groups/999",
        "GET projects/999",
        "GET user",
    ]


@pytest.mark.untraced
@pytest.mark.parametrize("other", [("number", "id: 100"), ("present", "path: acme/api")])
def test_a_document_by_a_former_path_is_the_same_as_one_by_id_or_by_the_present_path(
    cli_runner: CliRunner, other: tuple[str, str]
) -> None:
    cli_runner.service(renamed_from=["acme/old"])
    declare(cli_runner, ("former", "path: acme/old"), other)
    done = cli_runner("plan --follow-moved")
    number = (
        "project acme/api\n  ! project acme/api: is the same project as project 100 (manifests/number.yaml:1), ID 100: keep "
        "one of these documents     manifests/former.yaml:1\n"
        "project 100\n  ! project 100: is the same project as project acme/api (manifests/former.yaml:1), ID 100: keep one "
        "of these documents     manifests/number.yaml:1\nPlan: 2 problems. 5 requests were made to plan.\n"
    )
    present = (
        "project acme/api\n  ! project acme/api: is declared by its former path acme/old too (manifests/former.yaml:1): "
        "correct that path first     manifests/present.yaml:1\n"
        "project acme/old\n  ! project acme/old: moved to acme/api (ID 100), which is declared too "
        "(manifests/present.yaml:1): correct this path first     manifests/former.yaml:1\n"
        "Plan: 2 problems. 4 requests were made to plan.\n"
    )
    assert (done.code, done.out) == (3, {"number": number, "present": present}[other[0]])
    assert [each for each in requests(cli_runner) if not each.endswith("/triggers")] == ["GET projects/100"]


@pytest.mark.parametrize("follow", ["", "--follow-moved"])
def test_two_former_paths_in_two_documents_are_each_to_be_corrected(cli_runner: CliRunner, follow: str) -> None:
    cli_runner.service(renamed_from=["acme/old", "acme/older"])
    declare(cli_runner, ("former", "path: acme/old"), ("earlier", "path: acme/older"))
    done = cli_runner(f"plan {follow}")
    assert done.code == 3
    assert done.out.startswith(
        "project acme/old\n  ! project acme/old: moved to acme/api (ID 100), which is declared too "
        "(manifests/earlier.yaml:1): correct this path first     manifests/former.yaml:1\n"
        "project acme/older\n  ! project acme/older: moved to acme/api (ID 100), which is declared too "
        "(manifests/former.yaml:1): correct this path first     manifests/earlier.yaml:1\nPlan: 2 problems. "
    )


@pytest.mark.untraced
def test_a_document_by_a_former_path_is_the_same_as_what_a_set_discovers(cli_runner: CliRunner) -> None:
    cli_runner.service(renamed_from=["acme/old"])
    cli_runner.write("manifests/all.yaml", ALL)
    declare(
        cli_runner,
        ("former", "path: acme/old"),
        spec="{approval_settings: {require_reauthentication_to_approve: true}}",
    )
    done = cli_runner("plan --follow-moved")
    assert (done.code, done.changes) == (
        0,
        'Loosens protection:\nproject acme/api\n  + trigger token "nightly"                   loosens\nAll else:\n'
        'project acme/api\n  + milestone "api 1"                         description: from the set, state: closed\n'
        "  ~ approval settings                         require_reauthentication_to_approve: false -> true, tightens\n"
        "apply will refuse this plan: it creates 1 trigger token, whose value is shown only once; add --tokens-to FILE or "
        "--tokens-command CMD\n"
        "Plan: 2 to create, 1 to update, 1 loosening, 1 tightening. 4 writes to apply; 7 requests were made to plan.\n",
    )
    done = cli_runner("plan")
    assert (done.code, done.out) == (
        3,
        "project acme/api\n  ! project acme/api: declared by its former path acme/old (manifests/former.yaml:3); write the "
        "new path there (`accept` does), or add --follow-moved     manifests/former.yaml:1\n"
        "Plan: 1 problem. 5 requests were made to plan.\n",
    )


@pytest.mark.untraced
def test_a_project_that_has_moved_has_not_changed_since_a_revision(cli_runner: CliRunner, git: Repository) -> None:
    cli_runner.service(renamed_from=["acme/old"])
    cli_runner.write("manifests/all.yaml", ALL)
    declare(cli_runner, ("former", "path: acme/old"))
    git.commit()
    assert cli_runner("plan --since HEAD").out.startswith("Nothing to do: no target was looked at. ")
    cli_runner.write("manifests/all.yaml", ALL.replace("from the set", "from all"))
    done = cli_runner("plan --since HEAD")
    assert (done.code, done.out.rpartition("Plan: ")[0]) == (
        3,
        "project acme/api\n  ! project acme/api: declared by its former path acme/old (manifests/former.yaml:3); write the "
        "new path there (`accept` does), or add --follow-moved     manifests/former.yaml:1\n",
    )


def test_what_is_held_back_is_not_planned_again_after_its_group_has_changed(cli_runner: CliRunner) -> None:
    declare(cli_runner, ("number", "id: 100"), ("path", "path: acme/api"), spec=SETTINGS)
    declare(
        cli_runner, ("group", "path: acme"), kind="Group", spec="{approval_settings: {allow_committer_approval: false}}"
    )
    done = cli_runner("apply --yes")
    assert done.out.count(": keep one of these documents     manifests/") == 2
    assert [each for each in requests(cli_runner) if "PUT" in each] == [
        "PUT groups/acme/merge_request_approval_setting"
    ]


def test_what_is_held_back_takes_no_care_from_the_others(cli_runner: CliRunner) -> None:
    declare(cli_runner, ("number", "id: 100"), ("path", "path: acme/api"), ("other", "path: acme/lib"), spec=SETTINGS)
    assert cli_runner("apply --yes --no-verify").code == 3
    url = "projects/acme%2Flib/merge_request_approval_setting"
    assert [each for each in requests(cli_runner) if each.endswith(url)] == [f"GET {url}", f"GET {url}", f"PUT {url}"]


def test_placeholders_of_a_project_given_by_id_are_filled_in_when_it_is_planned(cli_runner: CliRunner) -> None:
    declare(cli_runner, ("number", "id: 100"), spec='{trigger_tokens: {"of {name}": {}}}')
    assert cli_runner("validate").code == 0
    assert '    "of {name}": {}\n' in cli_runner("render").out
    done = cli_runner("plan")
    assert (done.code, done.err) == (0, "")
    assert (
        'project 100\n  + trigger token "of api"                    loosens     manifests/number.yaml:4\n' in done.out
    )
    assert requests(cli_runner) == ["GET projects/100", "GET projects/100/triggers"]


def test_a_path_that_the_service_does_not_tell_keeps_the_target_from_being_planned(cli_runner: CliRunner) -> None:
    declare(cli_runner, ("number", "id: 100"), spec='{trigger_tokens: {"of {name}": {}}}')
    cli_runner.sandbox.set_faults([{"kind": "status", "status": 403, "match": "/projects/100", "nth": 1, "times": 1}])
    done = cli_runner("plan")
    assert done.code == 3
    assert done.out.startswith(
        "project 100\n"
        "  ! project 100: the path of project 100 is not known (GET projects/100: 403 Forbidden), and its manifest uses "
        "`{path}`, `{name}` or `{namespace}`; give `path` instead of `id`     manifests/"
    )


def test_a_literal_placeholder_is_rendered_as_one(cli_runner: CliRunner) -> None:
    cli_runner.project("{milestones: {'{{path}} {x}': {description: '{name}'}}}")
    rendered = cli_runner("render").out
    assert "{{path}} {x}" in rendered
    assert "description: api" in rendered
    cli_runner.write("manifests/project.yaml", rendered)
    assert cli_runner("render").out == rendered
