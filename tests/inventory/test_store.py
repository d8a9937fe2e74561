"""The branch of the list on a git server: who asks for it with which token, and what happens if it moves."""

import os
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest

from reconciler.errors import ConfigurationError, InventoryNotStored, InventoryUnreadable
from reconciler.memory.apply_log import Apply
from reconciler.memory.inventory import Inventory, inventory_text
from reconciler.memory.remotes import Login, Person, Remote, checkout_remote, in_job, job_remote, starter
from reconciler.memory.store import (
    INVENTORY_BRANCH,
    Distant,
    InventoryPlace,
    Store,
    Stored,
    checked_branch,
    open_place,
    own_identity,
)
from tests.fleet.repository import NOBODY, Repository, repository
from tests.inventory.git_server import REPOSITORY, GitServer, git_server
from tests.inventory.test_absence import milestone
from tests.inventory.test_text import FIRST, SERVICE
from tests.service.test_connection import LOOPBACK

KNOWN = ("milestones",)
WHEN = datetime(2026, 12, 1, 10, tzinfo=UTC)
BOT = Person("project_7_bot", "bot@example.com")
MESSAGE = Apply(
    when=WHEN, counts={"created": 3, "updated": 1, "deleted": 0}, manifests=FIRST, service=SERVICE, result=0
)


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[GitServer]:
    """A git server, and a home without any configuration."""
    for name in NOBODY:
        monkeypatch.delenv(name, raising=False)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    with git_server(tmp_path / "served") as made:
        yield made


@pytest.fixture
def checkout(tmp_path: Path) -> Repository:
    """The repository of the manifests, with one commit."""
    made = repository(tmp_path / "checkout")
    made.commit()
    return made


def job(server: GitServer, **more: str) -> dict[str, str]:
    """Return the variables of a CI job."""
    predefined = {
        "GITLAB_CI": "true",
        "CI_SERVER_URL": server.url,
        "CI_PROJECT_PATH": REPOSITORY.removesuffix(".git"),
        "CI_JOB_TOKEN": "job-token",
        "GITLAB_USER_NAME": "Ada",
        "GITLAB_USER_EMAIL": "ada@example.com",
    }
    return predefined | more


def remote_of(environment: Mapping[str, str], api_url: str = "", **more: str) -> Remote:
    settings = {"api_token": "", "ca_file": str(LOOPBACK), **more}
    return job_remote(environment, api_url=api_url, user=lambda: BOT, **settings)  # type: ignore[arg-type]  # only texts


class Waits(list[float]):
    """A clock that only pauses move, and the pauses."""

    def __call__(self) -> float:
        return sum(self)


def store(place: InventoryPlace, waits: Waits | None = None) -> Store:
    waits = Waits() if waits is None else waits
    return Store(place, SERVICE, KNOWN, waits.append, waits, Random(7))  # noqa: S311 - nothing secret


def adding(number: int) -> Callable[[Inventory], Inventory]:
    """Return a change that adds a line."""
    line = milestone(number, f"m{number}")
    return lambda inventory: replace(inventory, objects={**inventory.objects, line.key: line})


def names(inventory: Inventory) -> list[str]:
    return sorted(str(line.name) for line in inventory.objects.values())


def write_once(checkout: Repository, remote: Remote, number: int = 1, message: Apply = MESSAGE) -> str:
    with open_place(checkout.folder, INVENTORY_BRANCH, remote) as place:
        its = store(place)
        return its.write(its.read(), adding(number), message)


