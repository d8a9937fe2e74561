"""Recordings of a real service, as cassettes of vcrpy, and the client playing them without a network.

vcrpy itself patches the transports that httpx brings along: here it plays what a transport of the client answers.
"""

import json
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import vcr
from vcr import matchers
from vcr.cassette import Cassette
from vcr.request import Request
from vcr.serializers import yamlserializer

RECORDINGS = Path(__file__).parent / "recordings"
NAMES = sorted(file.stem for file in RECORDINGS.glob("*.yaml"))
SERVICE = "https://gitlab.example.com"
API = f"{SERVICE}/api/v4"


def same_content(one: Request, other: Request) -> None:
    """Compare two bodies as vcrpy's matchers do: by an assertion. Clients differ in how they write JSON and no body."""
    assert json.loads(one.body or b"null") == json.loads(other.body or b"null")


MATCHERS = (matchers.method, matchers.path, matchers.query, same_content)


@dataclass(frozen=True)
class Exchange:
    """One recorded request and its answer.

    Attributes:
        who: the user whose token was sent; None without a token.
        target: the path with its query, as sent, without the API's own path.
        sent: the body that was sent; it may be malformed JSON.
        unmodified_since: the date before which the thing must not have changed; None if none was sent.
        body: as received.
    """

    number: int
    who: str | None
    method: str
    target: str
    sent: bytes
    unmodified_since: str | None
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def value(self) -> Any:
        """The body as JSON; its text where it is none."""
        try:
            return json.loads(self.body)
        except ValueError:
            return self.body.decode()

    def __str__(self) -> str:
        return f"{self.number} {self.method} {self.target}"


def tape_of(name: str) -> Cassette:
    """Return one of the recordings."""
    return tape_at(RECORDINGS / f"{name}.yaml")


def tape_at(file: Path) -> Cassette:
    """Return a cassette that plays and does not record."""
    return Cassette.load(path=str(file), serializer=yamlserializer, match_on=MATCHERS, record_mode=vcr.mode.NONE)


def exchanges(tape: Cassette) -> Iterator[Exchange]:
    """Yield what a cassette holds, in the order in which it was recorded."""
    for number, (request, response) in enumerate(zip(tape.requests, tape.responses, strict=True)):
        token = request.headers.get("private-token", request.headers.get("PRIVATE-TOKEN"))
        yield Exchange(
            number,
            token and token.removeprefix("withheld; of: "),
            request.method,
            request.uri.removeprefix(f"{API}/"),
            request.body or b"",
            request.headers.get("if-unmodified-since"),
            response["status"]["code"],
            {name.lower(): values[0] for name, values in response["headers"].items()},
            response["body"]["string"],
        )


class NotRecorded(Exception):
    """Another request was recorded."""


class TapedTransport(httpx.BaseTransport):
    """A transport that leads to a cassette, which is played in order: one recorded answer per request.

    What the client asks after a refusal was not recorded: whether the token's owner is refused everything. It is not.
    """

    def __init__(self, tape: Cassette) -> None:
        self._recorded = deque(zip(tape.requests, tape.responses, strict=True))

    def skip(self) -> None:
        """Leave out the next request."""
        self._recorded.popleft()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Answer as recorded. Raises `NotRecorded` if the next recorded request is another one."""
        uri = str(request.url)
        recorded, response = self._recorded[0]
        if uri == f"{API}/user" and recorded.uri != uri:
            return httpx.Response(200, json={})
        if not matchers.requests_match(Request(request.method, uri, request.read(), {}), recorded, MATCHERS):
            raise NotRecorded(uri)
        self._recorded.popleft()
        body = response["body"]["string"]
        headers = {name: values[0] for name, values in response["headers"].items()}
        headers["content-length"] = str(len(body))  # which is not in a recording
        phrase = {"reason_phrase": (response["status"]["message"] or "").encode()}
        content = httpx.ByteStream(body)
        return httpx.Response(response["status"]["code"], headers=headers, stream=content, extensions=phrase)
