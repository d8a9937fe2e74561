"""`backup`: the service's own export of a group, whole or not at all, and without a secret where it does not belong."""

import gzip
import json
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from reconciler.errors import BadAnswer, NotFound, OutputFailed, ServiceError, Stopped, Unreachable, Unsendable
from reconciler.service import Client
from reconciler.service.backup import PAUSE, Backup, back_up
from tests.canned import answer, canned
from tests.cli_runner import CliRunner
from tests.limits import no_file_longer_than

ARCHIVE = gzip.compress(b"the group", mtime=0)
LOOK = "GET groups/acme/export/download"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("reconciler.service.backup.EARLY", (0, 3, 10))


def given(cli_runner: CliRunner, dialect: str = "deployed", **exports: Any) -> None:
    """Let ada own the group acme, and exports be as told."""
    cli_runner.service()
    state = cli_runner.sandbox.state()
    state["groups"][0]["members"] = [{"user": "ada", "role": "owner"}]
    state["instance"] |= {"dialect": dialect, "group_exports": exports}
    cli_runner.sandbox.replace_state(state)
    cli_runner.sandbox.clear_log()


def asked(cli_runner: CliRunner) -> list[str]:
    """Return the requests so far with their statuses, and forget them."""
    log = cli_runner.sandbox.log()
    cli_runner.sandbox.clear_log()
    return [f"{each['method']} {each['target'].removeprefix('/api/v4/')} {each['status']}" for each in log]


@contextmanager
def client(cli_runner: CliRunner) -> Iterator[Client]:
    with Client(cli_runner.sandbox.api_url, "ada-token") as found:
        yield found


def saved(service: Client, *, minutes: int = 30, stops: bool = False) -> tuple[Backup, list[float]]:
    """Back up acme without waiting for real; return the backup and the waits."""
    waits: list[float] = []

    def pause(seconds: float) -> bool:
        waits.append(seconds)
        return stops

    return back_up("acme", Path("acme.gz"), service, seconds=60 * minutes, pause=pause), waits


def test_the_archive_of_a_group_is_a_file_of_our_own(cli_runner: CliRunner, dialect: str) -> None:
    given(cli_runner, dialect)
    done = cli_runner("backup --group acme --to backups/acme.tar.gz")
    content = Path("backups/acme.tar.gz").read_bytes()
    assert (done.code, done.err) == (0, "")
    begin = f"backups/acme.tar.gz: {len(content)} bytes, SHA-256 {sha256(content).hexdigest()}, exported 20"
    assert done.out.startswith(begin)
    assert done.out.endswith(" UTC\n")
    assert stat.S_IMODE(Path("backups/acme.tar.gz").stat().st_mode) == 0o600
    assert [each["path"] for each in json.loads(gzip.decompress(content))["groups"]] == ["acme", "acme/tools"]
    assert asked(cli_runner) == ["POST groups/acme/export 202", f"{LOOK} 200"]

    # replaced by the next one, under a name that says little
    Path("acme").write_text("old")
    again = cli_runner("backup --group acme --to acme --wait 1m")
    assert (again.code, again.out) == (1, "")  # the service allows one look a minute
    assert Path("acme").read_text() == "old"
    assert [line.partition(";")[0] for line in again.err.splitlines()] == [
        "the archive is compressed: a name that ends in .tar.gz says so, and group imports need it",
        f"reconciler: {LOOK}: no new archive after 0 s: 429 This endpoint has been requested too many times. Try again "
        "later.",
    ]
    assert sorted(path.name for path in Path().glob("*")) == ["acme", "backups"]


def test_an_export_that_takes_a_while_is_looked_for_once_a_minute(cli_runner: CliRunner) -> None:
    given(cli_runner, looks=2, downloads_per_minute=0)
    with client(cli_runner) as service:
        with pytest.raises(NotFound, match="404 Not found or has expired"):
            service.download("groups/acme/export/download", lambda _headers: None)
        cli_runner.sandbox.clear_log()
        found, waits = saved(service)
        assert (found.is_new, waits) == (True, [0, 3, 10])
        assert asked(cli_runner) == ["POST groups/acme/export 202", f"{LOOK} 404", f"{LOOK} 404", f"{LOOK} 200"]
        with pytest.raises(Stopped, match="the run was stopped before the archive was ready"):
            saved(service, stops=True)
        # later once a minute, and at once so where the service takes no more than one look a minute
        given(cli_runner, looks=4, downloads_per_minute=0)
        assert saved(service)[1] == [0, 3, 10, PAUSE, PAUSE]
        given(cli_runner, looks=2, downloads_per_minute=1)
        with pytest.raises(ServiceError, match="no new archive after 125 s: 429"):
            saved(service, minutes=3)


