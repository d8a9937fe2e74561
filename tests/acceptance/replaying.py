"""Recorded requests, asked of the sandbox: with its own IDs instead of the service's."""

import json
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any

import httpx

from reconciler.sandbox import Sandbox
from tests.acceptance.comparing import differences, in_one_order, pages
from tests.acceptance.protections import BEFORE, MEANWHILE, NAMES
from tests.acceptance.taped import RECORDINGS, SERVICE, Exchange, exchanges, tape_of

State = dict[str, Any]

AFTER = {"fleet-plan-again": "fleet-apply"}
"""Recordings that go on where others end."""

SCIM_IDENTITIES = [{"extern_uid": "Ada.X@id", "user_id": 2}, {"extern_uid": "maint@id", "user_id": 3}]

RECORDED = "2026-11-22T05:40:00Z"
"""The service's clock when the recordings were made: some answers hold its date."""

REFERS = {
    "namespace_id": "groups",
    "parent_id": "epics",
    "group_id": "groups",
    "deploy_key_id": "deploy_keys",
    "protected_branch_ids": "protected_branches",
}
"""The collections to which IDs in requests belong, by the name of the attribute."""


def state_of(name: str) -> State:
    """Return the state that a recording began with."""
    file = "protections" if name in NAMES else "fleet" if name.startswith("fleet") else "state"
    state: State = json.loads((RECORDINGS / f"{file}.json").read_text())
    state["instance"] |= {"dialect": "deployed", "now": RECORDED}
    for project in () if file == "protections" else state["projects"]:
        project["empty_repo"] = True
    if name == "scim-identities":
        state["groups"][0]["scim_identities"] = SCIM_IDENTITIES
    BEFORE.get(name, unchanged)(state)
    return state


def unchanged(_: State) -> None:
    """Leave a state as it is."""


def value_of(response: httpx.Response) -> Any:
    """Return the body as JSON; its text where it is none."""
    try:
        return response.json()
    except ValueError:
        return response.text


def record_of(target: str) -> str:
    """Return the word for the records at a path: the last one that is neither an ID nor a name."""
    parts = ["", *target.partition("?")[0].split("/")]
    words = (part for before, part in pairwise(parts) if before not in {"groups", "projects"} or part == "projects")
    return [word for word in words if not word.isdigit()][-1]


class Replayed:
    """A sandbox that is asked what a service was asked."""

    def __init__(self, sandbox: Sandbox, name: str) -> None:
        self._sandbox = sandbox
        self._name = name
        self._url = sandbox.api_url.removesuffix("/api/v4")
        self._ids: dict[tuple[str, str], int] = {}

    def answers(self, client: httpx.Client) -> Iterator[tuple[Exchange, httpx.Response]]:
        """Yield each recorded exchange with the sandbox's answer, from the state that the recording began with."""
        self._sandbox.replace_state(state_of(self._name))
        if self._name in AFTER:
            self.ask_all(client, exchanges(tape_of(AFTER[self._name])))
        for exchange in exchanges(tape_of(self._name)):
            change = MEANWHILE.get(self._name, {}).get(exchange.number)
            if change:
                self._change(change)
            yield exchange, self.ask(client, exchange)

    def compare(self, exchange: Exchange, response: httpx.Response) -> list[str]:
        """Return where the sandbox's answer differs."""
        recorded = exchange.value
        if response.status_code != exchange.status:
            return [f"{exchange}: {exchange.status} {recorded}, and here {response.status_code} {response.text}"]
        if isinstance(recorded, str):
            recorded = recorded.replace(SERVICE, self._url)
        found = list(differences(*map(in_one_order, (recorded, value_of(response)))))
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
        if exchange.unmodified_since:
            headers["if-unmodified-since"] = exchange.unmodified_since
        path, mark, query = exchange.target.removeprefix(f"{SERVICE}/api/").partition("?")
        parts = path.split("/")
        target = "/".join(self._here(*pair) for pair in zip(["", *parts], parts, strict=False)) + mark + query
        response = client.request(exchange.method, target, headers=headers, content=self._translated(exchange))
        if response.status_code == exchange.status:
            self._learn(record_of(exchange.target), exchange.value, value_of(response))
        return response

    def _change(self, change: Callable[[State], None]) -> None:
        """Do to the sandbox what was done to the service without a request."""
        state = self._sandbox.state()
        change(state)
        self._sandbox.replace_state(state)

    def _translated(self, exchange: Exchange) -> bytes:
        """Return the body of a request with the sandbox's IDs."""
        try:
            sent = json.loads(exchange.sent)
        except ValueError:
            return exchange.sent
        return json.dumps(self._here_in("", sent, record_of(exchange.target))).encode()

    def _here_in(self, name: str, sent: Any, record: str) -> Any:
        if isinstance(sent, dict):
            return {key: self._here_in(key if key != "id" else name, value, record) for key, value in sent.items()}
        if isinstance(sent, list):
            return [self._here_in(name, each, record) for each in sent]
        collection = f"{name.removeprefix('allowed_to_')}_access_levels" if name.startswith("allowed_to_") else None
        if name == "parent_id" and record != "epics":
            collection = "groups"
        known = self._ids.get((collection or REFERS.get(name, ""), str(sent)))
        return sent if known is None else known

    def _here(self, collection: str, part: str) -> str:
        known = "service_accounts" if collection == "users" else collection
        return str(self._ids.get((known, part), part))

    def _learn(self, collection: str, recorded: Any, answered: Any) -> None:
        if isinstance(recorded, list) and isinstance(answered, list):
            for one, other in zip(in_one_order(recorded), in_one_order(answered), strict=False):
                self._learn(collection, one, other)
        elif isinstance(recorded, dict) and isinstance(answered, dict) and "id" in recorded and "id" in answered:
            self._ids[collection, str(recorded["id"])] = answered["id"]
            for name in recorded.keys() & answered.keys():
                if name.endswith("_access_levels"):
                    self._learn(name, in_one_order(recorded)[name], in_one_order(answered)[name])
