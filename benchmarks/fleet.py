"""A fleet of projects, drawn by a seed: their manifests, a service that has them, and the fewest requests there can be.

Nothing here shares code with what it measures. A manifest has 60 lines and six sections. The files are written one
project after the other, so that whoever measures stays small.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

Plain = dict[str, Any]

SEED = 20261121
TOKEN = "ada-token"  # noqa: S105 - the sandbox's, which guards nothing
LINES = 60
TEAM = 10
"""Projects in a group, which is why fleets come in tens. They share a library, which has no manifest."""

FIRST_PROJECT, FIRST_LIBRARY, FIRST_GROUP = 100_000, 10_000, 1000
MONTHS = ("01", "02", "03", "04", "05")
RULES = ("prod", "stable", "release")
EVENTS = ("failed_pipeline", "new_issue", "moved_project")
APPROVALS = (
    "allow_author_approval",
    "allow_committer_approval",
    "allow_overrides_to_approver_list_per_merge_request",
    "retain_approvals_on_push",
    "require_reauthentication_to_approve",
)
LEVELS = {"minimum_access_level_for_push": "maintainer", "minimum_access_level_for_delete": "owner"}


@dataclass(frozen=True, slots=True)
class Project:
    """One project as it should be.

    Attributes:
        index: its place in the fleet, from 0.
        day: on which its milestones are due.
        events: of each event, whether it is on.
        approvals: of each approval setting, whether it is on.
    """

    index: int
    day: int
    events: dict[str, bool]
    approvals: dict[str, bool]

    @property
    def team(self) -> int:
        """Its group, from 0."""
        return self.index // TEAM

    @property
    def path(self) -> str:
        """Its full path."""
        return path_of(self.index)

    @property
    def neighbour(self) -> int:
        """The project on its allowlist: the next one of its team."""
        return self.team * TEAM + (self.index + 1) % TEAM

    def milestones(self) -> dict[str, Plain]:
        """By title."""
        return {
            f"2026.{month}": {
                "description": f"Release {month} of {self.path}",
                "start_date": f"2026-{month}-01",
                "due_date": f"2026-{month}-{self.day:02d}",
            }
            for month in MONTHS
        }

    def rules(self) -> dict[str, Plain]:
        """By pattern."""
        return {f"{self.path}/{name}*": dict(LEVELS) for name in RULES}


def tens(count: int) -> int:
    """Return the nearest size of a fleet that is no larger, and at least that of one team."""
    return max(count // TEAM * TEAM, TEAM)


def path_of(index: int) -> str:
    """Return the full path of a project."""
    return f"fleet/team-{index // TEAM:04d}/service-{index:05d}"


def project(index: int) -> Project:
    """Draw a project; it is the same each time."""
    random = Random(f"{SEED}/{index}")  # noqa: S311 - a seed, no secret
    events = {name: random.random() < 0.5 for name in EVENTS}
    approvals = {name: random.random() < 0.5 for name in APPROVALS}
    return Project(index, random.randint(20, 28), events, approvals)


def manifest(wanted: Project) -> str:
    """Write a project's manifest."""
    lines = [
        "apiVersion: reconciler/v1",
        "kind: Project",
        "metadata:",
        f"  path: {wanted.path}",
        "  labels:",
        f"    team: team-{wanted.team:04d}",
        "spec:",
        "  prune: [milestones, job_token_scope]",
        *(line for name, section in sections(wanted).items() for line in (f"  {name}:", *section)),
    ]
    return "\n".join(lines) + "\n"


def sections(wanted: Project) -> dict[str, list[str]]:
    """Return the lines of each section of a project's manifest."""
    return {
        "notification_settings": [
            "    level: custom",
            "    events:",
            *(f"      {name}: {str(on).lower()}" for name, on in wanted.events.items()),
        ],
        "approval_settings": [f"    {name}: {str(on).lower()}" for name, on in wanted.approvals.items()],
        "container_repository_protection_rules": [*_items(wanted.rules())],
        "job_token_scope": [
            "    enabled: true",
            "    projects:",
            f"      - {path_of(wanted.neighbour)}",
            f"      - fleet/team-{wanted.team:04d}/library",
            "    groups:",
            f"      - fleet/team-{wanted.team:04d}",
        ],
        "milestones": [*_items(wanted.milestones())],
        "trigger_tokens": ["    nightly: {}"],
    }


def _items(items: dict[str, Plain]) -> Iterator[str]:
    for name, fields in items.items():
        yield f'    "{name}":'
        yield from (f"      {key}: {value}" for key, value in fields.items())


PARTS = len(sections(project(0))) + 2
"""Reads of a project: one for each section, and two more for the two lists of its job token scope."""


def write_manifests(folder: Path, count: int) -> None:
    """Write the manifests of so many projects, a file each, a folder for each team."""
    for index in range(count):
        team = folder / f"team-{index // TEAM:04d}"
        if index % TEAM == 0:
            team.mkdir(parents=True)
        (team / f"service-{index:05d}.yaml").write_text(manifest(project(index)), encoding="utf-8")


