"""The inventory of a run: opened once, by the options and `reconciler.yaml`."""

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING

from reconciler.cli.options import DEFAULT_PATHS, ConnectionOptions, PlanningOptions, SourceOptions
from reconciler.cli.settings import configured, may_be_plain, on_command_line, trusted
from reconciler.errors import ConfigurationError, ServiceError
from reconciler.system.processes import repository

if TYPE_CHECKING:
    from reconciler.memory.apply_log import Apply
    from reconciler.memory.remotes import Person, Remote
    from reconciler.memory.store import OpenInventory
    from reconciler.service import Client

LOG = logging.getLogger("reconciler")

API = "/api/v4"


NO_REMOTE = (
    "There is no inventory yet, since this repository has no remote: `git remote add {} URL` before the first apply."
)


@contextmanager
def opened_inventory(
    client: "Client",
    sources: SourceOptions,
    planning: PlanningOptions,
    connection: ConnectionOptions,
    *,
    applies: int = 0,
    stores: bool = False,
) -> "Iterator[OpenInventory]":
    """Open the inventory for a run, and read the list.

    Args:
        client: the service.
        sources: of the manifests; with other sources than those of `reconciler.yaml`, the list deletes nothing.
        planning: whether there is an inventory.
        connection: how the remote may be reached.
        applies: how many of the last applies are read too; they come with the list.
        stores: whether the run stores the list. A run that only reads goes on without a remote, as right after `init`.

    Raises:
        ConfigurationError: `inventory` of `reconciler.yaml` names a remote that does not exist or cannot be used.
    """
    from reconciler.kinds import all_kinds
    from reconciler.memory.ancestry import ancestry
    from reconciler.memory.remotes import in_job
    from reconciler.memory.store import (
        DEFAULT_COMMITTER,
        INVENTORY_BRANCH,
        NO_INVENTORY,
        Distant,
        OpenInventory,
        Store,
        checked_branch,
        open_inventory,
        open_place,
        own_identity,
    )

    settings = _settings()
    top = repository(Path())
    if planning.no_inventory or isinstance(settings, bool):
        yield NO_INVENTORY
        return
    if top is None:
        LOG.debug("outside of a git repository there is no inventory")
        yield NO_INVENTORY
        return
    if which("git") is None:
        yield OpenInventory(lines=("git is not installed here: there is no inventory.",))
        return
    branch = checked_branch(settings.get("branch", INVENTORY_BRANCH))
    if not stores and _is_unconnected(top, settings):
        yield OpenInventory(lines=(NO_REMOTE.format(settings["remote"]),))
        return
    try:
        owner = cache(partial(_owner, client))
        remote = _remote(connection, top, settings, api_url=client.api_url, token=client.token, user=owner)
    except ConfigurationError as error:
        raise ConfigurationError(f"{error}; or go on without an inventory: --no-inventory") from None
    identity = DEFAULT_COMMITTER if in_job(os.environ) else own_identity(top)
    with open_place(top, branch, remote, identity, max(applies, 1)) as place:
        store = Store(place, client.api_url.removesuffix(API), [*all_kinds()])
        history = ancestry(top)
        if history is not None and isinstance(place, Distant):
            history = replace(history, remote=settings["remote"], fetched=cache(place.history))
        yield open_inventory(store, history, _obstacle(sources, top), applies)


def last_applies(connection: ConnectionOptions, most: int) -> "tuple[Apply, ...]":
    """Return the last applies to any service, the latest first; None without an inventory.

    Raises:
        ConfigurationError: see `opened_inventory`.
        InventoryUnreadable: the inventory cannot be fetched.
    """
    from reconciler.memory import store

    settings = _settings()
    top = repository(Path())
    if isinstance(settings, bool) or top is None or which("git") is None or _is_unconnected(top, settings):
        return ()
    token = os.environ.get("RECONCILER_TOKEN", "").strip()
    remote = _remote(connection, top, settings, api_url=connection.api_url or "", token=token)
    branch = store.checked_branch(settings.get("branch", store.INVENTORY_BRANCH))
    with store.open_place(top, branch, remote, depth=most) as place:
        return store.last_applies(place, most)


def branch_on(service: str) -> tuple[str, str] | None:
    """Return the project and the branch that has the list; None if the list is not in a project of a service.

    Args:
        service: the URL of the service, without `/api/v4`.
    """
    from reconciler.memory.remotes import project_on, remote_url
    from reconciler.memory.store import INVENTORY_BRANCH

    settings = _settings()
    top = repository(Path())
    if isinstance(settings, bool) or top is None or "remote" not in settings or which("git") is None:
        return None
    project = project_on(service, remote_url(os.environ, top, settings["remote"]))
    return (project, settings.get("branch", INVENTORY_BRANCH)) if project else None


def _is_unconnected(top: Path, settings: Mapping[str, str]) -> bool:
    """Return whether the list shall live on a remote, and the checkout has no remote at all yet."""
    from reconciler.memory.remotes import has_any_remote, in_job

    return "remote" in settings and not in_job(os.environ) and not has_any_remote(top)


def _settings() -> Mapping[str, str] | bool:
    """Return `inventory` of `reconciler.yaml`."""
    settings: Mapping[str, str] | bool = configured().get("inventory", {})
    return settings


def _remote(
    connection: ConnectionOptions,
    top: Path,
    settings: Mapping[str, str],
    *,
    api_url: str,
    token: str,
    user: "Callable[[], Person | None] | None" = None,
) -> "Remote | None":
    """Return the remote that has the list; None for the local repository.

    Args:
        connection: the options.
        top: the top folder of the checkout.
        settings: `inventory` of `reconciler.yaml`.
        api_url: of the service that is managed.
        token: for that service.
        user: returns the token's owner; None if nothing is pushed.
    """
    from reconciler.memory.remotes import checkout_remote, in_job, job_remote, nobody

    name, ca_file = settings.get("remote"), trusted(connection)[0] or ""
    if name is None:
        return None
    if in_job(os.environ):
        return job_remote(
            os.environ,
            api_url=api_url,
            api_token=token,
            user=user or nobody,
            ca_file=ca_file,
            may_be_plain=may_be_plain(connection),
        )
    return checkout_remote(top, name, ca_file, may_be_plain(connection))


def _owner(client: "Client") -> "Person | None":
    """Return the name and the address of the token's owner for commits; None if the service does not show the owner.

    A project may take only commits of the user who pushes them.
    """
    from reconciler.memory.remotes import Person

    with suppress(ServiceError):
        match client.get("user"):
            case {"name": str(name), "commit_email": str(email)}:
                return Person(name, email)
    return None


def _obstacle(sources: SourceOptions, top: Path) -> str:
    """Return the reason for which this run deletes nothing by the list; empty if there is none."""
    from reconciler.memory.ancestry import incomplete

    defaults = configured()
    paths = defaults.get("paths") or DEFAULT_PATHS
    other_inputs = {
        "PATHS": sources.paths and _real(sources.paths) != _real(paths),
        "--values": [*sources.values] != [*(defaults.get("values") or ())],
        "--set": {f"{key}={value}" for key, value in sources.set} != {*(defaults.get("set") or ())},
        "--env": bool(on_command_line("env")) and {*sources.env} != {*(defaults.get("env") or ())},
    }
    named = [name for name, differs in other_inputs.items() if differs]
    if named:
        return f"this run has other inputs than reconciler.yaml: {', '.join(named)}"
    return incomplete(top, [Path(path) for path in paths])


def _real(file_paths: Sequence[str]) -> set[str]:
    return {os.path.realpath(path) for path in file_paths}
