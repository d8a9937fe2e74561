"""`reconciler note`: one note of a name on a merge request, whatever others do at the same time."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

import pytest

from reconciler.errors import AnswerLost, BadAnswer, NotFound, ServerFailure
from reconciler.gitops.notes import MergeRequest, Posting, marker, post_note
from tests.canned import answer, canned
from tests.desk import Desk
from tests.service.connecting import connected
from tests.states import a_small_service

NOTES = "/api/v4/projects/100/merge_requests/7/notes"
LIST = f"GET {NOTES}?order_by=created_at&sort=asc&activity_filter=only_comments&per_page=100&page=1"
MARKER = "<!-- reconciler note: plan -->"
VARIABLES = ("CI_JOB_NAME", "CI_PROJECT_ID", "RECONCILER_NOTE_TOKEN")
HOW = "set RECONCILER_NOTE_TOKEN to a token with the scope api that may comment there"


@pytest.fixture(autouse=True)
def _job(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job of the pipeline of merge request 7."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CI_API_V4_URL", desk.sandbox.api_url)
    monkeypatch.setenv("CI_MERGE_REQUEST_PROJECT_ID", "100")
    monkeypatch.setenv("CI_MERGE_REQUEST_IID", "7")
    desk.service(merge_requests=[7])
    desk.write("note.md", "## A plan\n")


def noted(desk: Desk, *notes: dict[str, Any], **more: Any) -> None:
    """Begin with these notes on the merge request; by ada unless they say otherwise."""
    desk.service(
        merge_requests=[7],
        merge_request_notes=[{"merge_request": 7, "author": "ada", **note} for note in notes],
        **more,
    )


def notes(desk: Desk) -> list[tuple[str, str]]:
    """Return who wrote what on the merge request."""
    return [
        (note["author"], note["body"]) for note in desk.sandbox.state()["projects"][0].get("merge_request_notes", [])
    ]


def asked(desk: Desk) -> list[str]:
    """Return the requests so far, and forget them."""
    log = desk.sandbox.log()
    desk.sandbox.clear_log()
    return [f"{each['method']} {each['target']}" for each in log]


def test_a_note_is_posted_then_updated_in_place_then_left_alone(desk: Desk) -> None:
    done = desk("note --file note.md --name plan")
    assert (done.code, done.out, done.err) == (0, "Note plan posted: 100!7\n", "")
    assert notes(desk) == [("ada", f"{MARKER}\n\n## A plan")]
    assert desk.sandbox.log()[-1]["body"] == {"body": f"{MARKER}\n\n## A plan"}
    assert asked(desk) == [LIST, f"POST {NOTES}"]
    desk.write("note.md", "## Another plan\n")
    assert desk("note --file note.md --name plan").out == "Note plan updated: 100!7\n"
    assert notes(desk) == [("ada", f"{MARKER}\n\n## Another plan")]
    assert asked(desk) == [LIST, "GET /api/v4/user", f"PUT {NOTES}/1"]
    desk.write("note.md", "## Another plan  \r\n\r\n")
    assert desk("note --file note.md --name plan").out == "Note plan unchanged: 100!7\n"
    assert asked(desk) == [LIST, "GET /api/v4/user"]


def test_each_name_has_a_note_of_its_own(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    assert desk("note --file note.md").out == "Note reconciler posted: 100!7\n"
    monkeypatch.setenv("CI_JOB_NAME", "plan: [prod]")
    assert desk("note --file note.md").out == "Note plan: [prod] posted: 100!7\n"
    assert desk("note --file note.md").out == "Note plan: [prod] unchanged: 100!7\n"
    assert len(notes(desk)) == 2


@pytest.mark.parametrize("name", ["--> <b>", "a--b", "a---", "ä\n", "-", ">"])
def test_a_name_cannot_end_the_comment_it_stands_in(name: str) -> None:
    inside = marker(name).removeprefix("<!-- ").removesuffix(" -->")
    assert not {"--", ">", "<", "\n"} & {inside[at : at + size] for at in range(len(inside)) for size in (1, 2)}
    assert marker(name) != marker(f"{name} ")


def test_names_that_begin_alike_are_not_the_same(desk: Desk) -> None:
    noted(desk, {"body": f"{marker('plan 1/5')}\n\nx"}, {"body": f"{marker('plan-b')}\n\nx"})
    assert desk("note --file note.md --name plan").out == "Note plan posted: 100!7\n"


def test_only_ones_own_note_is_updated(desk: Desk) -> None:
    """Somebody else may write the marker into a note of theirs; quoting it in one's own is no claim to it either."""
    others: list[dict[str, Any]] = [
        {"author": "bob", "body": f"{MARKER}\n\nmine now"},
        {"author": "ada", "body": f"> {MARKER}\n\nlook at this"},
        {"author": "ada", "body": f"{MARKER}\n\nadded", "system": True},
    ]
    noted(desk, *others)
    assert desk("note --file note.md --name plan").out == "Note plan posted: 100!7\n"
    assert asked(desk) == [LIST, "GET /api/v4/user", f"POST {NOTES}"]
    desk.write("note.md", "## Another plan")
    assert desk("note --file note.md --name plan").out == "Note plan updated: 100!7\n"
    assert notes(desk) == [
        *((each["author"], each["body"]) for each in others),
        ("ada", f"{MARKER}\n\n## Another plan"),
    ]


