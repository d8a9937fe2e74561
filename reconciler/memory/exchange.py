"""A temporary bare repository in which git fetches and pushes, without the settings and hooks of a checkout.

`exchange` opens an `Exchange` for a `Remote`; `store` reads and stores the inventory through it. A token is bound to
the origin of the remote: no `insteadOf`, hook or variable of a shared build folder can send it elsewhere.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import TYPE_CHECKING

from reconciler.errors import ConfigurationError, InventoryUnreadable
from reconciler.memory.inventory import COMMIT_SHA
from reconciler.memory.remotes import Login, Remote
from reconciler.system.processes import CONFIG_KEY, CONFIG_VALUE, HARMLESS_GIT_SETTINGS, inherited
from reconciler.system.terminal import escaped

if TYPE_CHECKING:
    import subprocess

GIT_TIMEOUT_SECONDS = 60.0
"""How long git may take for one fetch or push."""

UNATTENDED_ENVIRONMENT: Mapping[str, str] = {
    "GIT_ALLOW_PROTOCOL": "https:ssh:file",
    "GIT_ASKPASS": "",  # without it, git would run SSH_ASKPASS
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
"""Variables that keep git from the user's configuration and from the terminal."""

EXCHANGE_GIT_SETTINGS: Mapping[str, str] = {
    **HARMLESS_GIT_SETTINGS,
    "core.sshCommand": "ssh -o BatchMode=yes",
    "credential.helper": "",  # an empty value clears the helpers before it
    "gc.auto": "0",  # the repository is deleted after the run
    "http.followRedirects": "false",
    # Less than one byte a second during 30 s: the connection is dead.
    "http.lowSpeedLimit": "1",
    "http.lowSpeedTime": "30",
}

USERNAME, PASSWORD = "RECONCILER_GIT_USERNAME", "RECONCILER_GIT_PASSWORD"
HELPER = f"""!f() {{ test "$1" = get && printf 'username=%s\\npassword=%s\\n' "${USERNAME}" "${PASSWORD}"; }}; f"""
"""A credential helper that prints variables of git's environment: no argument and no URL has the credentials."""

OWN_SETTINGS = r"^(credential\..*|core\.sshcommand)$"
"""The settings by which a user's configuration provides credentials."""

SENTENCE_END = re.compile(r"\.?\n(?:\s*\n\s*|fatal: )")
"""The end of a sentence of git: each has a line of its own, some with a blank line before."""

USER_IN_URL = re.compile(r"(?<=://)[^/@\s]+(?=@)")


