"""The delivery of the values of created tokens: to a `TokenFile` or a `TokenCommand`, and nowhere else.

A value may be delivered twice: a rotated token's successor is delivered once more before its predecessor is deleted.
"""

import json
import os
import shlex
import stat
import subprocess
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from fcntl import LOCK_EX, flock
from pathlib import Path
from threading import Lock

from reconciler.engine.apply.options import ApplyOptions
from reconciler.engine.apply.reread import TargetReader, collection_of
from reconciler.errors import OutputFailed, ServiceError
from reconciler.model.item import Delete, Outcome, Status
from reconciler.model.protocols import Json
from reconciler.model.targets import Address
from reconciler.system.files import append_line, naming, open_own, values_of
from reconciler.system.processes import inherited

NOT_DELIVERED = "a token could not be delivered, so the run was ended"


class Delivery:
    """The delivery of the values of one target's tokens."""

    def __init__(self, target_reader: TargetReader, options: ApplyOptions) -> None:
        self._reader, self._options = target_reader, options
        self._delivered: set[Address] = set()

    def values(self, address: Address) -> dict[int | None, str]:
        """Return the values of the own tokens with a name, by ID, newest last.

        Raises:
            ServiceError: the list cannot be read, or an entry of it is invalid.
        """
        part = collection_of(address, self._reader.kinds)
        return {token.id: value for token, value in self._reader.secrets(part, address)}

    def hand_over(self, address: Address, token_value: str) -> None:
        """Deliver the value of a token.

        Raises:
            OutputFailed: the delivery failed.
        """
        if self._options.deliver is None:
            raise OutputFailed("no token sink is configured")
        self._options.deliver(address, token_value)
        self._delivered.add(address)

    def hand_over_other(self, address: Address, number: int) -> bool:
        """Deliver the value of another token with the name, if it is our own; return whether that succeeded."""
        values = self.values(address)
        try:
            self.hand_over(address, values[number])
        except (KeyError, OutputFailed):
            return False
        return True

    def hand_over_successor(self, deletion: Delete) -> Outcome | None:
        """Deliver the successor of a token; return the outcome of its deletion if that fails.

        The run that created the successor may have been killed before it could deliver it.
        """
        if deletion.successor_id is None or deletion.address in self._delivered:
            return None
        try:
            values = self.values(deletion.address)
            if deletion.successor_id not in values:
                return Outcome(deletion, Status.STALE, f"its successor (ID {deletion.successor_id}) no longer exists")
            self.hand_over(deletion.address, [*values.values()][-1])
        except ServiceError as error:
            self._options.stop.after(error)
            return Outcome(
                deletion, Status.FAILED, f"the value of its successor could not be read for delivery: {error}"
            )
        except OutputFailed as error:
            self._options.stop.cancel(NOT_DELIVERED)
            return Outcome(deletion, Status.FAILED, f"the value of its successor could not be delivered: {error}")
        return None


class TokenFile:
    """Appends one JSON line a token to a file that only its owner can read, on disk before it returns.

    A line is not written again if it is the last one in the file for that token's name.

    Raises:
        OutputFailed: when it is made, so before anything is created, if the file cannot be written, is not ours, or
            others may read it; when it is called, if the line could not be written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = Lock()
        with self._opened():
            pass

    def __call__(self, address: Address, token_value: str) -> None:
        """Write one token."""
        line = token_line(address, token_value)
        with self._lock, self._opened() as handle, naming(self._path):
            # Shards may deliver to one file side by side.
            flock(handle, LOCK_EX)
            if not _is_newest(json.loads(line), os.pread(handle, os.fstat(handle).st_size, 0)):
                append_line(handle, line)

    @contextmanager
    def _opened(self) -> Iterator[int]:
        handle = open_own(self._path, instead=", or use --tokens-command")
        try:
            # Asked of the open file: a check by name could be about another file.
            if stat.S_IMODE(os.fstat(handle).st_mode) & 0o077:
                raise OutputFailed(
                    f"{self._path} may be read by others; first: chmod 600 {shlex.quote(str(self._path))}"
                )
            yield handle
        finally:
            os.close(handle)


class TokenCommand:
    """Runs a command for each token, with one JSON line on its standard input. It does not inherit our tokens.

    Args:
        command: with its arguments, as a shell would read them; no shell is run.
        tokens: our own tokens that do not come from the environment.
        seconds: the time limit.

    Raises:
        OutputFailed: when it is made, if there is no command; when it is called, if the command cannot be started,
            fails, or takes longer than `seconds`.
    """

    def __init__(self, command: str, tokens: Collection[str] = (), seconds: float = 60) -> None:
        try:
            self._words = shlex.split(command)
        except ValueError:
            self._words = []
        if not self._words:
            raise OutputFailed(f"not a command: {command}")
        self._tokens, self._seconds = tokens, seconds

    def __call__(self, address: Address, token_value: str) -> None:
        """Hand over one token."""
        name = self._words[0]
        try:
            done = subprocess.run(
                self._words,
                input=f"{token_line(address, token_value)}\n".encode(),
                # A command that echoes its input would print the token into the log of a job.
                stdout=subprocess.DEVNULL,
                env=inherited(self._tokens),
                timeout=self._seconds,
                check=False,
                process_group=0,  # Ctrl-C goes to the group in the foreground: a delivery is finished
            )
        except subprocess.TimeoutExpired:
            raise OutputFailed(f"{name} did not end within {self._seconds} s") from None
        except OSError as error:
            raise OutputFailed(f"{name}: {error.strerror}") from None
        if done.returncode:
            raise OutputFailed(f"{name} ended with exit code {done.returncode}")


def token_line(address: Address, token_value: str) -> str:
    """Return the line that is delivered for one token."""
    named = {"target": str(address.target), "section": address.section, "description": address.name}
    return json.dumps({**named, "token": token_value})


def _is_newest(token_entry: Mapping[str, Json], delivered: bytes) -> bool:
    """Return whether an entry is the newest of its name in a file of tokens."""
    if json.dumps(token_entry["token"]).encode() not in delivered:
        return False
    name = token_entry.items() - {("token", token_entry["token"])}
    entries = [
        token_entry
        for token_entry in values_of(delivered)
        if isinstance(token_entry, dict) and name <= token_entry.items()
    ]
    return entries[-1:] == [token_entry]
