"""The values to which a shell may complete an option: fast, and empty if nothing is known.

Each function is the `shell_complete` of an option.
"""

import re
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules

import click

from reconciler import CONFIGURATION
from reconciler.errors import ManifestErrors
from reconciler.model.targets import PATHLESS as PATHLESS_LEVELS
from reconciler.reports import FORMATS

REPORTS = {
    "audit": "audit",
    "fleet": "public/index.html",
    "html": "report.html",
    "json": "report.json",
    "junit": "junit.xml",
    "markdown": "report.md",
    "prometheus": "reconciler.prom",
    "text": "report.txt",
}
"""A file for each format; of another, `FORMAT.json`."""

TARGET_LINE = re.compile(
    r"^metadata:(?:[ \t]*\{[^}]*?\b|[^\n]*\n(?:[ \t][^\n]*\n|\n)*?[ \t]+)path:[ \t]*[\"']?([^\s\"',}#]+)", re.MULTILINE
)
"""A target's path, as most manifests have it, even if the rest is not valid YAML."""

PATHLESS_LINE = re.compile(
    rf"^kind:[ \t]*[\"']?({'|'.join(level.document_kind for level in PATHLESS_LEVELS)})\b", re.MULTILINE
)
"""The kind of a document about a target that has no path."""

SHELL_SAFE = re.compile(r"[\w./@+-]+")
"""Names that mean nothing to a shell: bash inserts what it is offered as it is, and anybody can push a branch."""

REFERENCES = ("for-each-ref", "--format=%(refname:short)", "refs/heads", "refs/remotes", "refs/tags")
"""The git command that lists branches and tags."""


def sections(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the names of sections, which are names of modules or entry points, so that no module need be imported."""
    from importlib.metadata import entry_points

    kinds = find_spec("reconciler.kinds")
    ours = {module.name for module in iter_modules(kinds.submodule_search_locations if kinds else ())}
    names = sorted(ours | entry_points(group="reconciler.kinds").names)
    return [name for name in names if name.startswith(incomplete)]


def reports(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return `FORMAT=FILE`, with a usual name for the file."""
    names = [f"{name}={REPORTS.get(name, f'{name}.json')}" for name in ("audit", *FORMATS)]
    return [each for each in names if each.startswith(incomplete)]


def targets(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the targets that the manifests name: the paths of groups and projects, `instance`, `user`."""
    return _offered(sorted(set(_targets(context))), incomplete)


def revisions(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the branches and tags of the git repository around the working directory, and the word `applied`."""
    from reconciler.system.processes import git, repository

    top = repository(Path())
    try:
        names = [*git(top, REFERENCES).stdout.decode(errors="replace").split(), "applied"] if top else []
    except OSError:
        return []
    return _offered(names, incomplete)


def schemas(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the names of the schemas."""
    from reconciler.schema import NAMES

    return [name for name in NAMES if name.startswith(incomplete)]


def _offered(names: Iterable[str], incomplete: str) -> list[str]:
    """Return the names that begin like a word and can be inserted into a command line as they are."""
    return [name for name in names if name.startswith(incomplete) and SHELL_SAFE.fullmatch(name)]


def _targets(context: click.Context) -> Iterator[str]:
    """Yield the targets in the manifests; click leaves PATHS in `context.args` where the line ends with an option."""
    from reconciler.manifests.sources import open_source, search

    given = context.params.get("paths") or context.args or _configured_paths()
    for file in search([Path(each) for each in given]).files:
        try:
            text = open_source(file).text
        except ManifestErrors:
            continue
        yield from TARGET_LINE.findall(text)
        yield from map(str.lower, PATHLESS_LINE.findall(text))


def _configured_paths() -> list[str]:
    from reconciler.manifests.sources import open_source, read_mapping

    try:
        paths = read_mapping(open_source(CONFIGURATION)).get("paths", [])
    except ManifestErrors:
        paths = []
    listed = [paths] if isinstance(paths, str) else paths
    return [str(each) for each in listed] if isinstance(listed, list) and listed else ["manifests"]