@pytest.mark.untraced
def test_a_job_fetches_with_its_own_token_and_pushes_with_the_push_token(
    server: GitServer, checkout: Repository
) -> None:
    environment = job(server, RECONCILER_PUSH_TOKEN="push-token")
    remote = remote_of(environment)
    message = replace(
        MESSAGE, author="Ada", author_email="ada@example.com", job="https://x/-/jobs/1", result=3, canary="acme/a"
    )
    commit = write_once(checkout, remote, message=message)
    assert server.users() == ["fetch gitlab-ci-token:job-token", "push reconciler:push-token"]
    assert server.last() == commit
    assert server.git("show", "-s", "--format=%an %ae %at %cn %ce|%B", commit).splitlines() == [
        "Ada ada@example.com 1796119200 reconciler |apply: 3 created, 1 updated (aaaaaaa)",
        "",
        f"Manifests: {FIRST}",
        f"Service: {SERVICE}",
        "Result: 3",
        "Job: https://x/-/jobs/1",
        "Canary: acme/a",
    ]
    assert server.git("ls-tree", "--name-only", commit) == "inventory.jsonl"
    with open_place(checkout.folder, INVENTORY_BRANCH, remote) as place:
        stored = store(place).read()
        assert (stored.commit, names(stored.inventory)) == (commit, ["m1"])
        assert store(place).write(stored, adding(2), MESSAGE) == server.last()
    assert server.git("rev-list", "--count", server.last()) == "2"
    assert server.git("cat-file", "blob", f"{server.last()}:inventory.jsonl").splitlines()[2:] == [
        '{"target": "project 7", "section": "milestones", "name": "m2", "id": 2, "at": 0}'
    ]


@pytest.mark.untraced
def test_each_token_is_tried_in_turn_until_one_is_not_refused(server: GitServer, checkout: Repository) -> None:
    server.tokens |= {"api-token"}
    server.readers = {"job-token"}
    environment = job(server, RECONCILER_PUSH_TOKEN="expired-token")
    write_once(checkout, remote_of(environment, f"{server.url}/api/v4", api_token="api-token"))
    pushes = [each for each in server.users() if each.startswith("push")]
    assert pushes == ["push reconciler:expired-token", "push reconciler:api-token"]
    assert server.git("show", "-s", "--format=%cn", server.last()) == "project_7_bot"


@pytest.mark.untraced
def test_no_other_server_gets_the_token_of_the_api(server: GitServer, checkout: Repository) -> None:
    server.readers = {"job-token"}
    remote = remote_of(job(server), "https://gitlab.example.com/api/v4", api_token="api-token")
    with pytest.raises(InventoryNotStored) as raised:
        write_once(checkout, remote)
    assert server.users() == ["fetch gitlab-ci-token:job-token", "push gitlab-ci-token:job-token"]
    assert str(raised.value) == (
        "the inventory could not be stored: with CI_JOB_TOKEN: unable to access "
        f"'{server.remote}/': The requested URL returned error: 403; "
        "what this apply created is not known as ours: run apply again once that is fixed"
    )
    assert raised.value.exit_code == 3


def test_a_refused_fetch_is_told_for_each_token_and_shows_none(server: GitServer, checkout: Repository) -> None:
    server.tokens.clear()
    remote = remote_of(job(server, RECONCILER_PUSH_TOKEN="push-token"))
    with open_place(checkout.folder, INVENTORY_BRANCH, remote) as place, pytest.raises(InventoryUnreadable) as raised:
        store(place).read()
    assert str(raised.value) == (
        f"the inventory cannot be read: with CI_JOB_TOKEN: Authentication failed for '{server.remote}/'; "
        f"with RECONCILER_PUSH_TOKEN: Authentication failed for '{server.remote}/'"
    )
    assert "push-token" not in repr(remote)


@pytest.mark.untraced
def test_a_server_without_push_options_is_asked_once_more_without(server: GitServer, checkout: Repository) -> None:
    server.git("config", "receive.advertisePushOptions", "false")
    commit = write_once(checkout, remote_of(job(server)))
    assert server.last() == commit


@pytest.mark.untraced
def test_the_push_skips_pipelines(server: GitServer, checkout: Repository) -> None:
    hook = server.folder / REPOSITORY / "hooks" / "pre-receive"
    hook.write_text('#!/bin/sh\necho "$GIT_PUSH_OPTION_0" > options\n')
    hook.chmod(0o755)
    write_once(checkout, remote_of(job(server)))
    assert (server.folder / REPOSITORY / "options").read_text() == "ci.skip\n"