def test_an_export_that_fails_is_given_up_in_time(cli_runner: CliRunner) -> None:
    given(cli_runner, fails=True, downloads_per_minute=0)
    with client(cli_runner) as service, pytest.raises(ServiceError) as failure:
        saved(service, minutes=3)
    assert str(failure.value) == (
        f"{LOOK}: no new archive after 135 s: 404 The group export file is not available yet; the service reports a "
        "failed export by mail only: look there, or wait longer with --wait"
    )
    assert not Path("acme.gz").exists()


def test_who_does_not_own_the_group_is_refused_before_any_look(cli_runner: CliRunner) -> None:
    given(cli_runner)
    state = cli_runner.sandbox.state()
    state["groups"][0]["members"] = [{"user": "ada", "role": "maintainer"}]
    cli_runner.sandbox.replace_state(state)
    done = cli_runner("backup --group acme --to acme.tar.gz")
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        "reconciler: POST groups/acme/export: 403 Forbidden; an export takes the role Owner in group acme\n"
    )


ACCEPTED = answer("202 Accepted", "{}", date="Sat, 21 Nov 2026 10:00:00 GMT")


def ready(at: str = "", tag: str = "", content: bytes = ARCHIVE) -> bytes:
    headers = {"last-modified": f"Sat, 21 Nov 2026 {at} GMT"} if at else {}
    return answer("200 OK", content, **headers, **({"etag": tag} if tag else {}))


@pytest.mark.parametrize(
    ("answers", "looks", "is_new"),
    [
        ([ready("10:00:00")], 1, True),
        ([ready("09:00:00", "a"), ready("09:00:00", "a"), ready("10:02:00", "b")], 3, True),
        ([ready(tag="a"), ready(tag="b")], 2, True),
        ([ready("09:58:00", "a"), answer("404 Not Found", "{}"), ready("09:58:00", "a")], 3, True),
        ([ready(), ready()], 2, False),
        ([ready("09:58:00", "a"), ready("09:58:00", "a")], 2, False),
        ([ready("10:00:01")[:-4], answer("503 Service Unavailable", "{}"), ready("10:00:01")], 3, True),
    ],
)
def test_an_archive_of_before_is_told_apart(answers: list[bytes], looks: int, is_new: bool) -> None:
    with canned(ACCEPTED, *answers) as server, Client(server.api_url, "ada-token") as service:
        found, waits = saved(service)
    assert (len(waits), found.is_new, Path("acme.gz").read_bytes()) == (looks, is_new, ARCHIVE)


