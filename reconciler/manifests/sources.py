"""Find manifest files, read them as text within limits, and locate values in them.

Begin with `search`, `open_source`, and `Document.find`. A `Location` and a located message are safe to print: secrets
are hidden, and control characters are escaped.
"""

import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from shlex import quote
from typing import Any

from reconciler import CONFIGURATION
from reconciler.errors import LocatedDiagnostic, ManifestErrors
from reconciler.manifests.yaml_reader import Position, Positions, line_at, read_plain, read_positions
from reconciler.system.checkout import LEADS_OUT, leads_out
from reconciler.system.terminal import blanked, escaped

MAX_FILE_BYTES = 5 * 1024 * 1024
USUAL = 64 * 1024
"""Bytes that hold nearly every manifest, to allocate no memory for the largest each time."""
SUFFIXES = (".yaml", ".yml", ".yaml.j2")
ALIKE = (*SUFFIXES, ".yml.j2")
"""The endings, in any case, that users may mistake for those of manifests."""
TEMPLATE = ".j2"
MANIFEST = b"reconciler/v1"
"""The bytes that every manifest contains."""
REPOSITORY = ".git"
DOCUMENT = b'{\n  "format": "reconciler.'
"""The bytes that plans and reports of ours begin with."""
UTF_8_MARK = b"\xef\xbb\xbf"
UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")

SHARED = ("Profile", "ProjectSet")
"""The kinds of documents that concern many targets."""

LONGEST_SHOWN = 200
"""Characters of a source line that are shown."""

LONGEST_MESSAGE = 2000
"""Characters of a message."""

Secrets = Callable[[], Collection[str]]
"""Returns the texts that no message shows; called for each message, so that secrets are never kept with a file."""


def no_secrets() -> Collection[str]:
    """Return no secrets."""
    return ()


Steps = tuple[Any, ...]
"""Keys and indices from a document, or its spec, down to a value."""


@dataclass(slots=True)
class Search:
    """The manifests below the paths that a user named.

    Attributes:
        files: in the order of the paths, and within folders by name; each file once.
        errors: paths that do not exist or cannot be read.
        passed_over: manifests that are not read, because of their name or because they are hidden.
    """

    files: list[str] = field(default_factory=list)
    errors: list[LocatedDiagnostic] = field(default_factory=list)
    passed_over: list[str] = field(default_factory=list)
    _configuration: str = field(default_factory=lambda: os.path.realpath(CONFIGURATION))
    _seen: set[str] = field(default_factory=set)

    def add(self, path: str) -> None:
        """Add a file whatever its name, or all manifests of a folder that are not hidden."""
        real = path
        try:
            real = os.path.realpath(path)
            if leads_out(path):
                raise ValueError(LEADS_OUT)
            count = self._add_folder(path, real, {real})
        except NotADirectoryError:
            if real == self._configuration:
                self._error(path, "is the tool's own configuration, not a manifest: leave it out")
            self._add_file(path, real)
        except FileNotFoundError as error:
            self._error(path, f"cannot be read: {_reason(error)}; check the path, or {_remedy(path)}")
        except (OSError, ValueError) as error:
            self._error(path, f"cannot be read: {_reason(error)}")
        else:
            if not count:
                self._error(path, f"holds no manifests ({', '.join('*' + suffix for suffix in SUFFIXES)})")

    def _add_folder(self, folder: str, real: str, visited: set[str]) -> int:
        """Add the manifests of a folder and return their number; no folder is visited twice."""
        with os.scandir(folder) as folder_entries:
            entries = sorted(folder_entries, key=lambda entry: entry.name)
        count = 0
        for entry in entries:
            path = entry.path.removeprefix("./")
            target = os.path.realpath(path) if entry.is_symlink() else f"{real}/{entry.name}"
            if entry.name.startswith("."):
                self._pass_over_hidden(entry, path)
            elif entry.is_symlink() and (entry.is_dir() or path.endswith(SUFFIXES)) and leads_out(path):
                count += 1
                self._error(path, f"cannot be read: {LEADS_OUT}")
            elif entry.is_dir():
                if target not in visited:
                    visited.add(target)
                    try:
                        count += self._add_folder(path, target, visited)
                    except OSError as error:
                        self._error(path, f"cannot be read: {_reason(error)}")
            elif entry.name.endswith(SUFFIXES) and target != self._configuration:
                count += 1
                if entry.is_file() or not Path(path).exists():
                    self._add_file(path, target)
                else:
                    self._error(path, "is not a file")
            else:
                self._pass_over(path)
        return count

    def _pass_over_hidden(self, dir_entry: os.DirEntry[str], path: str) -> None:
        """Pass over a hidden file, or all files of a hidden folder, without following links."""
        if not dir_entry.is_dir(follow_symlinks=False):
            self._pass_over(path)
        elif dir_entry.name != REPOSITORY:
            for folder, _, names in os.walk(path):
                for name in sorted(names):
                    self._pass_over(f"{folder}/{name}")

    def _pass_over(self, path: str) -> None:
        if path.lower().endswith(ALIKE) and is_manifest_text(path):
            self.passed_over.append(path)

    def _add_file(self, path: str, real: str) -> None:
        if real not in self._seen and real != self._configuration:
            self._seen.add(real)
            self.files.append(path)

    def _error(self, path: str, message: str) -> None:
        self.errors.append(located(path, message))


