"""`reconciler note`: one note per name on a merge request, whatever others do at the same time."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

import pytest

from reconciler.errors import AnswerLost, BadAnswer, NotFound, ServerFailure
from reconciler.reports.keeping import Result, marker
from reconciler.reports.note import MergeRequest, post_note
from tests.canned import answer, canned
from tests.cli_runner import CliRunner
from tests.service.connecting import connected
from tests.states import a_small_service

NOTES = "/api/v4/projects/100/merge_requests/7/notes"
LIST = f"GET {NOTES}?order_by=created_at&sort=asc&activity_filter=only_comments&per_page=100&page=1"
MARKER = "<!-- reconciler note: plan -->"
VARIABLES = ("CI_JOB_NAME", "CI_PROJECT_ID", "RECONCILER_NOTE_TOKEN")
HOW = "set RECONCILER_NOTE_TOKEN to a token with the scope api that may comment there"


@pytest.fixture(autouse=True)
def _job(cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job of the pipeline of merge request 7."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CI_API_V4_URL", cli_runner.sandbox.api_url)
    monkeypatch.setenv("CI_MERGE_REQUEST_PROJECT_ID", "100")
    monkeypatch.setenv("CI_MERGE_REQUEST_IID", "7")
    cli_runner.service(merge_requests=[7])
    cli_runner.write("note.md", "## A plan\n")


def noted(cli_runner: CliRunner, *notes: dict[str, Any], **more: Any) -> None:
    """Begin with these notes on the merge request; by ada unless they say otherwise."""
    cli_runner.service(
        merge_requests=[7],
        merge_request_notes=[{"merge_request": 7, "author": "ada", **note} for note in notes],
        **more,
    )


def notes(cli_runner: CliRunner) -> list[tuple[str, str]]:
    """Return who wrote what on the merge request."""
    return [
        (note["author"], note["body"])
        for note in cli_runner.sandbox.state()["projects"][0].get("merge_request_notes", [])
    ]


def asked(cli_runner: CliRunner) -> list[str]:
    """Return the requests so far, and forget them."""
    log = cli_runner.sandbox.log()
    cli_runner.sandbox.clear_log()
    return [f"{each['method']} {each['target']}" for each in log]


def test_a_note_is_posted_then_updated_in_place_then_left_alone(cli_runner: CliRunner) -> None:
    done = cli_runner("note --file note.md --name plan")
    assert (done.code, done.out, done.err) == (0, "Note plan posted: 100!7\n", "")
    assert notes(cli_runner) == [("ada", f"{MARKER}\n\n## A plan")]
    assert cli_runner.sandbox.log()[-1]["body"] == {"body": f"{MARKER}\n\n## A plan"}
    assert asked(cli_runner) == [LIST, f"POST {NOTES}"]
    cli_runner.write("note.md", "## Another plan\n")
    assert cli_runner("note --file note.md --name plan").out == "Note plan updated: 100!7\n"
    assert notes(cli_runner) == [("ada", f"{MARKER}\n\n## Another plan")]
    assert asked(cli_runner) == [LIST, "GET /api/v4/user", f"PUT {NOTES}/1"]
    cli_runner.write("note.md", "## Another plan  \r\n\r\n")
    assert cli_runner("note --file note.md --name plan").out == "Note plan unchanged: 100!7\n"
    assert asked(cli_runner) == [LIST, "GET /api/v4/user"]


def test_each_name_has_a_note_of_its_own(cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cli_runner("note --file note.md").out == "Note reconciler posted: 100!7\n"
    monkeypatch.setenv("CI_JOB_NAME", "plan: [prod]")
    assert cli_runner("note --file note.md").out == "Note plan: [prod] posted: 100!7\n"
    assert cli_runner("note --file note.md").out == "Note plan: [prod] unchanged: 100!7\n"
    assert len(notes(cli_runner)) == 2


@pytest.mark.parametrize("name", ["--> <b>", "a--b", "a---", "ä\n", "-", ">"])
def test_a_name_cannot_end_the_comment_it_stands_in(name: str) -> None:
    inside = marker("note", name).removeprefix("<!-- ").removesuffix(" -->")
    assert not {"--", ">", "<", "\n"} & {inside[at : at + size] for at in range(len(inside)) for size in (1, 2)}
    assert marker("note", name) != marker("note", f"{name} ")


def test_names_that_begin_alike_are_not_the_same(cli_runner: CliRunner) -> None:
    noted(cli_runner, {"body": f"{marker('note', 'plan 1/5')}\n\nx"}, {"body": f"{marker('note', 'plan-b')}\n\nx"})
    assert cli_runner("note --file note.md --name plan").out == "Note plan posted: 100!7\n"


def test_only_ones_own_note_is_updated(cli_runner: CliRunner) -> None:
    """The marker counts neither in another user's note nor quoted within an own one."""
    others: list[dict[str, Any]] = [
        {"author": "bob", "body": f"{MARKER}\n\nmine now"},
        {"author": "ada", "body": f"> {MARKER}\n\nlook at this"},
        {"author": "ada", "body": f"{MARKER}\n\nadded", "system": True},
    ]
    noted(cli_runner, *others)
    assert cli_runner("note --file note.md --name plan").out == "Note plan posted: 100!7\n"
    assert asked(cli_runner) == [LIST, "GET /api/v4/user", f"POST {NOTES}"]
    cli_runner.write("note.md", "## Another plan")
    assert cli_runner("note --file note.md --name plan").out == "Note plan updated: 100!7\n"
    assert notes(cli_runner) == [
        *((each["author"], each["body"]) for each in others),
        ("ada", f"{MARKER}\n\n## Another plan"),
    ]


