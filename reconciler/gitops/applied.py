"""The ref that remembers the commit that was applied last: `--since applied` compares with it, `apply` moves it.

Only a complete apply moves it: a deletion that failed, or whose apply never ran, is still between it and the next plan.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from reconciler import CONFIGURATION
from reconciler.errors import ConfigurationError
from reconciler.gitops.snapshot import APPLIED_REF, Snapshot, is_as_then, snapshot
from reconciler.manifests import Inputs, Manifests
from reconciler.system.processes import git, repository

NOT_KEPT: Mapping[str, str] = MappingProxyType({})


def committed(inputs: Inputs, now: Manifests, read: Mapping[str, str] = NOT_KEPT) -> tuple[str, str]:
    """Return the commit that holds the manifests just as they were read; or an empty text, and why there is none.

    Values that are no files, of `--set` and `--env`, are not compared.

    Args:
        inputs: what the manifests are read from.
        now: the manifests.
        read: by file, the ID of what was read as an object of the repository; the others are read again.
    """
    try:
        head = snapshot("HEAD", inputs.paths[0])
        different = next(_different(head, inputs, now, read), "")
    except ConfigurationError:
        return "", "its manifests are in no commit of a git checkout"
    return ("", f"{different} is not as committed") if different else (head.commit, "")


def is_marked(path: Path) -> bool:
    """Return whether the checkout around a path has the ref.

    Raises:
        ConfigurationError: the path is outside any checkout, or git is missing.
    """
    top = repository(path)
    if top is None:
        raise ConfigurationError(f"--mark-applied: {path} is not in a git checkout; run this in one, or omit it")
    try:
        return git(top, ["rev-parse", "--verify", "--quiet", APPLIED_REF]).returncode == 0
    except FileNotFoundError:
        raise ConfigurationError("--mark-applied needs git, which is not installed here") from None


def mark_applied(path: Path, commit: str) -> None:
    """Move the ref of the checkout around a path to a commit. No hook runs.

    Raises:
        ConfigurationError: git refuses that; with its message.
    """
    top = repository(path) or path
    done = git(top, ["update-ref", APPLIED_REF, f"{commit}^{{commit}}"])
    if done.returncode != 0:
        message = " ".join(done.stderr.decode(errors="replace").split()).removeprefix("fatal: ")
        raise ConfigurationError(f"commit {commit} was applied, and could not be marked as applied: {message}")


def _different(head: Snapshot, inputs: Inputs, now: Manifests, read: Mapping[str, str]) -> Iterator[str]:
    """Yield the manifests, settings and files of values that differ from those of a commit, or are in only one of both.

    So do archives that the commit has; those that git does not keep are not compared.
    """
    objects = head.manifests(inputs.paths)
    for name in now.files:
        then = objects.get(name, "")
        if not (read[name] == then if name in read else is_as_then(name, then)):
            yield name
    yield from objects.keys() - {*now.files}
    configuration = Path(CONFIGURATION)
    if head.file(configuration) != (configuration.read_bytes() if configuration.is_file() else None):
        yield CONFIGURATION
    yield from (name for name in inputs.values_files if head.file(Path(name)) != Path(name).read_bytes())
    creations = (each.creation for each in now.desired.targets if each.creation)
    archives = {each.archive.file: head.object(each.archive.file) for each in creations if each.archive}
    yield from (str(file) for file, then in archives.items() if then and not is_as_then(str(file), then))
