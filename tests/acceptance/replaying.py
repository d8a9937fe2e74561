"""Recorded requests, asked of the sandbox: with its own IDs instead of the service's."""

import json
import re
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import httpx

from reconciler.sandbox import Sandbox
from tests.acceptance.comparing import differences, pages
from tests.acceptance.taped import RECORDINGS, SERVICE, Exchange

SCIM_IDENTITIES = [{"extern_uid": "Ada.X@id", "user_id": 2}, {"extern_uid": "maint@id", "user_id": 3}]

RECORDED = "2026-11-22T05:40:00Z"
"""The service's clock when the recordings were made: some answers hold its date."""


def state_of(name: str) -> Any:
    """Return the state that a recording began with."""
    state = json.loads((RECORDINGS / ("fleet.json" if name.startswith("fleet") else "state.json")).read_text())
    state["instance"] |= {"dialect": "deployed", "now": RECORDED}
    if name == "scim-identities":
        state["groups"][0]["scim_identities"] = SCIM_IDENTITIES
    return state


def value_of(response: httpx.Response) -> Any:
    """Return the body as JSON; its text where it is none."""
    try:
        return response.json()
    except ValueError:
        return response.text


def by_pattern(rules: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return protection rules in an order of their own: the service lists them in any."""
    return sorted(rules, key=lambda rule: rule["repository_path_pattern"])


def record_of(target: str) -> str:
    """Return the word for the records at a path: the last one that is neither an ID nor a name."""
    parts = ["", *target.partition("?")[0].split("/")]
    words = (part for before, part in pairwise(parts) if before not in {"groups", "projects"} or part == "projects")
    return [word for word in words if not word.isdigit()][-1]


class Replayed:
    """A sandbox that is asked what a service was asked."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._url = sandbox.api_url.removesuffix("/api/v4")
        self._ids: dict[tuple[str, str], str] = {}

    def compare(self, client: httpx.Client, exchange: Exchange) -> list[str]:
        """Return where the sandbox's answer differs."""
        response = self.ask(client, exchange)
        recorded = exchange.value
        if response.status_code != exchange.status:
            return [f"{exchange}: {exchange.status} {recorded}, and here {response.status_code} {response.text}"]
        answered = value_of(response)
        if isinstance(recorded, str):
            recorded = recorded.replace(SERVICE, self._url)
        if record_of(exchange.target) == "rules" and isinstance(recorded, list):
            recorded, answered = map(by_pattern, (recorded, answered))
        found = list(differences(recorded, answered))
        if pages(exchange.headers) != pages(response.headers):
            found.append(f"{pages(exchange.headers)}, and here {pages(response.headers)}")
        return [f"{exchange}{each}" for each in found]

    def ask_all(self, client: httpx.Client, recorded: Iterable[Exchange]) -> None:
        """Send recorded requests one after another."""
        for exchange in recorded:
            self.ask(client, exchange)

    def ask(self, client: httpx.Client, exchange: Exchange) -> httpx.Response:
        """Send a recorded request, and remember the IDs in the answer."""
        headers = {"private-token": f"{exchange.who}-token"} if exchange.who else {}
        path, mark, query = exchange.target.partition("?")
        parts = path.split("/")
        target = "/".join(self._here(*pair) for pair in zip(["", *parts], parts, strict=False)) + mark + query
        sent = re.sub(
            rb'(?<="parent_id":)\d+', lambda match: self._here("epics", match[0].decode()).encode(), exchange.sent
        )
        response = client.request(exchange.method, target, headers=headers, content=sent)
        if response.status_code == exchange.status:
            self._learn(record_of(exchange.target), exchange.value, value_of(response))
        return response

    def _here(self, collection: str, part: str) -> str:
        known = "service_accounts" if collection == "users" else collection
        return self._ids.get((known, part), part)

    def _learn(self, collection: str, recorded: Any, answered: Any) -> None:
        if isinstance(recorded, list):
            for one, other in zip(recorded, answered, strict=False):
                self._learn(collection, one, other)
        elif isinstance(recorded, dict) and "id" in recorded and "id" in answered:
            self._ids[collection, str(recorded["id"])] = str(answered["id"])
