"""An installation of the service, and what a test makes in it and takes away again, by the public interface alone."""

import os
import re
import secrets
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from email.utils import formatdate, parsedate_to_datetime
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Self
from urllib.parse import quote

import httpx
import yaml

RECONCILER = Path(sys.executable).parent / "reconciler"
"""The installed command."""

OWNER, MAINTAINER, DEVELOPER = 50, 40, 30
JOBS = 30
"""Seconds for which removals by the service's jobs are waited for."""

ORIGIN = re.compile(r"(?<=\S) {5}\S*manifests/\S+(?: and \d+ more)?$", re.MULTILINE)
ACME = re.compile(r"\bacme\b")
NUMBER = re.compile(r"(?<=\(ID )\d+|(?<=deletion_scheduled-)\d+|(?<=deletion since )[\d-]+|(?<=POST projects/)\d+")
"""What no two runs have in common."""

LOST = ("COV", "RECONCILER_", "CI_", "PYTHONDONTWRITEBYTECODE")
"""Beginnings of names of variables that commands do not get: of settings, and of the tracing of coverage."""


LICENSED: dict[str, tuple[str, ...]] = {
    "approval_settings": (
        "groups/{group}/merge_request_approval_setting",
        "~ approval settings",
        "! approval settings",
    ),
    "epics": ("groups/{group}/epics", "+ epic", "~ epic", "- epic"),
    "service_accounts": ("service_accounts", "+ service account", "~ service account", "- service account"),
    "container_repository_protection_rules": (
        "projects/{project}/registry/protection/repository/rules",
        "+ protection rule",
        "~ protection rule",
        "- protection rule",
        "? container_repository_protection_rules",
    ),
    "container_tag_protection_rules": (
        "projects/{project}/registry/protection/tag/rules",
        "+ tag protection rule",
        "~ tag protection rule",
        "- tag protection rule",
    ),
    "approval_rules": (
        "projects/{project}/approval_rules",
        "+ approval rule",
        "~ approval rule",
        "- approval rule",
    ),
}
"""Sections that an installation may lack: what to ask to find out, and how the lines about them begin."""

SIGNS = tuple("+~-!?")
UNMANAGED = re.compile(r", \d+ unmanaged")
"""Service accounts of others, for one, are unmanaged."""
IN_ORDER = re.compile(r"No changes: \d+ targets? (?:is|are) in order|Nothing to do in the \d+ targets? looked at")
"""How many targets an installation has depends on the sections that it lacks."""


def nothing(requests: int) -> str:
    """Return the last line of an empty plan."""
    return f"Nothing to do. {requests} requests were made to plan.\n"


def without(text: str, sections: Collection[str]) -> str:
    """Return manifests without some sections."""
    documents = list(yaml.safe_load_all(text))
    for each in documents:
        each["spec"] = {name: value for name, value in each["spec"].items() if name not in sections}
        if "prune" in each["spec"]:
            each["spec"]["prune"] = [name for name in each["spec"]["prune"] if name not in sections]
    return yaml.safe_dump_all([each for each in documents if each["spec"]], allow_unicode=True)


