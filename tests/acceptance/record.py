"""Record what a command asks a service, as a cassette of vcrpy like those in `recordings/`, without its secrets.

    RECONCILER_API_URL=https://host/api/v4 RECONCILER_TOKEN=... \\
        python -m tests.acceptance.record plan.yaml reconciler plan manifests

The command gets the address of a relay as RECONCILER_API_URL, and in place of `{url}` in its arguments, so that any client
can be recorded. The values of tokens, keys and passwords, e-mail addresses, host names, addresses of computers and avatars
are replaced before anything is written. Read the file before you publish it all the same: names of groups, projects and people
stay, and so do descriptions.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import yaml

from tests.acceptance.taped import SERVICE
from tests.between import Passing, between

KEPT = re.compile(
    r"allow|cache-control|content-type|etag|link|location|rate-?limit-.*|retry-after|x-[a-z-]*page[a-z-]*|x-total"
)
"""The headers that a client may read; those for browsers and of proxies are left out."""

OF_OTHERS = "personal_access_token"
"""The key of a token for another service, of which nobody is shown anything."""

FORM = b"--"
"""How a form with files begins. Archives are full of names, and nothing plays them."""

SECRET_KEYS = re.compile(r".*(token|password|secret|public_key|private_key|_key)|key")
KNOWN_SECRETS = re.compile(r"\b(gl[a-z]{1,9}[-_]|GR1348941)([\w.-]{4})[\w.-]{4,}")
ADDRESS = re.compile(r"[\w.+-]+@(?:[\w-]+\.)+[A-Za-z]{2,}")
HOST = re.compile(r"(://(?:[^/@\s\"]*@)?)([\w.-]+(?::\d+)?)")
COMPUTER = re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}\b")
AVATAR = re.compile(r'("avatar_url": ?")[^"]*')
MADE_UP = re.compile(r"(?:.*[.@])?example\.(?:com|org|net)(?::\d+)?")


class Scrubber:
    """Replaces what nobody should read in a recording, the same thing by the same word each time.

    Args:
        origins: the addresses of the service and of relays to it, without a path.
    """

    def __init__(self, *origins: str) -> None:
        self._origins = origins
        self._given: dict[str, str] = {}
        self._withheld: set[str] = set()

    def text(self, text: str) -> str:
        """Return a text without secrets and addresses."""
        for token in sorted(self._withheld, key=len, reverse=True):
            text = text.replace(token, "0" * len(token))
        for origin in self._origins:
            text = text.replace(origin, SERVICE)
        for place in map(urlsplit, self._origins):
            host = rf"(?<![\w.-])(?:[\w-]+\.)*{re.escape(place.hostname or '')}(?::\d+)?(?![\w-])"
            text = re.sub(host, urlsplit(SERVICE).netloc, text)
        text = KNOWN_SECRETS.sub(lambda match: _shortened(match[0]), text)
        text = AVATAR.sub(rf"\1{SERVICE}/avatar.png", text)
        text = ADDRESS.sub(lambda match: self._word(match[0], "user-{}@example.com"), text)
        text = HOST.sub(lambda match: match[1] + self._word(match[2], "host-{}.example.com"), text)
        return COMPUTER.sub("192.0.2.1", text)

    def sent(self, body: bytes) -> str:
        """Return the body of a request as `body` does; what it sends to another service is in no text from now on."""
        if body.startswith(FORM):
            return ""
        self._withheld.update(re.findall(rf'"{OF_OTHERS}": ?"([^"]+)"', body.decode(errors="replace")))
        return self.body(body)

    def body(self, body: bytes) -> str:
        """Return a body without secrets; in JSON, what stands under the name of a secret is one."""
        try:
            value = json.loads(body)
        except ValueError:
            return self.text(body.decode(errors="replace"))
        return self.text(json.dumps(_without_secrets(value), ensure_ascii=False, separators=(",", ":")))

    def _word(self, found: str, form: str) -> str:
        if MADE_UP.fullmatch(found):
            return found
        return self._given.setdefault(found, form.format(len(self._given) + 1))


def _without_secrets(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_secrets(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        name: _shortened(inner, name)
        if isinstance(inner, str) and SECRET_KEYS.fullmatch(name)
        else _without_secrets(inner)
        for name, inner in value.items()
    }


def _shortened(secret: str, name: str = "") -> str:
    """Return the first characters: as many as the service shows to others."""
    if name == OF_OTHERS:
        return "0" * len(secret)
    start = KNOWN_SECRETS.match(secret)
    length = len(start[1]) + 4 if start else 4
    return secret[:length] + "0" * max(len(secret) - length, 0)


class Recorder:
    """Keeps what passes a relay.

    Args:
        scrubber: removes secrets.
        owner: returns the username behind a token.
    """

    def __init__(self, scrubber: Scrubber, owner: Callable[[str], str]) -> None:
        self._scrubber = scrubber
        self._owner = owner
        self._owners: dict[str, str] = {}
        self._interactions: list[dict[str, Any]] = []

    def keep(self, passing: Passing) -> None:
        """Keep one request and its answer."""
        method, target, *_ = passing.request.split(" ", 2)
        sent_body = self._scrubber.sent(passing.sent) if passing.sent else ""
        body = self._scrubber.body(passing.body)
        headers = {
            name: [self._scrubber.text(value)] for name, value in passing.headers.items() if KEPT.fullmatch(name)
        }
        sent = {"accept": ["application/json"]}
        if passing.token is not None:
            if passing.token not in self._owners:
                self._owners[passing.token] = self._owner(passing.token)
            sent["private-token"] = [f"withheld; of: {self._owners[passing.token]}"]
        self._interactions.append(
            {
                "request": {
                    "body": sent_body,
                    "headers": sent,
                    "method": method,
                    "uri": f"{SERVICE}/api/v4/{self._scrubber.text(target)}",
                },
                "response": {
                    "body": {"string": body},
                    "headers": headers,
                    "status": {"code": passing.status, "message": httpx.codes.get_reason_phrase(passing.status)},
                },
            }
        )

    def save(self, file: Path) -> None:
        """Write the cassette."""
        tape = {"interactions": self._interactions, "version": 1}
        file.write_text(yaml.safe_dump(tape, allow_unicode=True), encoding="utf-8")


def record(file: Path, api_url: str, command: list[str]) -> int:
    """Run a command with a relay as its service, write the cassette, and return the command's exit code."""
    origin = api_url.removesuffix("/api/v4")

    def owner(token: str) -> str:
        answer = httpx.get(f"{api_url}/user", headers={"private-token": token}, timeout=60)
        return str(answer.json()["username"]) if answer.is_success else "nobody"

    with between(api_url) as relay:
        recorder = Recorder(Scrubber(origin, relay.api_url.removesuffix("/api/v4")), owner)
        relay.alter = recorder.keep
        line = [each.replace("{url}", relay.api_url) for each in command]
        done = subprocess.run(line, env={**os.environ, "RECONCILER_API_URL": relay.api_url}, check=False)
    recorder.save(file)
    return done.returncode


if __name__ == "__main__":
    if len(sys.argv) < 3 or "RECONCILER_API_URL" not in os.environ:
        sys.exit(__doc__)
    sys.exit(record(Path(sys.argv[1]), os.environ["RECONCILER_API_URL"].rstrip("/"), sys.argv[2:]))
