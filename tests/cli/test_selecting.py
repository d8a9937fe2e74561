"""Which targets a run is about: globs are the same everywhere, and what nobody matches is told."""

import json

import pytest

from tests.cli_runner import CliRunner
from tests.items import by_target, changes_of

GROUPS = ("acme", "acme/tools", "acme/tools/deep", "acmex")

PATHS = ("acme", "acme/api", "acme/tools", "acme/tools/cli", "acme/tools/deep/lib", "acmex/web")

PROJECTS = {*PATHS} - {*GROUPS}


@pytest.fixture(autouse=True)
def _fleet(cli_runner: CliRunner) -> None:
    """Groups and projects at three depths; each wants its notification settings changed."""
    cli_runner.sandbox.replace_state(
        {
            "users": [{"id": 2, "username": "ada", "admin": True, "tokens": ["ada-token"]}],
            "groups": [{"id": 10 + number, "path": path} for number, path in enumerate(GROUPS)],
            "projects": [{"id": 100 + number, "path": path} for number, path in enumerate(PATHS) if path not in GROUPS],
        }
    )
    cli_runner.sandbox.clear_log()
    for path in PATHS:
        kind = "Group" if path in GROUPS else "Project"
        team = "tools" if "tools" in path else "core"
        cli_runner.write(
            f"manifests/{path.replace('/', '-')}.yaml",
            f"apiVersion: reconciler/v1\nkind: {kind}\nmetadata: {{path: {path}, labels: {{team: {team}}}}}\n"
            "spec: {notification_settings: {level: watch}}\n",
        )


GLOBS = {
    "acme/*": ("acme/api", "acme/tools"),
    "acme/**": ("acme", "acme/api", "acme/tools", "acme/tools/cli", "acme/tools/deep/lib"),
    "ACME/Tools/**": ("acme/tools", "acme/tools/cli", "acme/tools/deep/lib"),
    "acme*": ("acme",),
    "acme?/**": ("acmex/web",),
    "**/[cl]?[bi]": ("acme/tools/cli", "acme/tools/deep/lib"),
    "acme/?pi": ("acme/api",),
    "acme/**/lib": ("acme/tools/deep/lib",),
    "acme/[ax]?": (),
    "acme*/**": PATHS,
}


@pytest.mark.untraced
@pytest.mark.parametrize("glob", GLOBS)
def test_a_glob_matches_the_same_targets_in_every_option_and_in_sets(cli_runner: CliRunner, glob: str) -> None:
    matched, others = {*GLOBS[glob]}, {*PATHS} - {*GLOBS[glob]}

    def planned(line: str) -> set[str]:
        return {target["ref"] for target in json.loads(cli_runner(f"{line} --format json").out)["targets"]}

    assert planned(f"plan --exclude {glob}") == others
    if matched:
        assert planned(f"plan --target {glob}") == matched
        # every write is refused, so that nothing but the canary is tried
        cli_runner.sandbox.set_faults(["status=403,method=PUT"])
        tried = json.loads(cli_runner(f"apply --yes --format json --canary {glob}").out)
        failed = [change for change in changes_of(tried) if change["outcome"]["status"] == "failed"]
        assert {ref for ref, own in by_target(tried, failed).items() if own} == matched
    (cli_runner.folder / "manifests").rename(cli_runner.folder / "documents")
    for field, expected in {"include": matched, "exclude": others}.items():
        cli_runner.write(
            "manifests/set.yaml",
            "apiVersion: reconciler/v1\nkind: ProjectSet\nmetadata: {name: some}\n"
            f"select: {{projects: [{', '.join(PROJECTS)}], {field}: ['{glob}']}}\n"
            "spec: {notification_settings: {level: watch}}\n",
        )
        assert planned("plan") == expected & PROJECTS


COMMANDS = ("plan", "drift", "apply --yes", "accept --diff", "doctor", "render")

NOBODY = {
    "--target acme/apo": "--target acme/apo matches nobody: the most similar path is acme/api",
    "--target nobody": "--target nobody matches nobody; there are acme, acme/api, acme/tools, ...",
    "--target acme/api --target acmex/*/*": "--target acmex/*/* matches nobody: the most similar path is acmex/web",
    "--target acme/api --selector team=tool": "--selector team=tool matches nobody: the labels there are: "
    "team=core, team=tools",
    "--target acme/api --selector team=tools": "no target matches all of --target acme/api and --selector team=tools",
    "--selector tier=1 --target x/y --exclude **": "--target x/y matches nobody; there are acme, acme/api, acme/tools, "
    "...; --selector tier=1 matches nobody: the labels there are: team=core, team=tools",
}


@pytest.mark.parametrize("line", NOBODY)
def test_a_target_or_a_label_that_nobody_has_is_an_error_before_any_is_read(cli_runner: CliRunner, line: str) -> None:
    for command in COMMANDS:
        done = cli_runner(f"{command} {line}")
        assert (done.code, done.out, done.err) == (1, "", f"reconciler: no target is selected: {NOBODY[line]}\n")
    assert not any(path in entry["target"] for entry in cli_runner.sandbox.log() for path in ("groups", "projects"))


@pytest.mark.untraced
@pytest.mark.parametrize("line", ["--exclude **", "--target acme/api --exclude acme/* --exclude none"])
def test_an_exclusion_that_leaves_nobody_is_in_order(cli_runner: CliRunner, line: str) -> None:
    told = ("--exclude none matches no target\n" if "none" in line else "") + (
        "nothing is selected: --exclude leaves out every target\n"
    )
    for command in COMMANDS:
        done = cli_runner(f"{command} {line}")
        assert (done.code, done.err) == (0, told), command
    (cli_runner.folder / "manifests").rename(cli_runner.folder / "documents")
    (cli_runner.folder / "manifests").mkdir()
    cli_runner.write(
        "manifests/set.yaml",
        "apiVersion: reconciler/v1\nkind: ProjectSet\nmetadata: {name: some}\nselect: {group: acmex}\n"
        "spec: {notification_settings: {level: watch}}\n",
    )
    emptied = cli_runner("drift --exclude acmex/**")
    assert (emptied.code, emptied.err) == (0, "nothing is selected: --exclude leaves out every target\n")
    assert cli_runner("drift --target acmex/**").code == 2
    service = cli_runner.sandbox.state()
    cli_runner.sandbox.replace_state({**service, "projects": []})
    without = cli_runner("drift --exclude acmex/**")
    assert (without.code, without.err) == (
        0,
        "manifests/set.yaml:4:1: warning: set some matches no project: correct `select`, or remove the set\n    select: {group: acmex}\n    ^\n"
        "--exclude acmex/** matches no target\n",
    )
    assert cli_runner("drift --target acmex/**").err.startswith(
        "reconciler: no target is selected: --target acmex/**: there are no targets\n"
    )
    cli_runner.sandbox.replace_state({**service, "groups": [], "projects": []})
    assert cli_runner("drift --exclude acmex/**").err == ""
