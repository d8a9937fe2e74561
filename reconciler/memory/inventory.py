"""The inventory: the live objects that manifests declared, each with the commit that declared it.

As values and as text.

The module is pure. `read_inventory` and `inventory_text` convert between an `Inventory` and its text: one JSON object a
line, first the header, then each target with its objects, sorted, so that git shows readable differences. The text has
names and IDs, and no value of a setting.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, TypeGuard
from urllib.parse import urlsplit

from reconciler.errors import InventoryUnreadable
from reconciler.model.targets import LEVELS, PATHLESS, Key, Level, Target

FORMAT = "reconciler.inventory/v1"

FORMAT_NAME = re.compile(r"reconciler\.inventory/v[0-9]{1,9}")
TARGET_KEY = re.compile(r"(user|group|project) ([1-9][0-9]{0,18})|instance|user")
COMMIT_SHA = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
COMMIT_NUMBER = re.compile(r"[0-9]{1,9}")
WEB_ADDRESS = re.compile(r"https?://[!-~]{1,1000}")
PATH = re.compile(r"[^\s\0-\x1f\x7f]{0,1024}")
DIGEST = re.compile(r"([0-9]{1,9}:[0-9A-Za-z]{1,128})?")
SECTION = re.compile(r"[a-z][a-z0-9_]{0,99}")

MAX_NAME = 2000
"""Characters of the longest name of an object."""
MAX_LINE = 20_000
"""Characters of the longest line but the first."""
MAX_HOLDERS = 50
"""Objects and lists in a line of an unknown section: whether deeper JSON can be parsed depends on the stack."""
MAX_ID = 2**63 - 1

ObjectKey = tuple[str, str, str, int]
"""Target, section, part and ID of an object."""

TargetNames = Callable[[Target, int | None], str]
"""Returns the inventory's name of a target, given the target and its ID, if that is known."""


@dataclass(frozen=True, slots=True)
class TargetLine:
    """A target that was applied.

    Attributes:
        target: its level and numeric ID, as `target_name` writes them.
        path: its full path at that time; empty for the instance and the user.
        digest: of its effective spec, as of `memory.effective`; empty if this spec may not be fully applied.
        again: the first day (UTC) on which time alone changes the desired state; None if there is no such day.
    """

    target: str
    path: str = ""
    digest: str = ""
    again: date | None = None


@dataclass(frozen=True, slots=True)
class ObjectLine:
    """An object that manifests declared and that was live after an apply.

    Attributes:
        target: as in `TargetLine`.
        section: the section's name.
        part: which of the section's endpoints; the section's name if there is only one.
        name: the object's name; several objects may share it.
        id: the object's own ID.
        at: the full ID of the commit whose manifests declared it; empty if it was applied without a commit.
    """

    target: str
    section: str
    part: str
    name: Key
    id: int
    at: str = ""

    @property
    def key(self) -> ObjectKey:
        """The identity of the object, which does not change with its name."""
        return self.target, self.section, self.part, self.id


@dataclass(frozen=True, slots=True)
class UnknownLine:
    """An object of a section that this version does not know: kept as it is.

    Attributes:
        target: as in `TargetLine`.
        values: the line as JSON, without `at`.
        at: as in `ObjectLine`.
    """

    target: str
    values: str
    at: str = ""


@dataclass(frozen=True, slots=True)
class Inventory:
    """The content of the inventory.

    Attributes:
        service: the URL of the service whose objects these are.
        applied: the commit of the manifests of the last apply; empty if there was none.
        targets: by target.
        objects: by `ObjectLine.key`.
        unknown: the objects of sections that this version does not know.
        numbers: the number that stands for each commit in the text, as it was read.
    """

    service: str
    applied: str = ""
    targets: Mapping[str, TargetLine] = field(default_factory=dict)
    objects: Mapping[ObjectKey, ObjectLine] = field(default_factory=dict)
    unknown: tuple[UnknownLine, ...] = ()
    numbers: Mapping[str, int] = field(default_factory=dict, compare=False)

    def is_about(self, service: str) -> bool:
        """Return whether a URL is that of the inventory's service, whatever the spelling."""
        return _place(self.service) == _place(service)


def target_name(level: Level, number: int | None) -> str:
    """Return a target as the inventory names it, such as `project 7`; the instance and the user have no number."""
    return str(level) if level in PATHLESS or number is None else f"{level} {number}"


