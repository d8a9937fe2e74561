"""The remote of the inventory's branch, and the credentials for it. Nothing is sent here: `exchange` runs git.

Of a checkout, only the URL of the remote is read. In a CI job, even the URL comes from the job's variables, since other
jobs may have changed the folder. Begin with `job_remote` and `checkout_remote`.
"""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from reconciler.errors import ConfigurationError
from reconciler.system.processes import git

PUSH_TOKEN = "RECONCILER_PUSH_TOKEN"  # noqa: S105 - the name of a variable
API_TOKEN = "RECONCILER_TOKEN"  # noqa: S105 - likewise
JOB_TOKEN = "CI_JOB_TOKEN"  # noqa: S105 - likewise

ANY_USER = "reconciler"
"""The user name beside an access token, which the service ignores."""
JOB_USER = "gitlab-ci-token"

SHELL_ADDRESS = re.compile(r"(?:[^@/:\s]+@)?[^-@/:\s][^@/:\s]*:(?!/?/)(?!:)\S+")
"""An address of ssh such as git@gitlab.example.com:acme/settings.git."""


@dataclass(frozen=True, slots=True)
class Person:
    """The name and the e-mail address of an author or committer."""

    name: str
    email: str


def nobody() -> None:
    """Return None: the person is unknown."""


@dataclass(frozen=True, slots=True)
class Login:
    """Credentials for one origin.

    Attributes:
        name: their name in messages, such as the variable that has the token.
        username: the user name that is sent with the token.
        token: a secret.
        person: returns the owner of the token, None if unknown; called before each push.
    """

    name: str
    username: str
    token: str = field(repr=False)
    person: Callable[[], Person | None] = field(default=nobody, repr=False, compare=False)


OWN: Login | None = None
"""The user's own credentials: those of ssh, or of the credential helpers in the user's git configuration."""


@dataclass(frozen=True, slots=True)
class Remote:
    """A repository that git asks over a network, or by a path.

    Attributes:
        url: https, http, ssh or file; without user and password where it is https or http.
        fetching: the credentials to fetch with, each in turn until one is not refused.
        pushing: likewise to push with.
        ca_file: the certificates to trust; empty for the system's.
    """

    url: str
    fetching: tuple[Login | None, ...] = (OWN,)
    pushing: tuple[Login | None, ...] = (OWN,)
    ca_file: str = ""

    @property
    def origin(self) -> str:
        """Scheme, host and port, to which credentials are bound; empty where there is no such thing."""
        return origin_of(self.url)

    @property
    def secrets(self) -> frozenset[str]:
        """All tokens."""
        return frozenset(login.token for login in (*self.fetching, *self.pushing) if login)


def origin_of(url: str) -> str:
    """Return scheme, host and port of an https or http URL; empty for another."""
    parts = urlsplit(url)
    is_web = parts.scheme in ("https", "http")
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2].lower()}" if is_web else ""


def is_never_plain(_url: str) -> bool:
    """Return False: no token is sent to a URL of http."""
    return False


def in_job(environment: Mapping[str, str]) -> bool:
    """Return whether this is a CI job with the variables of its repository."""
    return all(environment.get(name) for name in ("GITLAB_CI", "CI_SERVER_URL", "CI_PROJECT_PATH"))


def starter(environment: Mapping[str, str]) -> Person | None:
    """Return the person who started the CI job; None elsewhere."""
    name, email = environment.get("GITLAB_USER_NAME", ""), environment.get("GITLAB_USER_EMAIL", "")
    return Person(name, email) if environment.get("GITLAB_CI") and name else None


def job_remote(
    environment: Mapping[str, str],
    *,
    api_url: str,
    api_token: str,
    user: Callable[[], Person | None] = nobody,
    ca_file: str = "",
    may_be_plain: Callable[[str], bool] = is_never_plain,
) -> Remote:
    """Return the repository of a CI job.

    Args:
        environment: of the job.
        api_url: of the service that is managed.
        api_token: for this service; git gets the token only if the repository has the same origin.
        user: returns the owner of the token; see `Login.person`.
        ca_file: see `Remote`.
        may_be_plain: returns whether a token may be sent to a URL of http, as for the API.

    Raises:
        ConfigurationError: the job's service uses plain http, which is not allowed.
    """
    url = f"{environment['CI_SERVER_URL'].rstrip('/')}/{environment['CI_PROJECT_PATH']}.git"
    if not origin_of(url) or (origin_of(url).startswith("http:") and not may_be_plain(url)):
        raise ConfigurationError(
            "inventory: CI_SERVER_URL is not an https URL, and tokens are sent to no other without --insecure-http: "
            f"{url}"
        )
    token = environment.get(PUSH_TOKEN, "").strip()
    ours = [Login(PUSH_TOKEN, ANY_USER, token)] if token else []
    if api_token and origin_of(url) == origin_of(api_url):
        ours.append(Login(API_TOKEN, ANY_USER, api_token, user))
    job = environment.get(JOB_TOKEN, "")
    person = starter(environment)
    its = [Login(JOB_TOKEN, JOB_USER, job, lambda: person)] if job else []
    # By default a job token may fetch and not push: it is tried first for the one, and last for the other.
    return Remote(url, (*its, *ours) or (OWN,), (*ours, *its) or (OWN,), ca_file)