def test_a_note_is_found_behind_a_hundred_others_and_where_some_are_hidden(desk: Desk) -> None:
    many = [{"author": "bob", "body": f"note {number}"} for number in range(120)]
    noted(desk, {"author": "bob", "body": "secret", "internal": True}, *many, {"body": f"{MARKER}\n\nold"})
    state = desk.sandbox.state()
    state["groups"][0]["members"] = [{"user": "ada", "role": "guest"}]
    state["projects"][0]["visibility"] = "public"
    desk.sandbox.replace_state(state)
    assert desk("note --file note.md --name plan").out == "Note plan updated: 100!7\n"
    assert asked(desk) == [LIST, LIST.replace("&page=1", "&page=2"), "GET /api/v4/user", f"PUT {NOTES}/122"]


def test_of_notes_that_two_runs_have_posted_at_once_one_stays(desk: Desk) -> None:
    bodies = [f"{MARKER}\n\none", f"{MARKER}\n\n## A plan"]
    noted(desk, *({"body": body} for body in bodies))
    assert desk("note --file note.md --name plan").out == "Note plan updated: 100!7\n"
    assert notes(desk) == [("ada", f"{MARKER}\n\n## A plan")]
    assert asked(desk) == [LIST, "GET /api/v4/user", f"PUT {NOTES}/1", f"DELETE {NOTES}/2"]
    noted(desk, *({"body": body} for body in reversed(bodies)))
    assert desk("note --file note.md --name plan").out == "Note plan updated: 100!7\n"
    assert asked(desk) == [LIST, "GET /api/v4/user", f"DELETE {NOTES}/2"]
    assert desk("note --file note.md --name plan").out == "Note plan unchanged: 100!7\n"


def test_a_project_may_be_named_by_its_path(desk: Desk) -> None:
    assert (
        desk("note --file note.md --project acme/api --merge-request 7").out == "Note reconciler posted: acme/api!7\n"
    )
    assert asked(desk) == [each.replace("/100/", "/acme%2Fapi/") for each in (LIST, f"POST {NOTES}")]


@pytest.mark.parametrize("fault", ["reset-after", "truncate", "not-json", "hang-after,seconds=0.1"])
def test_a_note_whose_answer_is_lost_is_looked_for_before_it_is_posted_again(desk: Desk, fault: str) -> None:
    desk.sandbox.set_faults([f"{fault},method=POST"])
    done = desk("note --file note.md --name plan")
    assert (done.code, done.out, done.err) == (0, "Note plan unchanged: 100!7\n", "")
    assert notes(desk) == [("ada", f"{MARKER}\n\n## A plan")]
    assert asked(desk) == [LIST, f"POST {NOTES}", LIST, "GET /api/v4/user"]