def target_names(inventory: Inventory) -> TargetNames:
    """Return a function that maps a target to its inventory name: by ID, else by the path in the inventory.

    Empty if unknown.

    If two targets had one path, one after the other, the higher ID is that of the later one.
    """
    lines = sorted(inventory.targets.values(), key=lambda line: target_order(line.target))
    listed = {(line.target.partition(" ")[0], line.path.casefold()): line.target for line in lines}

    def name(target: Target, number: int | None) -> str:
        number = target.ref if isinstance(target.ref, int) else number
        if number is None and target.level not in PATHLESS:
            return listed.get((str(target.level), str(target.ref).casefold()), "")
        return target_name(target.level, number)

    return name


def target_order(name: str) -> tuple[int, int]:
    """Return the sort key of a target: its level, then its ID."""
    level, _, number = name.partition(" ")
    return LEVELS.index(Level(level)), int(number or 0)


def read_inventory(text: str, sections: Iterable[str]) -> tuple[Inventory, tuple[str, ...]]:
    """Return an inventory from its text, and a warning if lines are malformed, which are ignored.

    Everyone who can push to the branch can write the text: no text may cause another error than the one below.

    Args:
        text: of the file.
        sections: the names of the sections that this version knows.

    Raises:
        InventoryUnreadable: the header is malformed, or of another version.
    """
    header, *lines = text.split("\n") if text else [""]
    inventory, commits = _header(header)
    targets, objects, unknown, malformed = dict[str, TargetLine](), dict[ObjectKey, ObjectLine](), [], []
    for number, line in enumerate(lines, 2):
        if not line:
            continue
        match _entry(line, commits, sections):
            case TargetLine() as target:
                targets[target.target] = target
            case ObjectLine() as entry:
                objects[entry.key] = entry
            # an older version must not drop what a newer one has stored
            case UnknownLine() as entry:
                unknown.append(entry)
            case _:
                malformed.append(number)
    warnings = (_malformed(malformed),) if malformed else ()
    numbers = {commit: number for number, commit in commits.items()}
    return Inventory(inventory.service, inventory.applied, targets, objects, tuple(unknown), numbers), warnings


def _malformed(numbers: Sequence[int]) -> str:
    """Return a warning about malformed lines, by their numbers."""
    if len(numbers) == 1:
        return f"line {numbers[0]} of the inventory is malformed and is ignored"
    return f"{len(numbers):,} lines of the inventory are malformed and are ignored; the first is line {numbers[0]}"


def inventory_text(inventory: Inventory) -> str:
    """Return an inventory as text: see `read_inventory`."""
    entries: list[ObjectLine | UnknownLine] = [*inventory.objects.values(), *inventory.unknown]
    numbers = _numbers(inventory, {entry.at for entry in entries if entry.at})
    header: dict[str, Any] = {"format": FORMAT, "service": inventory.service}
    # numbered, so that no line repeats the 40 digits of a commit
    header["commits"] = {str(number): commit for commit, number in sorted(numbers.items(), key=lambda pair: pair[1])}
    if inventory.applied:
        header["applied"] = inventory.applied
    rows = [(target_order(line.target), 0, "", "", "", 0, _target_values(line)) for line in inventory.targets.values()]
    for entry in entries:
        values = _object_values(entry)
        place = (str(values["section"]), str(values.get("part", "")), str(values.get("name", "")))
        order = values.get("id", 0)
        at = {"at": numbers[entry.at]} if entry.at else {}
        rows.append((target_order(entry.target), 1, *place, order if isinstance(order, int) else 0, values | at))
    rows.sort(key=lambda row: row[:-1])
    return "".join(_line(values) + "\n" for values in (header, *(row[-1] for row in rows)))


def _line(values: Mapping[str, Any]) -> str:
    """Return a readable line; a surrogate without its pair, which UTF-8 cannot encode, is escaped."""
    line = json.dumps(values, ensure_ascii=False)
    return line if line.encode(errors="ignore").decode() == line else json.dumps(values)


