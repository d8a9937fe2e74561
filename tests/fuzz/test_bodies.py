"""The reader of HTTP bodies: seeds that once broke readers, and mutations of them; each is a value or an error of ours."""

import gzip
import random
from contextlib import suppress

import pytest

from reconciler.errors import ServiceError
from tests.canned import answer, canned
from tests.service.connecting import connected

pytestmark = pytest.mark.untraced

SEEDS = [
    b"", b"null", b"[]", b'{"id": 1}', b'[{"id": 1, "title": "a"}]', b"9" * 5000, b'[{"id": ' + b"9" * 5000 + b"}]",
    b"[" * 100_000, b'{"a":' * 50_000, b"NaN", b"[Infinity]", b"1e999", b'"\\ud800"', b"\xff\xfe[]", b"\xef\xbb\xbf[]",
    b"<html>", b'{"message": {"a": ["b", {"c": null}]}}', b'{"error": "\x00\x1b[2J"}', gzip.compress(b"[]"), b"\x1f\x8b\x08",
]  # fmt: skip
HEADERS = [{}, {"content_encoding": "gzip"}, {"content_type": "text/html"}, {"x_next_page": "2"}]
STATUSES = ["200 OK", "201 Created", "400 Bad", "403 No", "404 No", "500 No"]


def mutated(body: bytes, chance: random.Random) -> bytes:
    """Return a body with some bytes lost, doubled or replaced."""
    for _ in range(chance.randint(0, 3)):
        at = chance.randint(0, len(body))
        body = (
            body[:at]
            + bytes(chance.choices(b'[]{}",:0e-\\\xff\n', k=chance.randint(0, 2)))
            + body[at + chance.randint(0, 3) :]
        )
    return body


@pytest.mark.parametrize("seed", SEEDS, ids=range(len(SEEDS)))
def test_whatever_a_body_holds_it_is_a_value_or_an_error_of_ours(seed: bytes) -> None:
    chance = random.Random(seed)  # noqa: S311 - repeatable, not secret
    bodies = [seed, *(mutated(seed, chance) for _ in range(12))]
    answers = [answer(chance.choice(STATUSES), body, **chance.choice(HEADERS)) for body in bodies]
    for raw in [answer("200 OK", seed), *answers]:
        with canned(raw) as server, connected(server.api_url, tries=1) as client:
            for ask in (client.get, client.pages):
                with suppress(ServiceError):
                    ask("x")
            assert server.requests
