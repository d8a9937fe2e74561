"""Where the values of created tokens go: to a file, or to a command. Nowhere else."""

import json
import os
import shlex
import stat
import subprocess
from pathlib import Path
from threading import Lock

from reconciler.address import Address
from reconciler.errors import OutputFailed


class TokenFile:
    """Appends one JSON line a token to a file that only its owner can read, on disk before it returns.

    Raises:
        OutputFailed: when it is made, so before anything is created, if the file cannot be written or others may
            read it; when it is called, if the line could not be written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = Lock()
        self._append("")

    def __call__(self, address: Address, value: str) -> None:
        """Write one token."""
        with self._lock:
            self._append(token_line(address, value))

    def _append(self, line: str) -> None:
        try:
            handle = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            with os.fdopen(handle, "a", encoding="utf-8") as file:
                if stat.S_IMODE(os.fstat(handle).st_mode) & 0o077:
                    raise OutputFailed(
                        f"{self._path} may be read by others; first: chmod 600 {shlex.quote(str(self._path))}"
                    )
                file.write(line)
                file.flush()
                os.fsync(handle)
        except OSError as error:
            raise OutputFailed(f"{self._path}: {error.strerror}") from error


class TokenCommand:
    """Runs a command for each token, with one JSON line on its standard input.

    Raises:
        OutputFailed: when it is made, if there is no command; when it is called, if the command cannot be started,
            fails, or takes longer than `seconds`.
    """

    def __init__(self, command: str, seconds: float = 60) -> None:
        try:
            self._words = shlex.split(command)
        except ValueError:
            self._words = []
        if not self._words:
            raise OutputFailed(f"not a command: {command}")
        self._seconds = seconds

    def __call__(self, address: Address, value: str) -> None:
        """Hand over one token."""
        name = self._words[0]
        try:
            done = subprocess.run(
                self._words,
                input=token_line(address, value).encode(),
                stdout=subprocess.DEVNULL,
                timeout=self._seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise OutputFailed(f"{name} did not end within {self._seconds} s") from None
        except OSError as error:
            raise OutputFailed(f"{name}: {error.strerror}") from None
        if done.returncode:
            raise OutputFailed(f"{name} ended with exit code {done.returncode}")


def token_line(address: Address, value: str) -> str:
    """Return the line that is delivered for one token."""
    return json.dumps({"target": str(address.scope), "description": address.name, "token": value}) + "\n"