@dataclass(slots=True)
class Work:
    """The fewest requests that there can be for some projects.

    Attributes:
        reads: one for each part of each project.
        writes: one for each object, or settings section, that differs.
        looks: one for each part that was written to, and one right before a record is written whole, or an object is
            created whose name need not be unique.
        needed: IDs that writes need...
        known: ...and those that come along with what is read.
    """

    reads: int = 0
    writes: int = 0
    looks: int = 0
    needed: set[int] = field(default_factory=set)
    known: set[int] = field(default_factory=set)

    @property
    def plan(self) -> int:
        """To plan."""
        return self.reads + len(self.needed - self.known)

    @property
    def apply(self) -> int:
        """To plan, to change what differs, and to look at it."""
        return self.plan + self.writes + self.looks


def write_state(file: Path, count: int, *, drifted: bool = False) -> Work:
    """Write a state of the sandbox with so many projects.

    Args:
        file: where to.
        count: how many.
        drifted: whether much is other than the manifests want it; else nothing is.
    """
    teams = range((count + TEAM - 1) // TEAM)
    work = Work()
    top = {
        "instance": {"enforce_job_token_allowlist": False},
        "users": [
            {"id": 1, "username": "root", "admin": True, "tokens": ["root-token"], "emails": ["root@example.com"]},
            {"id": 2, "username": "ada", "tokens": [TOKEN], "emails": ["ada@example.com"]},
        ],
        "groups": [
            {"id": FIRST_GROUP - 1, "path": "fleet", "members": [{"user": "ada", "role": "owner"}]},
            *({"id": FIRST_GROUP + team, "path": f"fleet/team-{team:04d}"} for team in teams),
        ],
    }
    libraries = ({"id": FIRST_LIBRARY + team, "path": f"fleet/team-{team:04d}/library"} for team in teams)
    with file.open("w", encoding="utf-8") as out:
        out.write(json.dumps(top).removesuffix("}") + ', "projects": [\n')
        out.writelines(json.dumps(library) + ",\n" for library in libraries)
        for index in range(count):
            found = live(project(index))
            work.reads += PARTS
            if drifted:
                drift(found, project(index), work)
            take_note(found, work)
            out.write(json.dumps(found) + (",\n" if index < count - 1 else "\n"))
        out.write("]}\n")
    return work


def live(wanted: Project) -> Plain:
    """Return a project of the service that is as it should be."""
    return {
        "id": FIRST_PROJECT + wanted.index,
        "path": wanted.path,
        "notification_settings": {"ada": {"level": "custom", "events": dict(wanted.events)}},
        "merge_request_approval_settings": dict(wanted.approvals),
        "container_repository_protection_rules": [
            {"repository_path_pattern": pattern} | levels for pattern, levels in wanted.rules().items()
        ],
        "job_token_scope": {
            "inbound_enabled": True,
            "project_allowlist": [FIRST_PROJECT + wanted.neighbour, FIRST_LIBRARY + wanted.team],
            "group_allowlist": [FIRST_GROUP + wanted.team],
        },
        "milestones": [{"title": title} | fields for title, fields in wanted.milestones().items()],
        "trigger_tokens": [{"description": "nightly", "owner": "ada"}],
    }


def take_note(found: Plain, work: Work) -> None:
    """Count the IDs that come along with what is read of a project."""
    work.known |= {*found["job_token_scope"]["project_allowlist"]}
    if found["milestones"] or found["container_repository_protection_rules"]:
        work.known.add(found["id"])


def drift(found: Plain, wanted: Project, work: Work) -> None:
    """Make a project other than it should be, and count what it takes to bring it back.

    No list of the first team has its library yet, so that its ID must be asked for, once.
    """
    random = Random(f"{SEED}/drift/{wanted.index}")  # noqa: S311 - a seed, no secret
    target = found["job_token_scope"]
    number, library = found["id"], FIRST_LIBRARY + wanted.team
    if wanted.team == 0 or random.random() < 0.2:
        target["project_allowlist"].remove(library)
        work.needed |= {number, library}
        work.writes += 1
    if random.random() < 0.2:
        target["project_allowlist"].append(FIRST_PROJECT + wanted.team * TEAM + (wanted.index + 2) % TEAM)
        work.needed.add(number)
        work.writes += 1
    work.looks += sorted(target["project_allowlist"]) != sorted([FIRST_PROJECT + wanted.neighbour, library])
    for part, change in (
        ("merge_request_approval_settings", _flip),
        ("notification_settings", _flip_event),
        ("container_repository_protection_rules", _lose),
        ("trigger_tokens", _lose),
        ("milestones", _lose),
        ("milestones", _outdate),
        ("milestones", _leave_over),
    ):
        if random.random() < 0.25:
            change(found[part], random)
            work.writes += 1
            work.looks += {"milestones": 0, "merge_request_approval_settings": 2, "trigger_tokens": 2}.get(part, 1)
    work.looks += found["milestones"] != live(wanted)["milestones"]


def _flip(settings: dict[str, bool], random: Random) -> None:
    name = random.choice(APPROVALS)
    settings[name] = not settings[name]


def _flip_event(settings: Plain, random: Random) -> None:
    name = random.choice(EVENTS)
    settings["ada"]["events"][name] = not settings["ada"]["events"][name]


def _lose(items: list[Plain], _random: Random) -> None:
    items.pop()


def _outdate(items: list[Plain], _random: Random) -> None:
    items[0]["due_date"] = f"{items[0]['due_date'][:-2]}15"


def _leave_over(items: list[Plain], random: Random) -> None:
    items.append({"title": f"Left over {random.randint(1, 9)}"})