def test_a_note_is_found_behind_a_hundred_others_and_where_some_are_hidden(cli_runner: CliRunner) -> None:
    many = [{"author": "bob", "body": f"note {number}"} for number in range(120)]
    noted(cli_runner, {"author": "bob", "body": "secret", "internal": True}, *many, {"body": f"{MARKER}\n\nold"})
    state = cli_runner.sandbox.state()
    state["groups"][0]["members"] = [{"user": "ada", "role": "guest"}]
    state["projects"][0]["visibility"] = "public"
    cli_runner.sandbox.replace_state(state)
    assert cli_runner("note --file note.md --name plan").out == "Note plan updated: 100!7\n"
    assert asked(cli_runner) == [LIST, LIST.replace("&page=1", "&page=2"), "GET /api/v4/user", f"PUT {NOTES}/122"]


def test_of_notes_that_two_runs_have_posted_at_once_one_stays(cli_runner: CliRunner) -> None:
    bodies = [f"{MARKER}\n\none", f"{MARKER}\n\n## A plan"]
    noted(cli_runner, *({"body": body} for body in bodies))
    assert cli_runner("note --file note.md --name plan").out == "Note plan updated: 100!7\n"
    assert notes(cli_runner) == [("ada", f"{MARKER}\n\n## A plan")]
    assert asked(cli_runner) == [LIST, "GET /api/v4/user", f"PUT {NOTES}/1", f"DELETE {NOTES}/2"]
    noted(cli_runner, *({"body": body} for body in reversed(bodies)))
    assert cli_runner("note --file note.md --name plan").out == "Note plan updated: 100!7\n"
    assert asked(cli_runner) == [LIST, "GET /api/v4/user", f"DELETE {NOTES}/2"]
    assert cli_runner("note --file note.md --name plan").out == "Note plan unchanged: 100!7\n"


def test_a_project_may_be_named_by_its_path(cli_runner: CliRunner) -> None:
    assert (
        cli_runner("note --file note.md --project acme/api --merge-request 7").out
        == "Note reconciler posted: acme/api!7\n"
    )
    assert asked(cli_runner) == [each.replace("/100/", "/acme%2Fapi/") for each in (LIST, f"POST {NOTES}")]


@pytest.mark.untraced
@pytest.mark.parametrize("fault", ["reset-after", "truncate", "not-json", "hang-after,seconds=0.1"])
def test_a_note_whose_answer_is_lost_is_looked_for_before_it_is_posted_again(cli_runner: CliRunner, fault: str) -> None:
    cli_runner.sandbox.set_faults([f"{fault},method=POST"])
    done = cli_runner("note --file note.md --name plan")
    assert (done.code, done.out, done.err) == (0, "Note plan unchanged: 100!7\n", "")
    assert notes(cli_runner) == [("ada", f"{MARKER}\n\n## A plan")]
    assert asked(cli_runner) == [LIST, f"POST {NOTES}", LIST, "GET /api/v4/user"]