def _header(line: str) -> tuple[Inventory, dict[int, str]]:
    """Return the empty inventory of a header, and the commit of each number in it."""
    match _json(line):
        case {"format": str(version)} if version != FORMAT and FORMAT_NAME.fullmatch(version):
            raise InventoryUnreadable(
                f"its format is {version!r}, and this version reads {FORMAT}", "use a newer version of reconciler"
            )
        case {"format": str(version), "service": str(service), "commits": dict(commits), **more} if version == FORMAT:
            known = {
                int(number): _commit(commit) for number, commit in commits.items() if COMMIT_NUMBER.fullmatch(number)
            }
            applied = _commit(more.get("applied", ""))
            is_whole = None not in known.values() and (applied or "applied" not in more)
            if is_whole and is_web_address(service):
                return Inventory(service, applied or ""), {number: commit or "" for number, commit in known.items()}
    raise InventoryUnreadable(
        "its first line is malformed", "restore inventory.jsonl from the branch's history, or delete the branch"
    )


def is_web_address(text: str) -> bool:
    """Return whether a text from outside is a URL of http or https."""
    try:
        return bool(WEB_ADDRESS.fullmatch(text)) and bool(urlsplit(text).netloc)
    except ValueError:  # such as one bracket of an IPv6 address
        return False


def _commit(raw: object) -> str | None:
    return raw if isinstance(raw, str) and COMMIT_SHA.fullmatch(raw) else None


def _entry(
    line: str, commits: Mapping[int, str], sections: Iterable[str]
) -> TargetLine | ObjectLine | UnknownLine | None:
    """Return a line as a value; None if it is malformed."""
    # before parsing: whoever can push can write a line of any length
    values: Any = _json(line) if len(line) <= MAX_LINE else None
    match values:
        case {"target": str(target)} if TARGET_KEY.fullmatch(target):
            if "section" in values:
                return _object(target, values, commits, sections)
            path, digest, again = values.get("path"), values.get("digest", ""), _day(values.get("again"))
            if _fits(path, PATH) and _fits(digest, DIGEST) and (again or "again" not in values):
                return TargetLine(target, path, digest, again)
    return None


def _object(
    line_target: str, line_values: dict[str, Any], commits: Mapping[int, str], sections: Iterable[str]
) -> ObjectLine | UnknownLine | None:
    at = line_values.pop("at", None)
    commit = commits.get(at) if type(at) is int else "" if at is None else None
    section, part = line_values["section"], line_values.get("part", line_values["section"])
    name, number = line_values.get("name"), line_values.get("id")
    if commit is None or not _fits(section, SECTION) or not _fits(part, SECTION):
        return None
    if section not in sections:
        text = json.dumps(line_values, ensure_ascii=False)
        return UnknownLine(line_target, text, commit) if text.count("{") + text.count("[") <= MAX_HOLDERS else None
    if not _is_id(number) or not (_is_id(name) or (isinstance(name, str) and len(name) <= MAX_NAME)):
        return None
    return ObjectLine(line_target, section, part, name, number, commit)


def _fits(raw: object, regex: re.Pattern[str]) -> TypeGuard[str]:
    return isinstance(raw, str) and regex.fullmatch(raw) is not None


def _is_id(raw: object) -> TypeGuard[int]:
    # Not `isinstance`: in Python, True is an int.
    return type(raw) is int and 0 < raw <= MAX_ID


def _json(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _day(raw: object) -> date | None:
    try:
        return date.fromisoformat(raw) if isinstance(raw, str) else None
    except ValueError:
        return None


def _target_values(target_line: TargetLine) -> dict[str, Any]:
    values = {"target": target_line.target, "path": target_line.path, "digest": target_line.digest}
    values["again"] = target_line.again.isoformat() if target_line.again else ""
    return {name: value for name, value in values.items() if value or name == "path"}


def _object_values(object_line: ObjectLine | UnknownLine) -> dict[str, Any]:
    if isinstance(object_line, UnknownLine):
        values: dict[str, Any] = json.loads(object_line.values)
        return values
    part = {} if object_line.part == object_line.section else {"part": object_line.part}
    return {
        "target": object_line.target,
        "section": object_line.section,
        **part,
        "name": object_line.name,
        "id": object_line.id,
    }


def _numbers(inventory: Inventory, commits: Iterable[str]) -> dict[str, int]:
    """Return the number of each commit: its old one, so that other lines do not change, or a new one."""
    numbers = {commit: number for commit, number in inventory.numbers.items() if commit in commits}
    following = max(inventory.numbers.values(), default=-1) + 1
    return numbers | {commit: number for number, commit in enumerate(sorted({*commits} - {*numbers}), following)}


def _place(service: str) -> tuple[str, str, str]:
    parts = urlsplit(service)
    return parts.scheme.lower(), parts.netloc.lower(), parts.path.rstrip("/")