def test_only_an_archive_of_before_is_no_backup(cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    with canned(ACCEPTED, ready("09:00:00", "a")) as server:
        monkeypatch.setenv("RECONCILER_API_URL", server.api_url)
        done = cli_runner("backup --group acme --to acme.tar.gz --wait 2s")
    assert (done.code, done.err.partition("; the service")[0]) == (
        1,
        f"reconciler: {LOOK}: no new archive after 0 s; the archive of 2026-11-21 09:00:00 UTC is still available",
    )


def test_what_may_be_the_archive_of_before_is_said_to_be(
    cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reconciler.service.backup.PAUSE", 0)
    monkeypatch.setattr("reconciler.service.backup.EARLY", (0, 0))
    with canned(ACCEPTED, answer("500 Oops", "{}"), ready(), ready()) as server:
        monkeypatch.setenv("RECONCILER_API_URL", server.api_url)
        done = cli_runner("backup --group acme --to acme.tar.gz")
    assert done.out == (
        f"acme.tar.gz: {len(ARCHIVE)} bytes, SHA-256 {sha256(ARCHIVE).hexdigest()}; it may be the archive of an earlier "
        "export\n"
    )
    assert done.err == "The archive is not ready; looking again, later every 0 s, for 30m at most.\n"


def test_a_storage_gets_no_token_and_its_address_is_never_shown() -> None:
    with canned(ready("10:00:00")) as storage:
        place = storage.api_url.replace("/api/v4", "/exports/acme?Signature=s3cr3t%2Fx")
        moved = answer("302 Found", location=place)
        with canned(ACCEPTED, moved) as server, Client(server.api_url, "ada-token") as service:
            found, _ = saved(service)
    assert found.is_new
    [request] = storage.requests
    assert request.startswith("GET /exports/acme?Signature=s3cr3t%2Fx HTTP/1.1\r\n")
    assert "token" not in request.lower()


@pytest.mark.parametrize(
    ("place", "error", "told"),
    [
        (
            "https://storage.example.com/x?sig=s3cr3t",
            Unsendable,
            "GET storage.example.com: the proxy of the environment",
        ),
        ("http://storage.example.com/x?sig=s3cr3t", Unsendable, "GET storage.example.com: .* only https is followed"),
        ("https://[x/?sig=s3cr3t", Unsendable, "GET elsewhere: the service redirects to an invalid URL"),
        ("{here}/gone?sig=s3cr3t", NotFound, "GET 127.0.0.1: 404 gone"),
        ("https://127.0.0.1:1/x?sig=s3cr3t", Unreachable, "GET 127.0.0.1: https://127.0.0.1:1 cannot be reached: "),
    ],
)
def test_a_redirect_that_leads_nowhere_names_the_host_alone(
    place: str, error: type[ServiceError], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("https_proxy", "socks5://127.0.0.1:1")
    monkeypatch.setitem(sys.modules, "socksio", None)
    monkeypatch.setenv("no_proxy", "")
    with canned(answer("404 Not Found", '{"message": "gone"}')) as storage:
        here = storage.api_url.removesuffix("/api/v4")
        moved = answer("302 Found", location=place.format(here=here))
        with canned(moved) as server, Client(server.api_url, "ada-token") as service:
            with pytest.raises(error, match=told) as failure:
                service.download("groups/acme/export/download", lambda _headers: None)
    assert "s3cr3t" not in f"{failure.value} {failure.value!r}"


def unmeasured(content: bytes, **headers: str) -> bytes:
    """Return an answer that does not say how long it is: it ends with the connection."""
    head, _, _ = answer("200 OK", b"", **headers).partition(b"content-length")
    return head + b"connection: close\r\n\r\n" + content


LONG = gzip.compress(b"".join(sha256(bytes([each])).digest() for each in range(200)), mtime=0)
HIGH = gzip.compress(bytes(2**22 + 5), mtime=0)


@pytest.mark.parametrize(
    ("content", "encoded", "fault"),
    [
        pytest.param(LONG[:3000], False, "it ends too early", id="half"),
        pytest.param(LONG[:-1], False, "it ends too early", id="all but a byte"),
        pytest.param(HIGH[:-8], False, "it ends too early", id="all but its checksum"),
        pytest.param(ARCHIVE + LONG[:3000], False, "it ends too early", id="half of a second member"),
        pytest.param(LONG[:1000] + bytes(9) + LONG[1009:], False, "Error -3 while decompressing", id="changed"),
        pytest.param(ARCHIVE + b"<html>", False, "Error -3 while decompressing", id="a page behind it"),
        pytest.param(gzip.compress(LONG)[:3000], True, "", id="half of a packed response"),
    ],
)
def test_half_an_archive_never_replaces_the_one_of_yesterday(content: bytes, encoded: bool, fault: str) -> None:
    Path("acme.gz").write_text("yesterday")
    broken = unmeasured(content, **({"content_encoding": "gzip"} if encoded else {}))
    with canned(ACCEPTED, answer("404 Not Found", "{}"), broken) as server:
        with Client(server.api_url, "ada-token") as service, pytest.raises(ServiceError) as failure:
            saved(service, minutes=2)
    assert str(failure.value).startswith(f"{LOOK}: no new archive after ")
    assert fault in str(failure.value)
    assert [(path.name, path.read_text()) for path in Path().glob("*")] == [("acme.gz", "yesterday")]


@pytest.mark.parametrize("content", [LONG, HIGH, ARCHIVE + HIGH + LONG, LONG + bytes(512)], ids=len)
def test_an_archive_is_whole_if_all_its_members_are(content: bytes) -> None:
    half = len(content) // 2
    with canned(
        ACCEPTED, unmeasured(content[:half]), unmeasured(content, etag="a"), unmeasured(content, etag="b")
    ) as server:
        with Client(server.api_url, "ada-token") as service:
            found, _ = saved(service)
    assert (found.size, Path("acme.gz").read_bytes()) == (len(content), content)


def test_what_is_no_archive_or_not_whole_leaves_the_old_file() -> None:
    Path("acme.gz").write_text("old")
    page = ready("10:00:00", content=b"<html>Sign in</html>")
    for broken, error in ((page, BadAnswer), (ready("10:00:00", content=b""), BadAnswer)):
        with canned(ACCEPTED, broken) as server, Client(server.api_url, "ada-token") as service:
            with pytest.raises(error, match="the response is no archive"):
                saved(service)
    torn = ready("10:00:00")[:-1]
    with canned(ACCEPTED, torn) as server, Client(server.api_url, "ada-token") as service:
        with pytest.raises(ServiceError, match="no new archive after 0 s: the response was lost"):
            saved(service, minutes=0)
    large = ready("10:00:00", content=ARCHIVE + bytes(10_000))
    with canned(ACCEPTED, large) as server, Client(server.api_url, "ada-token") as service, no_file_longer_than(5_000):
        with pytest.raises(OutputFailed, match=r"acme.gz: File too large"):
            saved(service)
    small = ready("10:00:00")
    with canned(ACCEPTED, small) as server, Client(server.api_url, "ada-token") as service, no_file_longer_than(5):
        with pytest.raises(OutputFailed, match=r"acme.gz: File too large"):
            saved(service)
    with canned(ACCEPTED, small[:-1]) as server, Client(server.api_url, "ada-token") as service, no_file_longer_than(5):
        with pytest.raises(OutputFailed, match=r"acme.gz: File too large"):
            saved(service)
    assert Path("acme.gz").read_text() == "old"
    assert [path.name for path in Path().glob("*acme*")] == ["acme.gz"]
    assert list(Path().glob(".partial*")) == []
