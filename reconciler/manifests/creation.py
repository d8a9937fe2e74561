"""Check `create` in documents, fill in its placeholders, and return it as a `Creation`.

`declared` calls `read_creation` for each document; `consistency` compares the creations of all documents. A target that
exists already is never changed by its creation.
"""

import hashlib
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Any

from reconciler.manifests.diagnostics import Diagnostic
from reconciler.manifests.documents import LONGEST_NAME, GroupCreation, ImportSource, ProjectCreation
from reconciler.manifests.layers import Placeholders, fill, fill_all, literal, placeholder_values, unbranched
from reconciler.manifests.sources import TOKEN_IN_LINE as SECRET
from reconciler.manifests.sources import Document, Secrets, Steps, no_secrets
from reconciler.model.creation import VISIBILITIES, Archive, Creation, Import, Visibility
from reconciler.model.targets import Identity, Level, Target
from reconciler.system.checkout import lies_outside
from reconciler.system.processes import reveals_token

CREATE_KEY = "create"
TOKEN_ENV_KEY = "token_env"  # noqa: S105 - the key of a variable's name
IMPORT = "import"
FROM_ARCHIVE = "from_archive"
ARCHIVE_SUFFIX = ".gz"
# GitLab 18.9 refuses a group whose path has one character.
SHORTEST_GROUP = 2

SLUG = re.compile(r"(?![-_.])[\w.-]+(?<![-_.])(?<!\.git)(?<!\.atom)", re.ASCII)
"""The last part of the path of a group or project."""
DOUBLED = re.compile(r"[-_.]{2}")
HTTP_URL = re.compile(r"https?://[^/\s]")
VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

TOP_LEVEL_WORDS = re.compile(
    "admin|api|assets|dashboard|explore|groups|health_check|help|import|jwt|oauth|profile|projects|public|search|snippets"
    "|unsubscribes|uploads|users"
)
INNER_WORDS = re.compile(
    "badges|blame|blob|builds|commits|create|create_dir|edit|files|find_file|new|preview|raw|refs|tree|update|wikis"
)
"""Words that begin addresses of the service's own: at the top level, and below groups."""


def _digest(file: Path) -> str:
    """Return the SHA-256 (hex) of an archive, read in pieces.

    Raises:
        OSError: the archive cannot be read.
        ValueError: the path is not that of a file.
    """
    status = file.stat()
    if not S_ISREG(status.st_mode):
        raise ValueError("is a folder, not an archive" if S_ISDIR(status.st_mode) else "is not a file")
    return _digest_of(file, status.st_mtime_ns, status.st_size, status.st_ino)