def test_a_redirect_is_not_followed(tmp_path: Path, server: GitServer, checkout: Repository) -> None:
    with git_server(tmp_path / "other") as other:
        server.redirect = other.url
        with open_place(checkout.folder, INVENTORY_BRANCH, remote_of(job(server))) as place:
            with pytest.raises(InventoryUnreadable):
                store(place).read()
        assert other.asked == []


@pytest.mark.untraced
def test_no_other_host_gets_a_token_whatever_the_checkout_and_the_environment_say(
    tmp_path: Path, server: GitServer, checkout: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Plain git falls into the trap that is shown first: it sends the token to the other host."""
    trace = tmp_path / "trace"
    hook = checkout.folder / ".git" / "hooks" / "pre-push"
    hook.write_text(f"#!/bin/sh\ntouch {trace}\n")
    hook.chmod(0o755)
    with git_server(tmp_path / "other") as other:
        checkout.git("config", f"url.{other.url}/.insteadOf", f"{server.url}/")
        helper = "!echo username=x; echo password=push-token; :"
        careless = ["-c", f"credential.helper={helper}", "-c", "http.sslVerify=false", "push", server.remote, "main"]
        checkout.git(*careless)
        assert other.users() == ["push x:push-token"]
        assert trace.exists()
        trace.unlink()
        other.asked.clear()
        settings = {
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": f"url.{other.url}/.insteadOf",
            "GIT_CONFIG_VALUE_0": server.url,
        }
        for name, value in {**settings, "GIT_DIR": str(checkout.folder / ".git"), "GIT_SSH_COMMAND": "false"}.items():
            monkeypatch.setenv(name, value)
        write_once(checkout, remote_of(job(server, RECONCILER_PUSH_TOKEN="push-token")))
        assert other.asked == []
        assert not trace.exists()
        assert server.last()


def test_a_branch_that_has_moved_gets_our_change_on_top(server: GitServer, checkout: Repository) -> None:
    remote, waits = remote_of(job(server)), Waits()
    with open_place(checkout.folder, INVENTORY_BRANCH, remote) as place:
        ours = store(place, waits)
        stored = ours.read()
        server.before_push = lambda: write_once(checkout, remote, 2)
        ours.write(stored, adding(1), MESSAGE)
        assert names(ours.read().inventory) == ["m1", "m2"]
    assert len(waits) == 1
    assert server.git("rev-list", "--count", server.last()) == "2"


class Contested:
    """A place whose branch somebody else has always just changed."""

    branch = INVENTORY_BRANCH

    def __init__(self, refusal: str = "the branch moved") -> None:
        self.tries, self.refusal = 0, refusal

    def last(self) -> str:
        return f"{self.tries:040x}"

    @property
    def repository(self) -> "Contested":
        return self

    def run(self, arguments: Sequence[str], sent: bytes = b"") -> "subprocess.CompletedProcess[bytes]":
        shown = {
            "ls-tree": b"100644 blob aa\tinventory.jsonl\0",
            "cat-file": inventory_text(Inventory(SERVICE)).encode(),
        }
        return subprocess.CompletedProcess([], 0, shown[arguments[0]], sent)

    def put(self, _text: str, _parent: str, _message: Apply) -> tuple[str, str]:
        self.tries += 1
        return "", self.refusal


def test_ten_tries_are_made_and_no_more() -> None:
    contested, waits = Contested(), Waits()
    with pytest.raises(InventoryNotStored, match="others changed the branch each time; the last refusal: the branch"):
        store(contested, waits).write(store(contested).read(), adding(1), MESSAGE)
    assert contested.tries == 10
    assert max(waits) <= 8
    assert len({*waits}) == len(waits)


def test_no_try_begins_after_two_minutes() -> None:
    contested, waits = Contested(), Waits()
    slow = replace(store(contested, waits), clock=lambda: 50 * contested.tries + sum(waits))
    with pytest.raises(InventoryNotStored):
        slow.write(store(contested).read(), adding(1), MESSAGE)
    assert contested.tries == 3


def test_a_branch_that_cannot_be_fetched_again_is_told(server: GitServer, checkout: Repository) -> None:
    with open_place(checkout.folder, INVENTORY_BRANCH, remote_of(job(server))) as place:
        ours = store(place)
        stored = ours.read()
        server.tokens.clear()
        with pytest.raises(InventoryNotStored) as raised:
            ours.write(stored, adding(1), MESSAGE)
    failed = f"with CI_JOB_TOKEN: Authentication failed for '{server.remote}/'"
    assert str(raised.value) == (
        f"the inventory could not be stored: {failed}; then the inventory cannot be read: {failed}; what this apply "
        "created is not known as ours: run apply again once that is fixed"
    )


def test_the_list_of_another_service_is_neither_used_nor_written(server: GitServer, checkout: Repository) -> None:
    with open_place(checkout.folder, INVENTORY_BRANCH, remote_of(job(server))) as place:
        theirs = replace(store(place), service="https://gitlab.example.org")
        theirs.write(theirs.read(), adding(1), MESSAGE)
        stored = store(place).read()
        assert (stored.other_service, stored.inventory) == ("https://gitlab.example.org", Inventory(SERVICE))
        with pytest.raises(InventoryNotStored, match=r"the branch has the list of https://gitlab\.example\.org"):
            store(place).write(stored, adding(1), MESSAGE)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"README.md": b""}, "the branch reconciler/applied contains other files than inventory.jsonl"),
        ({"inventory.jsonl": b"", "b": b""}, "the branch reconciler/applied contains other files than inventory.jsonl"),
        ({"inventory.jsonl": b"\xff"}, "inventory.jsonl on the branch reconciler/applied is not UTF-8 text"),
    ],
)
def test_a_branch_with_anything_else_is_not_read(checkout: Repository, files: dict[str, bytes], said: str) -> None:
    checkout.git("switch", "--quiet", "--orphan", INVENTORY_BRANCH)
    for name, text in files.items():
        (checkout.folder / name).write_bytes(text)
    checkout.commit()
    checkout.git("switch", "--quiet", "main")
    with open_place(checkout.folder, INVENTORY_BRANCH, None) as place, pytest.raises(InventoryUnreadable) as raised:
        store(place).read()
    assert said in str(raised.value)


@pytest.mark.untraced
def test_without_a_remote_the_branch_is_in_this_repository(checkout: Repository) -> None:
    """No branch is checked out for it, and the working tree stays as it is."""
    checkout.git("config", "user.name", "Ada <Lovelace>")
    checkout.git("config", "user.email", "ada@example.com")
    identity = own_identity(checkout.folder)
    with open_place(checkout.folder, INVENTORY_BRANCH, None, identity) as place:
        ours = store(place)
        first = ours.read()
        assert (first.commit, first.inventory) == ("", Inventory(SERVICE))
        commit = ours.write(first, adding(1), replace(MESSAGE, counts={}, manifests="", reverts=FIRST))
        assert names(ours.read().inventory) == ["m1"]
        ours.write(first, adding(2), MESSAGE)
        assert names(ours.read().inventory) == ["m1", "m2"]
    assert checkout.git("show", "-s", "--format=%an %ae %cn|%B", commit).splitlines() == [
        "Ada Lovelace ada@example.com Ada Lovelace|apply: nothing changed",
        "",
        f"Service: {SERVICE}",
        "Result: 0",
        f"Reverts: {FIRST}",
    ]
    assert checkout.git("status", "--porcelain") == ""
    checkout.git("config", "user.name", "")
    assert own_identity(checkout.folder) == Person("reconciler", "")


def test_a_repository_that_takes_no_objects_is_told(checkout: Repository) -> None:
    with open_place(checkout.folder, INVENTORY_BRANCH, None) as place:
        first = store(place).read()
        os.replace(checkout.folder / ".git" / "objects", checkout.folder / "objects")  # noqa: PTH105 - a folder
        with pytest.raises(InventoryNotStored, match="git hash-object failed: "):
            store(place).write(first, adding(1), MESSAGE)


@pytest.mark.untraced
def test_elsewhere_git_knows_the_users_own_credentials(tmp_path: Path, server: GitServer, checkout: Repository) -> None:
    """Of the user's configuration nothing else is used, such as where tokens are sent instead."""
    checkout.git("remote", "add", "origin", server.remote)
    user = tmp_path / "home" / ".gitconfig"
    helper = "!echo username=ada; echo password=push-token; :"
    user.write_text(
        f'[credential]\n\thelper = "{helper}"\n[url "https://elsewhere.invalid/"]\n\tinsteadOf = {server.url}/\n'
    )
    remote = checkout_remote(checkout.folder, "origin", str(LOOPBACK))
    write_once(checkout, remote)
    assert server.users() == ["fetch ada:push-token", "push ada:push-token"]


@pytest.mark.untraced
def test_a_password_in_the_url_of_a_remote_is_taken_out_of_it(server: GitServer, checkout: Repository) -> None:
    checkout.git("remote", "add", "origin", server.remote.replace("https://", "https://ada:push%2Dtoken@"))
    remote = checkout_remote(checkout.folder, "origin", str(LOOPBACK))
    assert remote.url == server.remote
    write_once(checkout, remote)
    assert server.users() == ["fetch ada:push-token", "push ada:push-token"]


def test_a_remote_may_be_a_folder(tmp_path: Path, checkout: Repository) -> None:
    other = repository(tmp_path / "a folder, 100 %")
    checkout.git("remote", "add", "origin", "../a folder, 100 %")
    remote = checkout_remote(checkout.folder, "origin")
    with open_place(checkout.folder, INVENTORY_BRANCH, remote) as place:
        ours = store(place)
        commit = ours.write(ours.read(), adding(1), MESSAGE)
    assert other.git("rev-parse", INVENTORY_BRANCH) == commit


@pytest.mark.untraced
def test_a_repository_of_sha_256_is_understood(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        Repository(tmp_path / name).git("init", "--quiet", "--object-format=sha256", "--initial-branch", "main")
        Repository(tmp_path / name).commit()
    one = Repository(tmp_path / "one")
    one.git("remote", "add", "origin", str(tmp_path / "other"))
    with open_place(one.folder, INVENTORY_BRANCH, checkout_remote(one.folder, "origin")) as place:
        ours = store(place)
        assert len(ours.write(ours.read(), adding(1), MESSAGE)) == 64


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("git@gitlab.example.com:acme/settings.git", ""),
        ("ssh://git@gitlab.example.com/acme/settings.git", ""),
        ("file:///srv/git/settings.git", ""),
        ("http://gitlab.example.com/acme/settings.git", "inventory: remote: 'origin' has a URL of http; only https, ssh and file are used, and http with --insecure-http: git remote set-url origin URL"),
        ("git://gitlab.example.com/acme", "inventory: remote: 'origin' has a URL of git; only https, ssh and file are used, and http with --insecure-http: git remote set-url origin URL"),
        ("ext::sh -c date", "inventory: remote: 'origin' has a URL of ext; only https, ssh and file are used, and http with --insecure-http: git remote set-url origin URL"),
    ],
)  # fmt: skip
def test_only_three_protocols_are_used(checkout: Repository, url: str, said: str) -> None:
    checkout.git("remote", "add", "origin", url)
    if said:
        with pytest.raises(ConfigurationError) as raised:
            checkout_remote(checkout.folder, "origin")
        assert str(raised.value) == said
    else:
        assert checkout_remote(checkout.folder, "origin") == Remote(url)