@dataclass(frozen=True)
class Ended:
    """How a command ended; in its outputs, `acme` stands for the name of the world."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """The lines of standard output, without places in manifests, and with one blank for several."""
        return [
            IN_ORDER.sub("Nothing to do", UNMANAGED.sub("", " ".join(line.split())))
            for line in ORIGIN.sub("", self.out).splitlines()
        ]


@dataclass
class User:
    """A user whom a test has made."""

    id: int
    name: str
    token: str = ""


@dataclass
class Installation:
    """A service, and an administrator's token of it.

    Attributes:
        program: the command, as tests run it to its end.
        left: what removals left behind, for the service's jobs to remove.
        lacks: sections that it has not, or not for anybody.
        remarks: what a test could not do or compare here, and why.
    """

    api_url: str
    token: str
    program: Path = RECONCILER
    left: list[str] = field(default_factory=list)
    lacks: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.client = httpx.Client(timeout=120, headers={"content-type": "application/json"})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()

    def ask(self, method: str, path: str, body: Any = None, token: str | None = None) -> httpx.Response:
        """Send one request, as the administrator unless a token is given; the path is below the API's URL."""
        headers = {"private-token": token or self.token}
        return self.client.request(method, f"{self.api_url}/{path}", json=body, headers=headers)

    def value(self, method: str, path: str, body: Any = None, token: str | None = None) -> Any:
        """Send a request that must succeed, and return the JSON of its answer."""
        response = self.ask(method, path, body, token)
        assert response.is_success, f"{method} {path}: {response.status_code} {response.text}"
        return response.json() if response.content else None

    def look(self, folder: Path) -> None:
        """Find out what it lacks."""
        with self.world(folder) as world:
            ids = {"group": world.ids[""], "project": world.project("look")}
            for name, (path, *_) in LICENSED.items():
                answer = self.ask("GET", path.format(**ids), token=self.token)
                if not answer.is_success:
                    self.lacks.append(name)
                    self.remarks.append(
                        f"{name} is answered {answer.status_code}: not compared, but said to be missing"
                    )

    @contextmanager
    def world(self, folder: Path, **owner: Any) -> Iterator["World"]:
        """Make a top-level group of a random name, with an owner of its own, and remove both at the end, however it comes.

        Args:
            folder: where commands are run.
            owner: further attributes of the owner, such as `admin`.
        """
        world = World(self, f"rec-{secrets.token_hex(4)}", folder)
        try:
            world.begin(owner)
            yield world
        finally:
            world.remove()