def search(manifest_paths: Sequence[Path]) -> Search:
    """Find the manifests at and below some paths."""
    searched = Search()
    for path in manifest_paths:
        searched.add(str(path))
    return searched


def why_passed_over(path: str) -> str:
    """Return the warning about a manifest that is passed over."""
    if path.endswith(SUFFIXES):
        return "this manifest is not read, because its name, or that of a folder, begins with a dot: rename it"
    endings = ", ".join(SUFFIXES[:-1])
    return f"this manifest is not read, because its name does not end in {endings} or {SUFFIXES[-1]}: rename it"


def is_manifest_text(path: str) -> bool:
    """Whether a file can be read and contains the words that every manifest has."""
    if not Path(path).is_file() or leads_out(path):
        return False
    try:
        with Path(path).open("rb") as file:
            return MANIFEST in file.read(MAX_FILE_BYTES)
    except OSError:
        return False


def is_manifest(path: str) -> bool:
    """Whether a path is that of a manifest: by its ending, and with no hidden part."""
    return path.endswith(SUFFIXES) and not any(part.startswith(".") and part != "." for part in path.split("/"))


TOKEN_IN_LINE = re.compile(r"\b(?:gh[a-z]_|github_pat_|gl[a-z]{2,12}-)[\w.=-]{10,}")
"""Tokens of GitHub and GitLab, by their beginning."""

PASTED = re.compile(
    rf"{TOKEN_IN_LINE.pattern}|(?<=://)[^/@\s\"']+(?=@)|(?:(?<=token: )|(?<=password: ))[^\s,{{}}#][^,}}#]*"
)
"""Secrets that somebody has written into a manifest: known tokens, passwords in URLs, and values of such keys."""


@lru_cache(maxsize=4)
def _starred(secret_pattern: re.Pattern[str], text: str) -> str:
    """Return a text of the same length without what looks like a secret; a long line may have thousands of errors."""
    return secret_pattern.sub(lambda match: "*" * len(match[0]), text)


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """The text of one file.

    Attributes:
        path: as the user named it.
        text: without a byte order mark; of a template, the rendered text.
        secrets: the texts that no message shows.
        own_line: of a template, returns its own line for a line and column of the rendered text, if known.
    """

    path: str
    text: str
    secrets: Secrets = no_secrets
    own_line: Callable[[int, int], int | None] | None = None
    _kept: list[Positions] = field(default_factory=list, init=False, repr=False)

    def positions(self, *, is_cached: bool) -> Positions:
        """Return the positions of all values; `is_cached` keeps them as long as the source, for many questions."""
        if not self._kept:
            positions = _positions(self)
            if not is_cached:
                return positions
            self._kept.append(positions)
        return self._kept[0]

    def read(self) -> "ReadDocuments":
        """Return the documents and the errors of the text as YAML."""
        roots = read_plain(self.text)
        parsed = Positions(roots, {}, (), whole=True) if roots is not None else read_positions(self.text)
        documents = tuple(Document(self, number, root.line, root.value) for number, root in enumerate(parsed.roots))
        errors = tuple(self.located(error.line, error.column, error.message) for error in parsed.errors)
        return ReadDocuments(documents, errors, parsed.whole)

    def located(self, line: int, column: int, message: str, severity: str = "error") -> LocatedDiagnostic:
        """Return an error or warning at a line and column of the text."""
        source = line_at(self.text, line)
        if self.own_line:
            message += f" (line {line} of what the template renders to)"
            line = self.own_line(line, column) or line
        # The longest first: one secret may be the beginning of another.
        for secret in sorted(self.secrets(), key=len, reverse=True):
            source, message = source.replace(secret, "*" * len(secret)), message.replace(secret, "*" * len(secret))
        message, source = _starred(TOKEN_IN_LINE, message), _starred(PASTED, source)
        return located(self.path, message, severity, line=line, column=column, source=source)


@dataclass(frozen=True, slots=True)
class ReadDocuments:
    """The documents of a text without empty ones, its errors, and whether all of it was read."""

    documents: "tuple[Document, ...]"
    errors: tuple[LocatedDiagnostic, ...] = ()
    whole: bool = True

    @property
    def values(self) -> list[Any]:
        """The plain values of the documents."""
        return [document.value for document in self.documents]


def located(
    path: str, message: str, severity: str = "error", *, line: int = 0, column: int = 0, source: str = ""
) -> LocatedDiagnostic:
    """Return a diagnostic that is safe for a terminal; a long source line is cut, or left out."""
    if len(source) > LONGEST_SHOWN:
        source = source[:LONGEST_SHOWN] + "..." if column <= LONGEST_SHOWN else ""
    if len(message) > LONGEST_MESSAGE:
        message = message[:LONGEST_MESSAGE] + "..."
    return LocatedDiagnostic(escaped(path), line, column, escaped(message), blanked(source), severity)


