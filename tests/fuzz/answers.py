"""Answers of a service that has gone mad: right in part, so that a client believes it for a while.

A run of commands against them may fail in whatever way it says; it must say so in its own words.
"""

import json
import random
from typing import Any

from tests.between import Passing

SECRET = "glptt-0123456789abcdefghij"
"""Stands wherever a service keeps secrets."""

ODD: list[Any] = [
    None, True, False, 0, -1, 1, 2.5, 1e308, 2**31, 2**63, 10**30, "", " ", "0", "null", "custom", "closed", "9999-12-31",
    "0000-00-00", "acme/api", "../..", "acme%2Fapi", "\x1b[31mred\x07", "a\nb", "\u202egnp.exe", "\u2028", "\x00", "x" * 5000,
    "https://h/groups/a", [], {}, [[]], [None], {"id": 1}, {"value": True}, {"": ""}, {"token": SECRET}, [{"password": SECRET}],
]  # fmt: skip
KEYS = ["id", "title", "token", "level", "events", "new", "\x1b[2J", "\u202e", "project_id", "web_url", "x" * 300]
HEADERS = {
    "link": [
        '<https://elsewhere.example/api/v4/x?page=2>; rel="next"',
        "<",
        '<?a=1>; rel="next"',
        '<?\x01>; rel="next"',
    ],
    "x-next-page": ["2", "1", "-1", "x", "99999999999999999999", ""],
    "x-total": ["0", "7", "x", "99999999999999999999"],
    "x-total-pages": ["0", "2", "1000000", "x"],
    "content-type": ["text/html", "text/plain", "application/json; charset=latin-1", "\x1b"],
    "retry-after": ["0", "-1", "soon"],
    "ratelimit-remaining": ["-1", "x", "9"],
    "date": ["soon", "Sat, 10 Oct 2099 12:00:00 GMT"],
}
PLACES = [
    "/api/v4/projects/100",
    "/api/v4/groups/10",
    "https://elsewhere.example/",
    "//x\x1b[31m",
    "?",
    "/api/v4/version",
]


class Mad:
    """Alters answers, each with some probability, the same way for the same seed."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)  # noqa: S311 - repeatable, not secret
        self._share = self._chance.choice([0.05, 0.2, 0.6])

    def __call__(self, passing: Passing) -> None:
        """Alter an answer, or not."""
        if self._chance.random() < self._share:
            self._chance.choice(
                [self._value, self._value, self._value, self._refusal, self._header, self._torn, self._redirect]
            )(passing)

    def _value(self, passing: Passing) -> None:
        try:
            value = passing.json
        except ValueError:
            value = self._chance.choice(ODD)
        for _ in range(self._chance.randint(1, 3)):
            value = self._altered(value)
        passing.json = value

    def _altered(self, value: Any) -> Any:
        """Change one place of a value."""
        chance = self._chance
        if isinstance(value, list) and value and chance.random() < 0.8:
            place = chance.randrange(len(value))
            return [*value[:place], self._altered(value[place]), *value[place + chance.randint(0, 2) :]]
        if isinstance(value, dict) and value and chance.random() < 0.8:
            key = chance.choice(sorted(value))
            rest = {name: inner for name, inner in value.items() if name != key}
            new = chance.choice([{}, {key: self._altered(value[key])}, {key: self._altered(value[key])}])
            return {**rest, **new, **chance.choice([{}, {}, {chance.choice(KEYS): chance.choice(ODD)}])}
        return chance.choice([*ODD, [value], {"value": value}, f"{value}"])

    def _refusal(self, passing: Passing) -> None:
        passing.status = self._chance.choice([400, 403, 404, 405, 409, 410, 412, 422, 418])
        sentence: Any = self._chance.choice(["403 Forbidden - \x1b[31mno", {"title": ["\u202eno"]}, 7, None])
        record: dict[str, Any] = {"id": 1, "token": SECRET, "runners_token": SECRET, "x": [{"dsn": SECRET}]}
        both: dict[str, Any] = record | {"error": f"no {SECRET}"}
        passing.json = self._chance.choice([record, [record], {"message": sentence}, {"message": record}, both, ""])
        if self._chance.random() < 0.2:
            passing.headers["content-type"] = self._chance.choice(HEADERS["content-type"][:2])

    def _header(self, passing: Passing) -> None:
        name = self._chance.choice(sorted(HEADERS))
        if self._chance.random() < 0.3:
            passing.headers.pop(name, None)
        else:
            passing.headers[name] = self._chance.choice(HEADERS[name]).replace("\x01", "")

    def _torn(self, passing: Passing) -> None:
        whole = passing.body or json.dumps({"id": 1, "token": SECRET}).encode()
        passing.body = whole[: self._chance.randrange(len(whole))]
        passing.status = self._chance.choice([passing.status, passing.status, 403])

    def _redirect(self, passing: Passing) -> None:
        passing.status = self._chance.choice([301, 302, 307])
        passing.headers["location"] = self._chance.choice(PLACES)