def test_a_note_that_was_not_posted_is_posted_again(desk: Desk) -> None:
    desk.sandbox.set_faults(["status=502,method=POST,times=2"])
    assert desk("note --file note.md --name plan").out == "Note plan posted: 100!7\n"
    assert asked(desk) == [LIST, f"POST {NOTES}"] * 3


def test_a_note_that_can_never_be_posted_is_told(desk: Desk) -> None:
    desk.sandbox.set_faults(["html,method=POST"])
    done = desk("note --file note.md --name plan")
    assert (done.code, done.out) == (0, "")
    assert done.err == "No note posted: POST projects/100/merge_requests/7/notes: 502 Bad Gateway\n"
    assert asked(desk) == [LIST, f"POST {NOTES}"] * 3


def test_an_update_whose_answer_is_lost_is_sent_again() -> None:
    """With a clock of its own, since the client rests before it."""
    found = '[{"id": 1, "body": "<!-- reconciler note: plan -->\\n\\nold", "author": {"id": 2}, "system": false}]'
    answers = [answer("200 OK", found, x_next_page=""), answer("200 OK", '{"id": 2}'), b"", answer("200 OK", "{}")]
    with canned(*answers) as server, connected(server.api_url) as client:
        assert post_note(client, MergeRequest("100", 7), "plan", "new") is Posting.UPDATED
    assert [each.partition(" HTTP")[0].partition("?")[0] for each in server.requests] == [
        f"GET {NOTES}",
        "GET /api/v4/user",
        f"PUT {NOTES}/1",
        f"PUT {NOTES}/1",
    ]


class Interfering:
    """A client in whose way somebody does something before each write."""

    def __init__(self, client: Any, interfere: Any) -> None:
        self.get, self.visible = client.get, client.visible
        self._client, self._interfere = client, interfere

    def send(self, request: Any) -> Any:
        self._interfere(request)
        return self._client.send(request)


@contextmanager
def interfered(desk: Desk, interfere: Any) -> Iterator[Interfering]:
    with connected(desk.sandbox.api_url, token="ada-token") as client:
        yield Interfering(client, interfere)


def test_a_note_that_somebody_deletes_meanwhile_is_posted_anew(desk: Desk) -> None:
    noted(desk, {"body": f"{MARKER}\n\nold"})

    def delete(request: Any) -> None:
        if request.method == "PUT":
            noted(desk)

    with interfered(desk, delete) as board:
        assert post_note(board, MergeRequest("100", 7), "plan", "new") is Posting.POSTED
    assert notes(desk) == [("ada", f"{MARKER}\n\nnew")]


def test_a_note_that_another_run_deletes_meanwhile_is_no_trouble(desk: Desk) -> None:
    noted(desk, {"body": f"{MARKER}\n\nnew"}, {"body": f"{MARKER}\n\nold"})

    def delete(request: Any) -> None:
        assert request.method == "DELETE"
        noted(desk, {"body": f"{MARKER}\n\nnew"})

    with interfered(desk, delete) as board:
        assert post_note(board, MergeRequest("100", 7), "plan", "new") is Posting.UPDATED


def test_a_merge_request_that_is_gone_meanwhile_is_told(desk: Desk) -> None:
    noted(desk, {"body": f"{MARKER}\n\nold"})
    with interfered(desk, lambda _request: desk.service()) as board, pytest.raises(NotFound, match="404 MergeRequest"):
        post_note(board, MergeRequest("100", 7), "plan", "new")