# The time of the last change, the size and the inode are in the key of the cache: an archive that changes during a run
# gets a new digest.
@lru_cache(maxsize=256)
def _digest_of(file: Path, *_version: int) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The files and secrets beside the manifests, against which `create` is checked.

    Attributes:
        prefix: the beginning of the manifests' paths that is no folder, such as the name of a revision.
        digest: returns the SHA-256 (hex) of an archive, given its path from the working directory; see `_digest`.
        secrets: returns the secrets of reconciler, which must not be sent to another service.
    """

    prefix: str = ""
    digest: Callable[[Path], str] = _digest
    secrets: Secrets = no_secrets


OWN_SURROUNDINGS = Surroundings()


def read_creation(
    document: Document,
    level: Level,
    create: GroupCreation | ProjectCreation | None,
    problems: Collection[Diagnostic],
    surroundings: Surroundings,
) -> tuple[Creation | None, list[Diagnostic]]:
    """Return the creation of a document, None if `create` has errors; and the errors of values of the right form.

    Args:
        document: the document.
        level: the level of its target.
        create: the validated `create`; None if its form is wrong.
        problems: the errors of form in the document.
        surroundings: the files and secrets that `create` refers to.
    """
    path = _mapping(document.value.get("metadata")).get("path")
    places = {(each.steps, each.at_key) for each in problems}
    if not isinstance(path, str) or (("metadata", "path"), False) in places:
        message = "`create` needs `path` instead of `id`: the service gives the ID when it creates the target"
        return None, [] if create is None else [Diagnostic((CREATE_KEY,), message, at_key=True)]
    archive, diagnostics = _checked(document, Target(level, path), surroundings)
    if diagnostics or create is None:
        return None, [each for each in diagnostics if (each.steps, each.at_key) not in places]
    values, written = unbranched(placeholder_values(path)), create.model_fields_set
    name = fill(create.name, values) if "name" in written else path.rpartition("/")[2]
    visibility = create.visibility if "visibility" in written else None
    source = None
    if isinstance(create, ProjectCreation) and "import_" in written:
        source = _read_source(create.import_, values)
    return Creation(name, visibility, archive, source, document.origin), []


def _checked(document: Document, target: Target, surroundings: Surroundings) -> tuple[Archive | None, list[Diagnostic]]:
    """Return the archive that a document names, if it is usable, and the errors of `create`, whatever its form."""
    create, path = _mapping(document.value[CREATE_KEY]), str(target.ref)
    slug, values = path.rpartition("/")[2], unbranched(placeholder_values(path))
    name, written = (
        fill_all(create.get(key, default), values) for key, default in (("name", slug), (FROM_ARCHIVE, None))
    )
    diagnostics = [Diagnostic(("metadata", "path"), message) for message in _path_errors(target, slug)]
    if isinstance(name, str) and (error := _name_error(name)):
        diagnostics.append(Diagnostic((CREATE_KEY, "name"), error))
    archive = None
    if target.level is Level.GROUP and isinstance(written, str):
        archive, error = _read_archive(document, written, surroundings)
        diagnostics += [Diagnostic((CREATE_KEY, FROM_ARCHIVE), error)] if error else []
    if target.level is Level.PROJECT and IMPORT in create:
        diagnostics += (each.below(CREATE_KEY) for each in _import_errors(create, name, slug))
        for source, fields in _mapping(fill_all(create[IMPORT], values)).items():
            errors = _source_errors(source, _mapping(fields), surroundings)
            diagnostics += (each.below(CREATE_KEY, IMPORT, source) for each in errors)
    return archive, diagnostics


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


Creations = Mapping[Identity, Creation]
"""By target, what documents create."""


def too_visible(creating: Sequence[tuple[Target, Creation, Document]]) -> Iterator[tuple[Document, Diagnostic]]:
    """Yield advice for the documents of targets that are created with a higher visibility than their group."""
    creations = {target.identity: creation for target, creation, _ in creating}
    for target, creation, document in creating:
        group = Target(Level.GROUP, target.parent)
        wanted, group_visibility = creation.visibility, _visibility(group, creations)
        if wanted and group_visibility and VISIBILITIES.index(wanted) > VISIBILITIES.index(group_visibility):
            # GitLab 18.9 answers 400 for the group; it creates the project, silently with a lower visibility.
            outcome = "refuses" if target.level is Level.GROUP else "lowers"
            where = f"which is created {group_visibility} ({creations[group.identity].origin})"
            message = f"the service {outcome} `{wanted}` in {group}, {where}"
            yield document, Diagnostic((CREATE_KEY, "visibility"), message, "advice")


def namesakes(creating: Sequence[tuple[Target, Creation, Document]]) -> Iterator[tuple[Document, Diagnostic]]:
    """Yield the documents that would create a second group or project of one name in one namespace, each with an error.

    The service refuses the second one, in whatever case the path of the namespace is written. Names that differ in case
    count as different. Names may be equal at the top level, and between a group and a project.
    """
    first: dict[tuple[Level, str, str], tuple[Target, Document]] = {}
    for target, creation, document in creating:
        namespace = target.parent
        other, place = first.setdefault((target.level, namespace.casefold(), creation.name), (target, document))
        if namespace and other is not target:
            where = place.find(_steps_to_name(place))
            message = f"{other} is created with the name `{creation.name}` too ({where})"
            refused = f"the service refuses two {target.level}s of one name in {namespace}"
            yield document, Diagnostic(_steps_to_name(document), f"{message}, and {refused}: choose another `name`")


def _steps_to_name(document: Document) -> Steps:
    """Return the steps to the value that names a creation: `create.name`, or else the path, which ends in the name."""
    return (CREATE_KEY, "name") if "name" in document.value[CREATE_KEY] else ("metadata", "path")


def _visibility(group: Target, creations_by_target: Creations) -> Visibility | None:
    """Return the visibility that a group is created with; None if no document creates it, or an archive decides."""
    creation = creations_by_target.get(group.identity)
    if creation is None or creation.visibility or creation.archive:
        return creation.visibility if creation else None
    return _visibility(Target(Level.GROUP, group.parent), creations_by_target) if group.parent else "private"


def as_written(creation: Creation, slug: str) -> dict[str, Any]:
    """Return a creation as a manifest writes it, with literal braces doubled; `slug` is the last part of the path."""
    create: dict[str, Any] = {} if creation.name == slug else {"name": creation.name}
    if creation.visibility is not None:
        create["visibility"] = creation.visibility
    if creation.archive is not None:
        create[FROM_ARCHIVE] = str(creation.archive.file)
    if creation.source is not None:
        source = creation.source
        create[IMPORT] = {source.source: {**source.fields, TOKEN_ENV_KEY: source.token_env}}
    written: dict[str, Any] = literal(create)
    return written


def unordered(creation: Creation) -> dict[str, Any]:
    """Return the values that distinguish creations, for `DesiredState.digest`.

    Of an archive, that is the content and not the path.
    """
    source = creation.source
    return {
        "name": creation.name,
        "visibility": creation.visibility,
        FROM_ARCHIVE: creation.archive and creation.archive.digest,
        IMPORT: source and [source.source, source.token_env, dict(source.fields)],
    }


def _name_error(name: str) -> str:
    if not name.strip():
        return "a name must not be blank"
    return f"a name has at most {LONGEST_NAME} characters, not {len(name)}" if len(name) > LONGEST_NAME else ""


def _path_errors(target: Target, slug: str) -> Iterator[str]:
    """Yield the reasons for which the service refuses a path."""
    if target.level is Level.GROUP and len(slug) < SHORTEST_GROUP:
        yield f"the path of a group needs at least {SHORTEST_GROUP} characters: `{slug}`"
    elif (INNER_WORDS if "/" in str(target.ref) else TOP_LEVEL_WORDS).fullmatch(slug.casefold()):
        yield f"the service reserves `{slug}`, which cannot be the path of a {target.level}"
    elif not SLUG.fullmatch(slug):
        yield (
            f"the path of a {target.level} cannot be `{slug}`: it must consist of letters a to z, digits, "
            "`_`, `-` and `.`, begin and end with a letter or a digit, and not end in `.git` or `.atom`"
        )


def _read_archive(document: Document, written: str, surroundings: Surroundings) -> tuple[Archive | None, str]:
    """Return the archive and an empty text, or None and the reason for which the archive cannot be used."""
    if Path(written).is_absolute():
        return None, "must be a path from the folder of this file, not an absolute one"
    if not written.endswith(ARCHIVE_SUFFIX):
        return None, f"must be an archive of a group, whose name ends in `{ARCHIVE_SUFFIX}`"
    folder = os.path.dirname(document.source.path.removeprefix(surroundings.prefix))  # noqa: PTH120 - keeps `..`
    file = Path(os.path.normpath(f"{folder}/{written}" if folder else written))
    if lies_outside(file) and not lies_outside(folder):
        return None, f"{file} lies outside of the checkout: a CI job reads nothing there; commit the archive itself"
    try:
        return Archive(file, surroundings.digest(file)), ""
    except OSError as error:
        return None, f"{file} cannot be read: {(error.strerror or str(error)).lower()}"
    except ValueError as error:
        return None, f"{file} {error}"


def _fields(source: str) -> Mapping[str, Any]:
    """Return the fields of a source by their keys; empty for an unknown source."""
    known = ImportSource.model_fields.get(source)
    model: Any = known and known.annotation
    return model.model_fields if model else {}


def _read_source(import_source: ImportSource, values: Placeholders | None) -> Import:
    (source,) = import_source.model_fields_set
    model = getattr(import_source, source)
    fields = model.model_dump(exclude_unset=True, exclude={TOKEN_ENV_KEY})
    return Import(source, fill(model.token_env, values), fill_all(fields, values))


def _import_errors(create: Mapping[str, Any], created_name: Any, slug: str) -> Iterator[Diagnostic]:
    """Yield the errors of a creation by import."""
    if "visibility" in create:
        message = "an import cannot set the visibility: leave this out"
        yield Diagnostic(("visibility",), message, at_key=True)
    if isinstance(created_name, str) and created_name != slug:
        message = f"GitLab derives the path of an imported project from its name: leave this out, or write `{slug}`"
        yield Diagnostic(("name",), message)
    if DOUBLED.search(slug):
        message = f"GitLab imports no project whose path has two of `-`, `_` and `.` in a row: `{slug}`"
        yield Diagnostic((IMPORT,), message, at_key=True)


def _source_errors(source: str, written_source: Mapping[str, Any], surroundings: Surroundings) -> Iterator[Diagnostic]:
    for name in _fields(source):
        value = written_source.get(name)
        steps: Steps = (name,)
        if not isinstance(value, str):
            continue
        if name == TOKEN_ENV_KEY:
            yield from _token_errors(value, surroundings)
        elif not value.strip():
            yield Diagnostic(steps, "must not be blank")
        elif name in {"url", "github_hostname"}:
            yield from _address_errors(steps, value, needs_scheme=name == "url")


def _token_errors(variable: str, surroundings: Surroundings) -> Iterator[Diagnostic]:
    # A token that is pasted in place of a variable's name may be a valid name too.
    if not VARIABLE_NAME.fullmatch(variable) or SECRET.match(variable):
        yield Diagnostic((TOKEN_ENV_KEY,), "must be the name of an environment variable, such as GITHUB_TOKEN")
    elif reveals_token(variable, os.environ.get(variable, ""), surroundings.secrets()):
        message = (
            "holds a token of reconciler, and would be sent to another service: use a variable for the import alone"
        )
        yield Diagnostic((TOKEN_ENV_KEY,), f"the environment variable {variable} {message}")


def _address_errors(steps: Steps, source_url: str, *, needs_scheme: bool) -> Iterator[Diagnostic]:
    if "@" in source_url:
        yield Diagnostic(steps, "must be an address without user and password: the token comes from `token_env`")
    elif needs_scheme and not HTTP_URL.match(source_url):
        yield Diagnostic(steps, "must be an address such as https://bitbucket.example.com")