@dataclass(slots=True)
class Exchange:
    """A temporary repository, and the remote that it fetches from and pushes to.

    Attributes:
        folder: the folder of the temporary repository.
        remote: the remote.
        seconds: the timeout of one request of git to the remote.
    """

    folder: Path
    remote: Remote
    seconds: float = GIT_TIMEOUT_SECONDS
    _own: tuple[tuple[str, str], ...] | None = field(default=None, repr=False)

    def run(self, arguments: Sequence[str], sent: bytes = b"") -> "subprocess.CompletedProcess[bytes]":
        """Run git without any credentials."""
        return self._git(arguments, sent, [], {}, None)

    def ask(self, branch: str) -> str:
        """Return the last commit of a branch of the remote; empty if there is no such branch.

        Raises:
            InventoryUnreadable: all credentials were refused, or there is no connection.
        """
        output = self._fetching(["ls-remote", "--", self.remote.url, f"refs/heads/{branch}"])
        commit = output.decode(errors="replace").partition("\t")[0]
        if commit and not COMMIT_SHA.fullmatch(commit):
            raise InventoryUnreadable(f"the remote does not answer as git does: {escaped(commit[:100])}")
        return commit

    def fetch(self, branch: str, depth: int = 1) -> None:
        """Fetch the last commits of a branch.

        Raises:
            InventoryUnreadable: as `ask`, or there is no such branch.
        """
        options = ["--quiet", "--no-tags", "--no-write-fetch-head", f"--depth={depth}"]
        self._fetching(["fetch", *options, "--", self.remote.url, f"+refs/heads/{branch}:refs/heads/{branch}"])

    def history(self, commit: str) -> frozenset[str]:
        """Fetch a commit and its ancestors, without their files; return the IDs.

        Raises:
            InventoryUnreadable: the remote lacks the commit, all credentials were refused, or there is no connection.
        """
        options = ["--quiet", "--no-tags", "--no-write-fetch-head", "--filter=tree:0"]
        self._fetching(["fetch", *options, "--", self.remote.url, commit])
        return frozenset(self.run(["rev-list", commit, "--"]).stdout.decode().split())

    def fetch_ref(self, ref: str) -> None:
        """Fetch the commit at a ref, if the ref exists: the ref is sent as a pattern, which may match nothing.

        Raises:
            InventoryUnreadable: all credentials were refused, or there is no connection.
        """
        options = ["--quiet", "--no-tags", "--no-write-fetch-head"]
        self._fetching(["fetch", *options, "--", self.remote.url, f"+{ref}*:{ref}*"])

    def replace_ref(self, ref: str, commit: str, login: Login | None) -> str:
        """Push a commit to a ref, replacing its present commit; return the reason of a failure, empty after success."""
        done = self._with(login, ["push", "--quiet", "--no-verify", "--", self.remote.url, f"+{commit}:{ref}"])
        return self._refusal(login, done.stderr) if done.returncode else ""

    def push(self, commit: str, branch: str, login: Login | None, *, skip_ci: bool) -> str:
        """Push a commit, unless the branch has other new commits.

        Return the reason of a failure, empty after success.
        """
        # Every apply pushes a commit: without this option, GitLab would start a pipeline for each.
        option = ["--push-option=ci.skip"] if skip_ci else []
        # Without `+`, the server refuses a commit that does not descend from the branch's last commit: this is the
        # compare-and-swap that makes concurrent applies safe.
        names = f"{commit}:refs/heads/{branch}"
        done = self._with(login, ["push", "--quiet", "--no-verify", *option, "--", self.remote.url, names])
        return self._refusal(login, done.stderr) if done.returncode else ""

    def _fetching(self, arguments: Sequence[str]) -> bytes:
        """Run git with each of the credentials until the remote accepts a credential, and return the output."""
        refusals, end = [], monotonic() + self.seconds
        for login in self.remote.fetching:
            done = self._with(login, arguments)
            if done.returncode == 0:
                return done.stdout
            refusals.append(self._refusal(login, done.stderr))
            if monotonic() >= end:
                break
        raise InventoryUnreadable("; ".join(refusals))

    def _with(self, login: Login | None, arguments: Sequence[str]) -> "subprocess.CompletedProcess[bytes]":
        """Run git with credentials that are sent to the origin of the remote only."""
        settings = [("http.sslCAInfo", os.path.abspath(self.remote.ca_file))] if self.remote.ca_file else []  # noqa: PTH100 - links stay
        if login is None:
            return self._git(arguments, b"", [*settings, *self._own_settings()], {}, self.seconds)
        settings.append((f"credential.{self.remote.origin}.helper", HELPER))
        return self._git(arguments, b"", settings, {USERNAME: login.username, PASSWORD: login.token}, self.seconds)

    def _git(
        self,
        arguments: Sequence[str],
        sent: bytes,
        git_settings: Sequence[tuple[str, str]],
        variables: Mapping[str, str],
        seconds: float | None,
    ) -> "subprocess.CompletedProcess[bytes]":
        import subprocess  # noqa: PLC0415 - most commands start without it

        # Settings go through the environment: other users of the machine can read arguments.
        every = [*EXCHANGE_GIT_SETTINGS.items(), *git_settings]
        environment = {name: value for name, value in _environment().items() if name not in {USERNAME, PASSWORD}}
        if self.remote.url.startswith("http:"):  # only where it was allowed; a proxy would see the token
            every.append(("http.proxy", ""))
            variables = {**variables, "GIT_ALLOW_PROTOCOL": "http"}
        environment |= {**UNATTENDED_ENVIRONMENT, "GIT_CONFIG_COUNT": str(len(every)), **variables}
        for number, (name, value) in enumerate(every):
            environment |= {f"{CONFIG_KEY}{number}": name, f"{CONFIG_VALUE}{number}": value}
        command = ["git", f"--git-dir={self.folder}", *arguments]
        try:
            return subprocess.run(
                command,
                input=sent,
                capture_output=True,
                check=False,
                env=environment,
                cwd=self.folder,
                timeout=seconds,
            )
        except subprocess.TimeoutExpired:
            output = f"no response within {seconds:g} seconds".encode()
            return subprocess.CompletedProcess(command, 1, b"", output)

    def _own_settings(self) -> tuple[tuple[str, str], ...]:
        """Return the credential settings of the user's own git; no other setting of this configuration is used."""
        if self._own is None:
            self._own = tuple(pair for scope in ("--system", "--global") for pair in _settings(scope))
        return self._own

    def _refusal(self, login: Login | None, output: bytes) -> str:
        """Return the sentences of git or of the server as one, without any secret."""
        text = " ".join(SENTENCE_END.sub("; ", output.decode(errors="replace").strip()).split()).removesuffix(".")
        for secret in self.remote.secrets:
            text = text.replace(secret, "***")
        text = escaped(USER_IN_URL.sub("***", text)).removeprefix("fatal: ")
        return f"with {login.name}: {text}" if login else text


@contextmanager
def exchange(remote: Remote, object_format: str = "sha1") -> Iterator[Exchange]:
    """Make a temporary repository for a remote; it is deleted when the block ends.

    Raises:
        ConfigurationError: git is missing.
    """
    with TemporaryDirectory(prefix="reconciler-") as folder:
        made = Exchange(Path(folder), remote)
        try:
            # Without a template: that of the machine may contain hooks.
            made.run(["init", "--quiet", "--bare", "--template=", f"--object-format={object_format}", "--", folder])
        except FileNotFoundError:
            raise ConfigurationError("inventory: git is not installed here") from None
        yield made


def _environment() -> dict[str, str]:
    return {name: value for name, value in inherited().items() if not name.startswith("GIT_")}


def _settings(scope: str) -> Iterator[tuple[str, str]]:
    """Yield the user's settings about credentials, in the order in which git reads them."""
    import subprocess  # noqa: PLC0415 - most commands start without it

    command = ["git", "config", scope, "--null", "--get-regexp", OWN_SETTINGS]
    # In `/`, so that no `includeIf` of the user's configuration depends on the checkout.
    done = subprocess.run(command, capture_output=True, check=False, env=_environment(), cwd="/")
    for entry in os.fsdecode(done.stdout).split("\0")[:-1]:
        name, _, value = entry.partition("\n")
        yield name, value