@dataclass
class World:
    """A top-level group, its owner, and a folder with manifests.

    Attributes:
        name: the random path of the group; all else that is made has it in its name.
        lacks: sections that the installation has, but cannot change.
    """

    installation: Installation
    name: str
    folder: Path
    users: list[User] = field(default_factory=list)
    ids: dict[str, int] = field(default_factory=dict)
    lacks: list[str] = field(default_factory=list)

    def begin(self, owner: Mapping[str, Any]) -> None:
        """Make the owner and the group."""
        self.owner = self.user("owner", **owner)
        self.group("")

    def user(self, word: str, **attributes: Any) -> User:
        """Make a user, with a token."""
        name = f"{self.name}-{word}"
        made = {"username": name, "name": f"Übung {word}", "email": f"{name}@example.com", "skip_confirmation": True}
        sent = {**made, "force_random_password": True, "can_create_group": True, "projects_limit": 100, **attributes}
        user = User(self.installation.value("POST", "users", sent)["id"], name)
        self.users.append(user)
        user.token = self.token(user)
        return user

    def token(self, user: User, *scopes: str, **attributes: Any) -> str:
        """Make a token of a user; attributes are those of the service, such as `expires_at`."""
        sent = {"name": self.name, "scopes": scopes or ["api"], **attributes}
        return str(self.installation.value("POST", f"users/{user.id}/personal_access_tokens", sent)["token"])

    def group(self, path: str) -> int:
        """Make a group; the path is below the world's own group, which is the empty path."""
        parent, _, slug = path.rpartition("/")
        sent: dict[str, Any] = {"name": slug or self.name, "path": slug or self.name, "visibility": "private"}
        sent |= {"parent_id": self.ids[parent]} if path else {"project_creation_level": "developer"}
        self.ids[path] = self.value("POST", "groups", sent)["id"]
        return self.ids[path]

    def project(self, path: str, token: str | None = None, **attributes: Any) -> int:
        """Make a project; the path is below the world's own group."""
        parent, _, slug = path.rpartition("/")
        sent = {"name": slug, "path": slug, "namespace_id": self.ids[parent], "visibility": "private", **attributes}
        self.ids[path] = self.value("POST", "projects", sent, token)["id"]
        return self.ids[path]

    def at(self, path: str) -> str:
        """Return the path that the service has for a place, encoded."""
        return quote(f"{self.name}/{path}".rstrip("/"), safe="")

    def ask(self, method: str, path: str, body: Any = None, token: str | None = None) -> httpx.Response:
        """Send a request as the owner."""
        return self.installation.ask(method, path, body, token or self.owner.token)

    def value(self, method: str, path: str, body: Any = None, token: str | None = None) -> Any:
        """Send a request as the owner, which must succeed, and return the JSON of its answer."""
        return self.installation.value(method, path, body, token or self.owner.token)

    def write(self, name: str, text: str) -> None:
        """Write a file in which `acme` stands for the name of the world; a manifest gets its first line."""
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        documents = [f"apiVersion: reconciler/v1\n{each.strip()}\n" for each in text.split("---\n")]
        file.write_text(ACME.sub(self.name, "---\n".join(documents)))

    def expect(self, line: str, code: int, text: str, *, token: str | None = None, api_url: str | None = None) -> Ended:
        """Run the command, and compare its exit code, and its result line by line.

        Where the installation lacks sections, changes of the others are compared alone.
        """
        done = self.run(line, token=token, api_url=api_url)
        expected, lines = text.strip().splitlines(), done.lines
        if lacks := [*self.installation.lacks, *self.lacks]:
            left_out = tuple(start for name in lacks for start in LICENSED[name][1:])
            expected, lines = (
                [each for each in part if each.startswith(SIGNS) and not each.startswith(left_out)]
                for part in (expected, lines)
            )
        assert (done.code, lines) == (code, expected), f"{line}: {done.code}\n{done.out}\n{done.err}"
        return done

    def run(self, line: str, *, token: str | None = None, api_url: str | None = None) -> Ended:
        """Run the command in the folder to its end."""
        return self.end(self.start(line, token=token, api_url=api_url, program=self.installation.program))

    def start(
        self, line: str, *, token: str | None = None, api_url: str | None = None, program: Path = RECONCILER
    ) -> "subprocess.Popen[str]":
        """Start the command in the folder, as the owner unless a token is given.

        The line is split at blanks; in it, `acme` stands for the name of the world.
        """
        kept = {name: value for name, value in os.environ.items() if not name.startswith(LOST)}
        kept |= {"RECONCILER_API_URL": api_url or self.installation.api_url, "NO_COLOR": "1", "COLUMNS": "200"}
        kept["RECONCILER_TOKEN"] = token or self.owner.token
        if concurrency := os.environ.get("RECONCILER_ACCEPTANCE_CONCURRENCY"):
            kept["RECONCILER_CONCURRENCY"] = concurrency
        return subprocess.Popen(
            [program, *ACME.sub(self.name, line).split()],
            cwd=self.folder,
            env=kept,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def end(self, process: "subprocess.Popen[str]") -> Ended:
        """Wait for the end of a command; no token may be in its outputs."""
        with process:
            out, err = process.communicate()
        assert not [user.name for user in self.users if user.token and user.token in out + err]
        texts = (NUMBER.sub("N", text.replace(self.name, "acme")) for text in (out, err))
        return Ended(process.returncode, *texts)

    def let_pass(self, seconds: int) -> None:
        """Wait until the service's clock has gone on; a sandbox with a clock of its own goes on at each write."""
        begun = now = self._write_and_look_at_the_clock()
        while now - begun < timedelta(seconds=seconds):
            before, now = now, self._write_and_look_at_the_clock()
            if now == before:
                sleep(1)

    def _write_and_look_at_the_clock(self) -> datetime:
        answer = self.ask("PUT", f"groups/{self.ids['']}", {"description": secrets.token_hex(4)})
        return parsedate_to_datetime(answer.headers.get("date") or formatdate(usegmt=True))

    def remove(self) -> None:
        """Delete what was made: the group and, with its only owner, all that is left of it."""
        if "" in self.ids:
            self.installation.ask("DELETE", f"groups/{self.ids['']}")
        accounts = self.installation.ask("GET", "service_accounts?per_page=100")
        for account in accounts.json() if accounts.is_success else ():
            if account["username"].startswith(self.name):
                self.users.append(User(account["id"], account["username"]))
        for user in self.users:
            self.installation.ask("DELETE", f"users/{user.id}?hard_delete=true")
        self.installation.left += [f"users/{user.id}" for user in self.users]
        self.installation.left += [f"groups/{self.ids['']}"] if "" in self.ids else []


def still_there(installation: Installation, paths: list[str]) -> list[str]:
    """Return those of the paths at which the service still shows something."""
    return [path for path in paths if installation.ask("GET", path).status_code != httpx.codes.NOT_FOUND]


def wait_for_removal(installation: Installation) -> list[str]:
    """Wait until the service's jobs have removed what was deleted; return what is left."""
    end, left = monotonic() + JOBS, installation.left
    while (left := still_there(installation, left)) and monotonic() < end:
        sleep(2)
    return left
