"""Bodies that are JSON, and bodies that are not."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.errors import BadAnswer, ServiceError
from reconciler.service.responses import Response, parse_json, read_response
from tests.canned import answer, canned
from tests.service.clock import patiently
from tests.service.connecting import connected

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@pytest.mark.untraced
@patiently
@given(JSON, st.booleans())
def test_what_is_json_is_read(value: Any, escaped: bool) -> None:
    text = json.dumps(value, ensure_ascii=escaped)
    assert parse_json(text.encode("utf-8", "surrogatepass")) == value


@pytest.mark.untraced
@patiently
@given(st.binary() | st.text().map(str.encode) | JSON.map(lambda value: json.dumps(value).encode()[:-1]))
def test_what_is_none_is_a_value_error(body: bytes) -> None:
    try:
        value = parse_json(body)
    except ValueError:
        return
    assert json.loads(body) == value


@pytest.mark.parametrize(
    "body",
    [
        b"NaN",
        b"[Infinity]",
        b"[-Infinity]",
        b"1e999",
        b"[-1e999]",
        b"1" * 5000,
        b'"\\ud800"',
        b'{"\\uDFFF": 1}',
        b"\xff",
        b"\xef\xbb\xbf{}",
        '{"a": 1}'.encode("utf-16"),
        b"[" * 65 + b"]" * 65,
        b'{"a":' * 70 + b"1" + b"}" * 70,
        b"[" * 100_000,
        b"[" * 100_000 + b"]" * 100_000,
        b"",
        b"{} {}",
    ],
    ids=lambda body: repr(body[:12]),
)
def test_what_only_looks_like_json_is_none(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_json(body)


def test_what_is_wide_is_not_deep() -> None:
    assert parse_json(json.dumps([{"a": [1.5]}] * 1000).encode()) == [{"a": [1.5]}] * 1000
    assert parse_json(b"[" * 64 + b"]" * 64) == json.loads("[" * 64 + "]" * 64)
    assert parse_json(json.dumps("[" * 100).encode()) == "[" * 100
    assert parse_json(b'"\\ud83d\\ude00"') == "\U0001f600"


@pytest.mark.parametrize(
    ("request_", "status", "fine"),
    [
        ("GET x", 200, False),
        ("GET x", 204, False),
        ("POST x", 200, False),
        ("POST x", 201, False),
        ("POST x", 202, True),
        ("POST x", 204, True),
        ("PUT x", 200, True),
        ("PATCH x", 204, True),
        ("DELETE x", 204, True),
    ],
)
def test_only_what_asks_for_nothing_may_be_answered_with_nothing(request_: str, status: int, fine: bool) -> None:
    empty = Response(status, "OK", {}, b"")
    if fine:
        assert read_response(request_, empty) is None
    else:
        with pytest.raises(BadAnswer) as raised:
            read_response(request_, empty)
        assert str(raised.value) == f"{request_}: the response is empty ({status})"


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (answer("304 Not Modified"), "GET x: unexpected response: 304 Not Modified"),
        (answer("300"), "GET x: unexpected response: 300"),
    ],
    ids=["304", "300"],
)
def test_what_nobody_asked_for_is_a_bad_answer(raw: bytes, said: str) -> None:
    with canned(raw) as server, connected(server.api_url) as client, pytest.raises(BadAnswer) as raised:
        client.get("x")
    assert str(raised.value) == said
    assert len(server.requests) == 1


@pytest.mark.untraced
@patiently
@given(
    st.integers(100, 599),
    st.text(),
    st.dictionaries(st.sampled_from(["location", "content-type"]), st.text()),
    st.binary() | JSON.map(lambda value: json.dumps(value).encode()),
)
def test_any_answer_is_a_value_or_an_error_fit_for_any_terminal(
    status: int, phrase: str, headers: dict[str, str], body: bytes
) -> None:
    try:
        read_response("GET x", Response(status, phrase, headers, body))
    except ServiceError as error:
        said = str(error)
        error.reason.encode()
    else:
        said = ""
    assert said.isprintable()
    assert len(said) < 600
