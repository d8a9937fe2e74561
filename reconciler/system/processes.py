"""Child processes: git, and commands of the user. No child inherits our tokens; git runs no program of a repository.

Begin with `git`, and with `inherited` for other programs.
"""

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess

OWN_TOKEN = re.compile(r"RECONCILER_((\w+_)?TOKEN|NOTIFY)")
"""Variables that hold our secrets: RECONCILER_TOKEN, RECONCILER_NOTE_TOKEN, and the URL of a webhook."""

LONG_ENOUGH = 8
"""Characters from which a token is recognised inside a longer value, such as the URL of a repository."""

KEPT_BY_GIT = frozenset({"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"})
"""Variables that locate the user's own git configuration. All other git variables are withheld."""

SAFE_DIRECTORY = "safe.directory"
"""The setting by which users trust another user's repository. CI jobs set it by variables."""

CONFIG_KEY, CONFIG_VALUE = "GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_"
"""Prefixes of the variables that set a git option; a number follows."""

HARMLESS_GIT_SETTINGS: Mapping[str, str] = {
    "safe.bareRepository": "explicit",  # a folder that looks like a repository is not one
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
}
"""Settings that override those of the repository. Git runs no program that a repository names."""

OFFLINE: Mapping[str, str] = {
    "GIT_ALLOW_PROTOCOL": "",  # overrides `protocol.NAME.allow` of the repository, in every version
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_TERMINAL_PROMPT": "0",
}
"""Variables that keep git from the network and from the terminal."""


def own_tokens(environment: Mapping[str, str]) -> frozenset[str]:
    """Return the values of our tokens in an environment."""
    values = (value.strip() for name, value in environment.items() if OWN_TOKEN.fullmatch(name))
    return frozenset(value for value in values if value)


def reveals_token(name: str, text: str, tokens: Collection[str]) -> bool:
    """Whether a variable is one of our tokens, or its value contains one."""
    return bool(OWN_TOKEN.fullmatch(name)) or any(
        token == text.strip() or (len(token) >= LONG_ENOUGH and token in text) for token in tokens
    )


def inherited(tokens: Collection[str] = ()) -> dict[str, str]:
    """Return the environment for a child process: ours, without our tokens.

    Args:
        tokens: further values to withhold, such as a token from a file.
    """
    withheld = own_tokens(os.environ) | frozenset(tokens)
    return {name: value for name, value in os.environ.items() if not reveals_token(name, value, withheld)}


def repository(path: Path) -> Path | None:
    """Return the checkout that contains a path: the nearest folder with `.git`; None outside any checkout.

    Git also accepts a folder that looks like a bare repository, and a commit can add such a folder. No commit can add
    `.git`.
    """
    real = Path(os.path.realpath(path))
    return next((folder for folder in (real, *real.parents) if os.path.lexists(folder / ".git")), None)


def git(top: Path, arguments: Sequence[str], sent: bytes = b"") -> "subprocess.CompletedProcess[bytes]":
    """Run git in the top folder of a checkout; see `repository`.

    Only for commands that read, or move a ref. Nothing is fetched, no hook or program of the repository's configuration
    runs, and variables that point git to another repository are withheld.

    Raises:
        OSError: git is not installed.
    """
    import subprocess  # noqa: PLC0415 - most commands start without it

    environment = inherited()
    settings = [f"{name}={value}" for name, value in HARMLESS_GIT_SETTINGS.items()]
    settings += [f"{SAFE_DIRECTORY}={value}" for value in _trusted(environment)]
    command = ["git", "-C", str(top), "--no-optional-locks", "--no-replace-objects"]
    command += [word for setting in settings for word in ("-c", setting)]
    kept = {name: value for name, value in environment.items() if not name.startswith("GIT_") or name in KEPT_BY_GIT}
    return subprocess.run([*command, *arguments], input=sent, capture_output=True, check=False, env={**kept, **OFFLINE})


def _trusted(environment: Mapping[str, str]) -> Iterator[str]:
    """Yield the values of `safe.directory` in variables, as many as git would read."""
    count = environment.get("GIT_CONFIG_COUNT", "")[:9]
    for number in range(min(int(count), len(environment)) if count.isdecimal() else 0):
        if environment.get(f"{CONFIG_KEY}{number}", "").lower() == SAFE_DIRECTORY:
            yield environment.get(f"{CONFIG_VALUE}{number}", "")