def test_runs_at_the_same_time_leave_one_note_in_the_end(desk: Desk) -> None:
    desk.sandbox.set_latency(20)

    def run(text: str) -> None:
        with connected(desk.sandbox.api_url, token="ada-token") as client:
            post_note(client, MergeRequest("100", 7), "plan", text)

    threads = [Thread(target=run, args=(f"by {number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    desk.sandbox.set_latency(0)
    assert len(notes(desk)) >= 1
    run("at last")
    assert notes(desk) == [("ada", f"{MARKER}\n\nat last")]


@pytest.mark.parametrize(
    ("user", "said"),
    [
        ("[]", "GET user: the answer is not what the service promises: it has no number"),
        ('{"id": null}', "GET user: the answer is not what the service promises: it has no number"),
    ],
)
def test_a_user_without_a_number_is_no_answer(user: str, said: str) -> None:
    own = '{"id": 1, "body": "<!-- reconciler note: plan -->", "author": {"id": 2}, "system": false}'
    odd = f'[1, {{"id": "x", "body": null}}, {own}]'
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


def test_what_the_service_answers_where_nothing_can_be_posted_is_told_with_advice(desk: Desk) -> None:
    path = "projects/100/merge_requests/7/notes"
    state = a_small_service("deployed")
    state["projects"][0] |= {"merge_requests": [7], "archived": True}
    state["users"][1]["tokens"] = ["ada-token", {"token": "reader", "scopes": ["read_api"]}]
    desk.sandbox.replace_state(state)
    scope = "403 The request requires higher privileges than provided by the access token."
    cases = [
        ("ada-token", "7", f"POST {path}: 403 Forbidden; the token may not comment there: {HOW}"),
        ("reader", "7", f"POST {path}: {scope}; the token may not comment there: {HOW}"),
        (
            "glcbt-x",
            "7",
            f"GET {path}: 401 Unauthorized; the token is not valid there (that of a CI job may not post notes): {HOW}",
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
            done = desk(f"note --file note.md --merge-request {iid}")
            assert (done.code, done.out, done.err) == (0, "", f"No note posted: {said}\n")
            done = desk(f"note --file note.md --merge-request {iid} --strict --quiet")
            assert (done.code, done.out, done.err) == (1, "", f"No note posted: {said}\n")


def test_outside_the_pipeline_of_a_merge_request_nothing_is_posted(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI_MERGE_REQUEST_IID")
    done = desk("note --file note.md")
    assert (done.code, done.out) == (0, "")
    assert done.err == (
        "No note posted: this is not the pipeline of a merge request: CI_MERGE_REQUEST_IID is not set; run the job where "
        "$CI_PIPELINE_SOURCE is merge_request_event, or give --merge-request\n"
    )
    assert desk("note --file note.md --strict").code == 1
    monkeypatch.delenv("CI_MERGE_REQUEST_PROJECT_ID")
    done = desk("note --file note.md --merge-request 7")
    assert done.err == (
        "No note posted: no project: neither CI_MERGE_REQUEST_PROJECT_ID nor CI_PROJECT_ID is set; give --project\n"
    )
    monkeypatch.setenv("CI_PROJECT_ID", "100")
    assert desk("note --file note.md --merge-request 7").out == "Note reconciler posted: 100!7\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "note.md: No such file or directory"),
        ("", "there is nothing in it"),
        (" \n", "there is nothing in it"),
        (
            "x" * 1_000_000,
            "a note may have 1,000,000 characters, and this one has 1,000,032; what --report markdown=FILE writes has "
            "60,000 at most",
        ),
    ],
    ids=["missing", "empty", "blank", "long"],
)
def test_a_file_that_is_no_note_is_told_before_anything_is_asked(desk: Desk, text: str | None, said: str) -> None:
    (desk.folder / "note.md").unlink()
    if text is not None:
        desk.write("note.md", text)
    done = desk("note --file note.md --name plan")
    assert (done.code, done.out, done.err) == (0, "", f"No note posted: {said}\n")
    assert asked(desk) == []


def test_the_longest_note_goes(desk: Desk) -> None:
    desk.write("note.md", "x" * (1_000_000 - len(f"{MARKER}\n\n")))
    assert desk("note --file note.md --name plan").out == "Note plan posted: 100!7\n"


def test_a_wrong_command_line_is_one_all_the_same(desk: Desk) -> None:
    assert desk("note").code == 64


def test_without_a_token_it_is_told_which(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RECONCILER_TOKEN")
    done = desk("note --file note.md")
    assert (done.code, done.out) == (0, "")
    assert done.err == (
        "No note posted: no token (that of a CI job may not post notes, and a protected variable is not there in merge "
        f"requests): {HOW}\n"
    )


def test_a_token_for_notes_goes_before_the_usual_one_unless_a_flag_names_another(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECONCILER_NOTE_TOKEN", "bob-token")
    assert desk("note --file note.md --name plan").out == "Note plan posted: 100!7\n"
    desk.write("token", "ada-token").chmod(0o600)
    assert desk("note --file note.md --name plan --token-file token").out == "Note plan posted: 100!7\n"
    monkeypatch.setenv("RECONCILER_TOKEN_FILE", "token")
    assert desk("note --file note.md --name plan").out == "Note plan unchanged: 100!7\n"
    assert [author for author, _ in notes(desk)] == ["bob", "ada"]


def test_a_token_for_another_service_is_not_sent_to_that_of_the_job(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECONCILER_API_URL", "https://managed.example.com/api/v4/")
    done = desk("note --file note.md")
    assert (done.code, done.out) == (0, "")
    assert done.err == (
        f"No note posted: the token is for https://managed.example.com/api/v4/, and the merge request is at "
        f"{desk.sandbox.api_url}: {HOW}\n"
    )
    assert asked(desk) == []
    monkeypatch.setenv("RECONCILER_NOTE_TOKEN", "bob-token")
    assert desk("note --file note.md").out == "Note reconciler posted: 100!7\n"
    monkeypatch.delenv("RECONCILER_NOTE_TOKEN")
    done = desk(f"note --file note.md --api-url {desk.sandbox.api_url}")
    assert done.out == "Note reconciler posted: 100!7\n"


def test_elsewhere_than_in_ci_it_is_the_configured_service(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI_API_V4_URL")
    assert desk("note --file note.md").out == "Note reconciler posted: 100!7\n"


def test_the_token_is_never_shown(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECONCILER_NOTE_TOKEN", "glpat-very-secret")
    reflecting = answer("403 Forbidden", '{"message": "glpat-very-secret may not"}')
    with canned(reflecting) as server:
        done = desk(f"note --file note.md --api-url {server.api_url} -vv")
    assert "very-secret" not in done.out + done.err
    assert "403 [a secret] may not" in done.err


def test_a_link_that_was_committed_is_not_posted(desk: Desk) -> None:
    """The working directory is a checkout, and a link may lead to any file of the machine that runs the job."""
    secret = desk.write("../secret", "glpat-secret")
    (desk.folder / "link.md").symlink_to(secret)
    (desk.folder / "folder").symlink_to(secret.parent)
    (desk.folder / "inner").mkdir()
    (desk.folder / "inner/deep.md").symlink_to(secret)
    cases = [
        ("link.md", "link.md"),
        (f"{desk.folder}/link.md", "link.md"),
        ("./folder/secret", "folder"),
        ("inner/../folder/secret", "inner/../folder"),
        ("inner/deep.md", "inner/deep.md"),
    ]
    for file, link in cases:
        done = desk("note --strict --file", file)
        said = f"No note posted: {file.removeprefix('./')}: {link} is a symbolic link; name the file itself\n"
        assert (done.code, done.out, done.err) == (1, "", said)
    assert asked(desk) == []
    reading, writing = os.pipe()
    os.write(writing, b"## Through a pipe")
    os.close(writing)
    assert desk(f"note --file /dev/fd/{reading}").out == "Note reconciler posted: 100!7\n"
    os.close(reading)