def test_a_remote_that_does_not_exist_is_a_wrong_configuration(checkout: Repository) -> None:
    with pytest.raises(ConfigurationError) as raised:
        checkout_remote(checkout.folder, "upstream")
    assert str(raised.value) == (
        f"inventory: remote: {checkout.folder} has no remote 'upstream': add it (git remote add upstream URL), or "
        "name one that `git remote` lists; without `remote`, the inventory is kept in this clone alone"
    )
    with pytest.raises(ConfigurationError, match="inventory: remote: '--help' is not the name of a remote"):
        checkout_remote(checkout.folder, "--help")


def test_a_job_of_a_service_without_tls_sends_no_token() -> None:
    environment = {"GITLAB_CI": "true", "CI_SERVER_URL": "http://gitlab.example.com", "CI_PROJECT_PATH": "a/b"}
    assert in_job(environment)
    assert not in_job({**environment, "CI_PROJECT_PATH": ""})
    with pytest.raises(ConfigurationError) as raised:
        job_remote(environment, api_url="", api_token="")
    assert str(raised.value) == (
        "inventory: CI_SERVER_URL is not an https URL, and tokens are sent to no other without --insecure-http: "
        "http://gitlab.example.com/a/b.git"
    )
    bare = {**environment, "CI_SERVER_URL": "https://gitlab.example.com/"}
    assert job_remote(bare, api_url="", api_token="") == Remote("https://gitlab.example.com/a/b.git")