def test_a_note_that_was_not_posted_is_posted_again(cli_runner: CliRunner) -> None:
    cli_runner.sandbox.set_faults(["status=502,method=POST,times=2"])
    assert cli_runner("note --file note.md --name plan").out == "Note plan posted: 100!7\n"
    assert asked(cli_runner) == [LIST, f"POST {NOTES}"] * 3


def test_a_note_that_can_never_be_posted_is_told(cli_runner: CliRunner) -> None:
    cli_runner.sandbox.set_faults(["html,method=POST"])
    done = cli_runner("note --file note.md --name plan")
    assert (done.code, done.out) == (0, "")
    assert done.err == "No note posted: POST projects/100/merge_requests/7/notes: 502 Bad Gateway\n"
    assert asked(cli_runner) == [LIST, f"POST {NOTES}"] * 3


def test_an_update_whose_answer_is_lost_is_sent_again() -> None:
    """With its own clock, since the client waits before a retry."""
    found = '[{"id": 1, "body": "<!-- reconciler note: plan -->\\n\\nold", "author": {"id": 2}, "system": false}]'
    answers = [answer("200 OK", found, x_next_page=""), answer("200 OK", '{"id": 2}'), b"", answer("200 OK", "{}")]
    with canned(*answers) as server, connected(server.api_url) as client:
        assert post_note(client, MergeRequest("100", 7), "plan", "new") is Result.UPDATED
    assert [each.partition(" HTTP")[0].partition("?")[0] for each in server.requests] == [
        f"GET {NOTES}",
        "GET /api/v4/user",
        f"PUT {NOTES}/1",
        f"PUT {NOTES}/1",
    ]


class Interfering:
    """A client with another user who acts before each of its writes."""

    def __init__(self, client: Any, interfere: Any) -> None:
        self.get, self.visible = client.get, client.visible
        self._client, self._interfere = client, interfere

    def send(self, request: Any) -> Any:
        self._interfere(request)
        return self._client.send(request)


@contextmanager
def interfered(cli_runner: CliRunner, interfere: Any) -> Iterator[Interfering]:
    with connected(cli_runner.sandbox.api_url, token="ada-token") as client:
        yield Interfering(client, interfere)


def test_a_note_that_somebody_deletes_meanwhile_is_posted_anew(cli_runner: CliRunner) -> None:
    noted(cli_runner, {"body": f"{MARKER}\n\nold"})

    def delete(request: Any) -> None:
        if request.method == "PUT":
            noted(cli_runner)

    with interfered(cli_runner, delete) as board:
        assert post_note(board, MergeRequest("100", 7), "plan", "new") is Result.POSTED
    assert notes(cli_runner) == [("ada", f"{MARKER}\n\nnew")]


def test_a_note_that_another_run_deletes_meanwhile_is_no_trouble(cli_runner: CliRunner) -> None:
    noted(cli_runner, {"body": f"{MARKER}\n\nnew"}, {"body": f"{MARKER}\n\nold"})

    def delete(request: Any) -> None:
        assert request.method == "DELETE"
        noted(cli_runner, {"body": f"{MARKER}\n\nnew"})

    with interfered(cli_runner, delete) as board:
        assert post_note(board, MergeRequest("100", 7), "plan", "new") is Result.UPDATED


def test_a_merge_request_that_is_gone_meanwhile_is_told(cli_runner: CliRunner) -> None:
    noted(cli_runner, {"body": f"{MARKER}\n\nold"})
    with (
        interfered(cli_runner, lambda _request: cli_runner.service()) as board,
        pytest.raises(NotFound, match="404 MergeRequest"),
    ):
        post_note(board, MergeRequest("100", 7), "plan", "new")