def open_source(path: str, given_content: bytes | None = None, secret_values: Secrets = no_secrets) -> Source:
    """Read a file, or its content if that is given.

    Raises:
        ManifestErrors: the file cannot be read, is larger than 5 MiB, or is not UTF-8 text.
    """
    if given_content is None:
        try:
            if leads_out(path):
                raise ValueError(LEADS_OUT)
            with open(path, "rb") as file:  # noqa: PTH123 - six times as fast as a Path, for ten thousand files
                # Of a file that is too large, as much is read as shows that.
                given_content = file.read(USUAL)
                given_content += file.read(MAX_FILE_BYTES + 1 - USUAL) if len(given_content) == USUAL else b""
        except (OSError, ValueError) as error:
            raise ManifestErrors([located(path, f"cannot be read: {_reason(error)}")]) from None
    if len(given_content) > MAX_FILE_BYTES:
        raise ManifestErrors([located(path, f"is larger than {MAX_FILE_BYTES // 1024 // 1024} MiB")])
    if given_content.startswith(DOCUMENT):
        raise ManifestErrors([located(path, "is a plan or a report, not a manifest; --plan takes a saved plan")])
    if given_content.startswith(UTF_16_MARKS):
        raise ManifestErrors([located(path, "is UTF-16 text: save it as UTF-8")])
    try:
        text = given_content.removeprefix(UTF_8_MARK).decode()
    except UnicodeDecodeError as error:
        line = given_content.count(b"\n", 0, error.start) + 1
        raise ManifestErrors([located(path, f"is not UTF-8 text (line {line}): save it as UTF-8")]) from None
    if "\0" in text:
        raise ManifestErrors([located(path, "is not text: it holds null bytes")])
    return Source(path, text, secret_values)


TARGET_OR_GLOB = re.compile(r"\w[\w.*?\[\]/-]*|\*[\w.*?\[\]/-]*")
"""The path of a group or project, or a glob of such paths."""


def _remedy(missing_path: str) -> str:
    """Return the remedy for a path without a file: a group or project in its place belongs to `--target`."""
    top, slash, _ = missing_path.partition("/")
    # a URL or a token in the place of a path may hold a secret, which is not repeated
    is_plain = TARGET_OR_GLOB.fullmatch(missing_path) and not TOKEN_IN_LINE.search(missing_path)
    if is_plain and (slash or "*" in top) and not missing_path.endswith(SUFFIXES) and not Path(top).exists():
        return f"select a target of plan, apply or drift with --target {quote(missing_path)}"
    return "begin with reconciler init"


def _reason(read_error: OSError | ValueError) -> str:
    return (read_error.strerror or str(read_error)).lower() if isinstance(read_error, OSError) else str(read_error)


def read_mapping(source: Source) -> dict[str, Any]:
    """Return the mapping of a YAML text that is no manifest; an empty mapping if the text is empty."""
    reading = source.read()
    if reading.errors:
        raise ManifestErrors(reading.errors)
    values = reading.values or [{}]
    if len(values) > 1 or not isinstance(values[0], dict):
        raise ManifestErrors([located(source.path, "must hold one mapping of names to values")])
    return values[0]


@dataclass(frozen=True, slots=True)
class Location:
    """A position in a source."""

    source: Source
    position: Position

    def __str__(self) -> str:
        """`path:line:column`."""
        return f"{self.line}:{self.position.column}"

    @property
    def line(self) -> str:
        """`path:line`."""
        own_line = self.source.own_line and self.source.own_line(self.position.line, self.position.column)
        return f"{escaped(self.source.path)}:{own_line or self.position.line}"


@dataclass(frozen=True, slots=True, eq=False)
class Document:
    """One document of a file.

    Attributes:
        source: the file.
        number: its number in the file, from 0.
        line: of its content, from 1.
        value: its plain value.
        former: the paths in the text where the value has others, since a group or project has moved; by their steps.
    """

    source: Source
    number: int
    line: int
    value: Any
    former: Mapping[Steps, str] = field(default_factory=dict)

    @property
    def origin(self) -> str:
        """`path:line`, safe to show and to save; for a rendered template, only the path."""
        path = escaped(self.source.path)
        return path if self.source.own_line else f"{path}:{self.line}"

    @property
    def is_shared(self) -> bool:
        """Whether the document is a profile or a set: places in it are looked up for each target that it applies to."""
        return isinstance(self.value, dict) and self.value.get("kind") in SHARED

    def find(self, steps: Steps, *, at_key: bool = False) -> Location:
        """Return the location of the value at some steps, or of its key.

        If there is no such value, the location is that of the key of the innermost value that exists.
        """
        parsed = self.source.positions(is_cached=self.is_shared)
        container = parsed.roots[self.number].value
        own = value = Position(self.line, 1)
        for step in steps:
            inside = parsed.positions.get(id(container), {})
            if step not in inside:
                return Location(self.source, own)
            own, value = inside[step]
            container = container[step]
        return Location(self.source, own if at_key else value)


@lru_cache(maxsize=16)
def _positions(source: Source) -> Positions:
    return read_positions(source.text)