@pytest.mark.parametrize("name", ["reconciler/applied", "reconciler/eu-1/staging.v2", "reconciler/_x"])
def test_a_branch_below_reconciler_may_hold_the_list(name: str) -> None:
    assert checked_branch(name) == name


@pytest.mark.parametrize(
    "name",
    ["main", "reconciler", "reconciler/", "reconciler/a..b", "reconciler/.a", "reconciler/a/", "reconciler/a.lock",
     "reconciler/a b", "reconciler/*", "reconciler/a.", "xreconciler/a", "reconciler/-a", "reconciler/ä"],
)  # fmt: skip
def test_no_other_branch_may_hold_the_list(name: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        checked_branch(name)
    assert str(raised.value) == (
        f"inventory: branch: must be a name below reconciler/, such as reconciler/applied; not {name!r}"
    )


def test_the_author_is_who_started_the_job(server: GitServer) -> None:
    assert starter(job(server)) == Person("Ada", "ada@example.com")
    assert starter({"GITLAB_USER_NAME": "Ada"}) is None


def test_git_is_not_waited_for_for_ever(tmp_path: Path, checkout: Repository) -> None:
    """After a wait for one of the credentials, the others are not tried."""
    logins = (Login("TOKEN", "x", "secret"), Login("OTHER", "x", "secret"))
    remote = Remote(f"file://{tmp_path}", logins, logins)
    with open_place(checkout.folder, INVENTORY_BRANCH, remote) as place:
        assert isinstance(place, Distant)
        place.exchange.seconds = 0.0
        refusal = "with TOKEN: no response within 0 seconds"
        with pytest.raises(InventoryUnreadable) as unreadable:
            store(place).read()
        assert str(unreadable.value) == f"the inventory cannot be read: {refusal}"
        with pytest.raises(InventoryNotStored) as raised:
            store(place).write(Stored("", Inventory(SERVICE)), adding(1), MESSAGE)
        assert str(raised.value) == (
            f"the inventory could not be stored: {refusal}; then the inventory cannot be read: {refusal}; what this "
            "apply created is not known as ours: run apply again once that is fixed"
        )


def test_git_may_be_missing(checkout: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_place(checkout.folder, INVENTORY_BRANCH, None) as place:
        assert store(place).read().commit == ""
    top, remote = checkout.folder, Remote("file:///nowhere")
    assert subprocess.run(["git", "--version"], check=False).returncode == 0
    monkeypatch.setattr("reconciler.memory.store.git", lambda *_: subprocess.CompletedProcess([], 1, b"", b""))
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(ConfigurationError, match="inventory: git is not installed here"):
        with open_place(top, INVENTORY_BRANCH, remote):
            pass


def test_a_server_that_does_not_answer_as_git_does_is_no_list(
    server: GitServer, checkout: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it calls a commit would be an argument of git's."""
    odd = subprocess.CompletedProcess([], 0, b"--all\x1b\xff\trefs/heads/x\n", b"")
    monkeypatch.setattr("reconciler.memory.exchange.Exchange._with", lambda *_: odd)
    with (
        open_place(checkout.folder, INVENTORY_BRANCH, remote_of(job(server))) as place,
        pytest.raises(InventoryUnreadable, match=r"the remote does not answer as git does: --all\\u001b"),
    ):
        place.last()
