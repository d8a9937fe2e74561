"""Export from the sandbox, and plan what was exported."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reconciler.edit.export import PLAIN, ExportResult, Layout, run_export
from reconciler.edit.targets import ExportRequest
from reconciler.engine.discovery import GroupListing, discover
from reconciler.engine.plan import draw_plan
from reconciler.manifests import Inputs, read_manifests
from reconciler.model.targets import Level
from reconciler.sandbox import Sandbox
from reconciler.service import Client
from tests.building import KINDS

EVERYTHING = ExportRequest(groups=("acme",), pathless=(Level.USER,))


def exported(client: Client, folder: Path, asked: ExportRequest = EVERYTHING, layout: Layout = PLAIN) -> ExportResult:
    """Export, and check that a second export changes nothing."""
    done = run_export(asked, client, KINDS, folder=folder, layout=layout)
    before = contents(folder)
    again = run_export(asked, client, KINDS, folder=folder, layout=layout)
    assert again.written == ()
    assert contents(folder) == before
    return done


def contents(folder: Path) -> Mapping[str, str]:
    """Return the text of every file of a folder, by its path below the folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_text() for path in files}


def planned(client: Client, folder: Path) -> tuple[list[Any], list[Any]]:
    """Return the changes and the problems of a plan with the manifests of a folder."""
    manifests = read_manifests(Inputs([folder], KINDS))
    listed = discover(dict.fromkeys(manifests.index.groups, GroupListing()), client)
    plan = draw_plan(manifests.with_discovered(listed.groups, listed.paths).desired, client, KINDS)
    return list(plan.changes), list(plan.problems)


def client_of(sandbox: Sandbox, state: Mapping[str, Any], token: str = "ada-token") -> Client:
    """Return a client of the sandbox, which gets this state."""
    sandbox.replace_state(state)
    return Client(sandbox.api_url, token)
