"""Commands on services that answer otherwise than the sandbox does: what they say, and what they never show."""

from collections.abc import Iterator

import pytest

from tests.between import Between, Passing, between
from tests.desk import Desk

SECRET = "glptt-1234567890abcdef"


@pytest.fixture
def service(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Iterator[Between]:
    """A service that answers as the sandbox does, until a test alters its answers."""
    with between(desk.sandbox.api_url) as server:
        monkeypatch.setenv("RECONCILER_API_URL", server.api_url)
        yield server


def test_no_part_of_a_record_is_shown_as_an_error(desk: Desk, service: Between) -> None:
    def refuse(passing: Passing) -> None:
        if passing.request.startswith("POST "):
            passing.status = 403
            passing.json = {"id": 1, "description": "nightly", "token": SECRET, "owner": {"username": "ada"}}

    service.alter = refuse
    desk.project("{trigger_tokens: {nightly: {}}}")
    ended = desk("apply --yes --tokens-to tokens --journal journal --report json=report.json")
    assert ended.code == 3
    assert "POST projects/acme%2Fapi/triggers: 403 Forbidden" in ended.out
    written = "".join(path.read_text() for path in desk.folder.iterdir() if path.is_file())
    assert SECRET not in ended.out + ended.err + written