def has_remote(top: Path, name: str) -> bool:
    """Return whether a checkout has a remote of that name."""
    return bool(_url(top, name))


def has_any_remote(top: Path) -> bool:
    """Return whether a checkout has a remote at all."""
    return git(top, ["config", "--get-regexp", r"^remote\..*\.url$"]).returncode == 0


def checkout_remote(
    top: Path, name: str, ca_file: str = "", may_be_plain: Callable[[str], bool] = is_never_plain
) -> Remote:
    """Return a remote of a checkout, by its URL.

    Args:
        top: the top folder of the checkout.
        name: of the remote.
        ca_file: see `Remote`.
        may_be_plain: returns whether a URL of http may get a password, as for the API.

    Raises:
        ConfigurationError: there is no such remote, or its URL is of another protocol.
    """
    # Git would read the name as an option.
    if name.startswith("-"):
        raise ConfigurationError(f"inventory: remote: {name!r} is not the name of a remote")
    url = _url(top, name)
    if not url:
        raise ConfigurationError(
            f"inventory: remote: {top} has no remote {name!r}: add it (git remote add {name} URL), or name one that "
            "`git remote` lists; without `remote`, the inventory is kept in this clone alone"
        )
    return _remote(url, top, name, ca_file, may_be_plain)


def project_on(service: str, url: str) -> str:
    """Return the path of the project whose repository has a URL; empty if the repository is not on this service.

    Args:
        service: the URL of the service, without `/api/v4`.
        url: as git takes it: https, or ssh in either of its forms.
    """
    ours = urlsplit(service)
    is_short = "://" not in url and SHELL_ADDRESS.fullmatch(url) is not None
    parts = urlsplit(f"ssh://{url.replace(':', '/', 1)}" if is_short else url)
    if parts.hostname is None or parts.hostname != ours.hostname:
        return ""
    root = ours.path.strip("/") if origin_of(url) else ""
    path = parts.path.strip("/").removesuffix(".git")
    return path.removeprefix(f"{root}/") if path.startswith(root) else ""


def remote_url(environment: Mapping[str, str], top: Path, name: str) -> str:
    """Return the URL of the repository that has the inventory: the CI job's, else that of a remote of the checkout."""
    if in_job(environment):
        return f"{environment['CI_SERVER_URL'].rstrip('/')}/{environment['CI_PROJECT_PATH']}.git"
    return _url(top, name)


def _url(top: Path, name: str) -> str:
    """Return the URL of a remote as the checkout has it; empty if there is no such remote."""
    done = git(top, ["config", "--get", f"remote.{name}.url"])
    return "" if done.returncode else os.fsdecode(done.stdout).rstrip("\n")


def _remote(url: str, top: Path, name: str, ca_file: str, may_be_plain: Callable[[str], bool]) -> Remote:
    """Return a remote from its URL as git reads it."""
    if origin_of(url) and (url.startswith("https:") or may_be_plain(url)):
        parts = urlsplit(url)
        user, _, password = parts.netloc.rpartition("@")[0].partition(":")
        clean = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
        login = Login(f"the URL of {name}", unquote(user), unquote(password)) if password else OWN
        return Remote(clean, (login,), (login,), ca_file)
    if url.startswith("ssh://") or SHELL_ADDRESS.fullmatch(url):
        return Remote(url)
    if "://" not in url and "::" not in url:
        return Remote(f"file://{quote(os.path.normpath(top / url))}")
    if url.startswith("file:///"):
        return Remote(url)
    protocol = re.split("::?", url)[0]
    raise ConfigurationError(
        f"inventory: remote: {name!r} has a URL of {protocol}; only https, ssh and file are used, and http "
        f"with --insecure-http: git remote set-url {name} URL"
    )