def test_runs_at_the_same_time_leave_one_note_in_the_end(cli_runner: CliRunner) -> None:
    cli_runner.sandbox.set_latency(20)

    def run(text: str) -> None:
        with connected(cli_runner.sandbox.api_url, token="ada-token") as client:
            post_note(client, MergeRequest("100", 7), "plan", text)

    threads = [Thread(target=run, args=(f"by {number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    cli_runner.sandbox.set_latency(0)
    assert len(notes(cli_runner)) >= 1
    run("at last")
    assert notes(cli_runner) == [("ada", f"{MARKER}\n\nat last")]


@pytest.mark.parametrize(
    ("user", "said"),
    [
        ("[]", "GET user: unexpected response: the user has no numeric id"),
        ('{"id": null}', "GET user: unexpected response: the user has no numeric id"),
    ],
)
def test_a_user_without_a_number_is_no_answer(user: str, said: str) -> None:
    own = '{"id": 1, "body": "<!-- reconciler note: plan -->", "author": {"id": 2}, "system": false}'
    odd = f'[1, {{"id": "x"}}, {{"id": 3, "body": null}}, {own}]'
    with canned(answer("200 OK", odd, x_next_page=""), answer("200 OK", user)) as server:
        with connected(server.api_url) as client, pytest.raises(BadAnswer) as raised:
            post_note(client, MergeRequest("100", 7), "plan", "new")
    assert str(raised.value) == said


@pytest.mark.parametrize("lost", [AnswerLost, ServerFailure])
def test_a_board_that_loses_every_answer_is_given_up(lost: Any) -> None:
    sent = []

    class Losing:
        def get(self, path: str) -> Any:
            raise AssertionError(path)

        def visible(self, _path: str) -> list[Any]:
            return []

        def send(self, request: Any) -> Any:
            sent.append(request)
            raise lost(str(request), "lost")

    with pytest.raises(lost):
        post_note(Losing(), MergeRequest("100", 7), "plan", "new")
    assert len(sent) == 3


def test_what_the_service_answers_where_nothing_can_be_posted_is_told_with_advice(cli_runner: CliRunner) -> None:
    path = "projects/100/merge_requests/7/notes"
    state = a_small_service("deployed")
    state["projects"][0] |= {"merge_requests": [7], "archived": True}
    state["users"][1]["tokens"] = ["ada-token", {"token": "reader", "scopes": ["read_api"]}]
    cli_runner.sandbox.replace_state(state)
    target = "403 The request requires higher privileges than provided by the access token."
    cases = [
        ("ada-token", "7", f"POST {path}: 403 Forbidden; the token may not comment there: {HOW}"),
        ("reader", "7", f"POST {path}: {target}; the token may not comment there: {HOW}"),
        (
            "glcbt-x",
            "7",
            f"GET {path}: 401 Unauthorized; the token is not valid there (CI job tokens may not comment): {HOW}",
        ),
        (
            "ada-token",
            "8",
            f"GET {path.replace('/7/', '/8/')}: 404 MergeRequest Not Found; there is no such merge request, or the token "
            f"may not see it: {HOW}",
        ),
    ]
    for token, iid, said in cases:
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("RECONCILER_NOTE_TOKEN", token)
            done = cli_runner(f"note --file note.md --merge-request {iid}")
            assert (done.code, done.out, done.err) == (0, "", f"No note posted: {said}\n")
            done = cli_runner(f"note --file note.md --merge-request {iid} --strict --quiet")
            assert (done.code, done.out, done.err) == (1, "", f"No note posted: {said}\n")


def test_outside_the_pipeline_of_a_merge_request_nothing_is_posted(
    cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CI_MERGE_REQUEST_IID")
    done = cli_runner("note --file note.md")
    assert (done.code, done.out) == (0, "")
    assert done.err == (
        "No note posted: this is not the pipeline of a merge request: CI_MERGE_REQUEST_IID is not set; run the job where "
        "$CI_PIPELINE_SOURCE is merge_request_event, or give --merge-request\n"
    )
    assert cli_runner("note --file note.md --strict").code == 1
    monkeypatch.delenv("CI_MERGE_REQUEST_PROJECT_ID")
    done = cli_runner("note --file note.md --merge-request 7")
    assert done.err == (
        "No note posted: no project: neither CI_MERGE_REQUEST_PROJECT_ID nor CI_PROJECT_ID is set; give --project\n"
    )
    monkeypatch.setenv("CI_PROJECT_ID", "100")
    assert cli_runner("note --file note.md --merge-request 7").out == "Note reconciler posted: 100!7\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "note.md: No such file or directory; check the path"),
        ("", "the text is empty"),
        (" \n", "the text is empty"),
        (
            "x" * 1_000_000,
            "a note may have 1,000,000 characters, and this one has 1,000,032; --report markdown=FILE writes at most 60,000",
        ),
    ],
    ids=["missing", "empty", "blank", "long"],
)
def test_a_file_that_is_no_note_is_told_before_anything_is_asked(
    cli_runner: CliRunner, text: str | None, said: str
) -> None:
    (cli_runner.folder / "note.md").unlink()
    if text is not None:
        cli_runner.write("note.md", text)
    done = cli_runner("note --file note.md --name plan")
    assert (done.code, done.out, done.err) == (0, "", f"No note posted: {said}\n")
    assert asked(cli_runner) == []


def test_the_longest_note_goes(cli_runner: CliRunner) -> None:
    cli_runner.write("note.md", "x" * (1_000_000 - len(f"{MARKER}\n\n")))
    assert cli_runner("note --file note.md --name plan").out == "Note plan posted: 100!7\n"


def test_a_wrong_command_line_is_one_all_the_same(cli_runner: CliRunner) -> None:
    assert cli_runner("note").code == 64


def test_without_a_token_it_is_told_which(cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RECONCILER_TOKEN")
    done = cli_runner("note --file note.md")
    assert (done.code, done.out) == (0, "")
    assert done.err == (
        "No note posted: no token (CI job tokens may not comment, and pipelines of merge requests have no protected "
        f"variables): {HOW}\n"
    )


def test_a_token_for_notes_goes_before_the_usual_one_unless_a_flag_names_another(
    cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECONCILER_NOTE_TOKEN", "bob-token")
    assert cli_runner("note --file note.md --name plan").out == "Note plan posted: 100!7\n"
    cli_runner.write("token", "ada-token").chmod(0o600)
    assert cli_runner("note --file note.md --name plan --token-file token").out == "Note plan posted: 100!7\n"
    monkeypatch.setenv("RECONCILER_TOKEN_FILE", "token")
    assert cli_runner("note --file note.md --name plan").out == "Note plan unchanged: 100!7\n"
    assert [author for author, _ in notes(cli_runner)] == ["bob", "ada"]


def test_a_token_for_another_service_is_not_sent_to_that_of_the_job(
    cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECONCILER_API_URL", "https://managed.example.com/api/v4/")
    done = cli_runner("note --file note.md")
    assert (done.code, done.out) == (0, "")
    assert done.err == (
        f"No note posted: the token is for https://managed.example.com/api/v4, and the merge request is at "
        f"{cli_runner.sandbox.api_url}: {HOW}\n"
    )
    assert asked(cli_runner) == []
    monkeypatch.setenv("RECONCILER_NOTE_TOKEN", "bob-token")
    assert cli_runner("note --file note.md").out == "Note reconciler posted: 100!7\n"
    monkeypatch.delenv("RECONCILER_NOTE_TOKEN")
    done = cli_runner(f"note --file note.md --api-url {cli_runner.sandbox.api_url}")
    assert done.out == "Note reconciler posted: 100!7\n"


def test_elsewhere_than_in_ci_it_is_the_configured_service(
    cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CI_API_V4_URL")
    assert cli_runner("note --file note.md").out == "Note reconciler posted: 100!7\n"


def test_the_token_is_never_shown(cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECONCILER_NOTE_TOKEN", "glpat-very-secret")
    reflecting = answer("403 Forbidden", '{"message": "glpat-very-secret may not"}')
    with canned(reflecting) as server:
        done = cli_runner(f"note --file note.md --api-url {server.api_url} -vv")
    assert "very-secret" not in done.out + done.err
    assert "403 [a secret] may not" in done.err


def test_a_link_that_was_committed_is_not_posted(cli_runner: CliRunner) -> None:
    """The working directory is a checkout, and a link may lead to any file of the machine that runs the job."""
    secret = cli_runner.write("../secret", "glpat-secret")
    (cli_runner.folder / "link.md").symlink_to(secret)
    (cli_runner.folder / "folder").symlink_to(secret.parent)
    (cli_runner.folder / "inner").mkdir()
    (cli_runner.folder / "inner/deep.md").symlink_to(secret)
    cases = [
        ("link.md", "link.md"),
        (f"{cli_runner.folder}/link.md", "link.md"),
        ("./folder/secret", "folder"),
        ("inner/../folder/secret", "inner/../folder"),
        ("inner/deep.md", "inner/deep.md"),
    ]
    for file, link in cases:
        done = cli_runner("note --strict --file", file)
        said = f"No note posted: {file.removeprefix('./')}: {link} is a symbolic link; name the file itself\n"
        assert (done.code, done.out, done.err) == (1, "", said)
    assert asked(cli_runner) == []
    reading, writing = os.pipe()
    os.write(writing, b"## Through a pipe")
    os.close(writing)
    assert cli_runner(f"note --file /dev/fd/{reading}").out == "Note reconciler posted: 100!7\n"
    os.close(reading)
