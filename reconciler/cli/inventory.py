"""The inventory of a run: opened once, by the options and `reconciler.yaml`."""

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Any

import click

from reconciler.cli.options import DEFAULT_PATHS, Given
from reconciler.errors import ConfigurationError, InventoryUnreadable
from reconciler.system.processes import repository

if TYPE_CHECKING:
    from reconciler.cli.session import Session
    from reconciler.gitops.inventory import LoggedPlace, OpenInventory, Place
    from reconciler.gitops.remotes import Remote
    from reconciler.service import Client

LOG = logging.getLogger("reconciler")

API = "/api/v4"

NO_LIST = (
    "There is no inventory yet: nothing is deleted because it is no longer declared. The next apply writes down what "
    "is declared and live."
)


@contextmanager
def opened_inventory(session: "Session", client: "Client") -> "Iterator[OpenInventory]":
    """Open the inventory for a run, and read it.

    Raises:
        ConfigurationError: `inventory` of `reconciler.yaml` names a remote that does not exist or cannot be used.
    """
    from reconciler.gitops.inventory import NO_INVENTORY, OpenInventory, checked_branch, open_place, own_identity

    defaults = getattr(click.get_current_context(silent=True), "default_map", None) or {}
    settings: Mapping[str, str] | bool = defaults.get("inventory", {})
    top = repository(Path())
    if session.given.no_inventory or isinstance(settings, bool):
        yield NO_INVENTORY
        return
    if top is None:
        LOG.debug("outside of a git repository there is no inventory")
        yield NO_INVENTORY
        return
    try:
        committer = own_identity(top)
    except FileNotFoundError:
        yield OpenInventory(lines=("git is not installed here: there is no inventory.",))
        return
    branch = checked_branch(settings.get("branch", "reconciler/applied"))
    try:
        remote = _remote(session.given, client.api_url, client.token, top, settings)
    except ConfigurationError as error:
        raise ConfigurationError(f"{error}; or go on without an inventory: --no-inventory") from None
    with open_place(top, branch, remote, committer) as place:
        yield _read(session, client.api_url.removesuffix(API), place, top, defaults)


@contextmanager
def opened_place(given: Given) -> "Iterator[LoggedPlace | None]":
    """Open the place of the inventory, whatever service it is about; None where there is no inventory.

    Raises:
        ConfigurationError: see `opened_inventory`.
    """
    from reconciler.gitops.inventory import checked_branch, open_place

    defaults = getattr(click.get_current_context(silent=True), "default_map", None) or {}
    settings: Mapping[str, str] | bool = defaults.get("inventory", {})
    top = repository(Path())
    if isinstance(settings, bool) or top is None or which("git") is None:
        yield None
        return
    remote = _remote(given, given.api_url or "", os.environ.get("RECONCILER_TOKEN", "").strip(), top, settings)
    with open_place(top, checked_branch(settings.get("branch", "reconciler/applied")), remote) as place:
        yield place


def _remote(given: Given, api_url: str, token: str, top: Path, settings: Mapping[str, str]) -> "Remote | None":
    """Return where the list lives; None for the local repository."""
    from reconciler.gitops.remotes import checkout_remote, in_job, job_remote

    name, ca_file = settings.get("remote"), given.ca_file or ""
    if name is None:
        return None
    if in_job(os.environ):
        return job_remote(os.environ, api_url=api_url, api_token=token, ca_file=ca_file)
    return checkout_remote(top, name, ca_file)


def _read(session: "Session", service: str, place: "Place", top: Path, defaults: Mapping[str, Any]) -> "OpenInventory":
    """Return the list, as it is now."""
    from reconciler.gitops.ancestry import ancestry
    from reconciler.gitops.inventory import OpenInventory, Store

    store, history = Store(place, service, [*session.kinds]), ancestry(top)
    obstacle = _obstacle(session, top, defaults)
    try:
        stored = store.read()
    except InventoryUnreadable as error:
        return OpenInventory(ancestry=history, obstacle=obstacle, error=error)
    for warning in stored.warnings:
        LOG.warning("%s", warning)
    if stored.other_service:
        line = (
            f"The inventory is of {stored.other_service}, and is neither used nor written for {service}: name another "
        )
        return OpenInventory(ancestry=history, lines=(f"{line}`branch` under `inventory` in reconciler.yaml.",))
    return OpenInventory(stored, store, history, obstacle, () if stored.commit else (NO_LIST,))


def _obstacle(session: "Session", top: Path, defaults: Mapping[str, Any]) -> str:
    """Return why this run deletes nothing by the list; empty if it may."""
    from reconciler.gitops.ancestry import incomplete

    given = session.given
    paths = defaults.get("paths") or DEFAULT_PATHS
    others = {
        "PATHS": given.paths and _real(given.paths) != _real(paths),
        "--values": [*given.values] != [*(defaults.get("values") or ())],
        "--set": bool(given.settings),
        "--env": {*given.env} != {*(defaults.get("env") or ())},
    }
    named = [name for name, differs in others.items() if differs]
    if named:
        return f"this run has other inputs than reconciler.yaml: {', '.join(named)}"
    return incomplete(top, [Path(path) for path in paths])


def _real(paths: Sequence[str]) -> set[str]:
    return {os.path.realpath(path) for path in paths}
