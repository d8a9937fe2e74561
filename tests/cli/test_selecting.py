"""Which targets a run is about: globs are the same everywhere, and what nobody matches is told."""

import json

import pytest

from tests.cli_runner import CliRunner

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
}


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
        tried = json.loads(cli_runner(f"apply --yes --format json --canary {glob}").out)["targets"]
        assert {
            target["ref"]
            for target in tried
            if "failed" in {outcome["status"] for section in target["sections"] for outcome in section["outcomes"]}
        } == matched
    (cli_runner.folder / "manifests").rename(cli_runner.folder / "documents")
    for field, expected in {"include": matched, "exclude": others}.items():
        cli_runner.write(
            "manifests/set.yaml",
            "apiVersion: reconciler/v1\nkind: ProjectSet\nmetadata: {name: some}\n"
            f"select: {{projects: [{', '.join(PROJECTS)}], {field}: ['{glob}']}}\n"
            "spec: {notification_settings: {level: watch}}\n",
        )
        assert planned("plan") == expected & PROJECTS
