"""`reconciler.yaml`, the service's address and the token: their sources, and which values are refused.

Begin with `read_configuration` and `connected`.
"""

import logging
import os
import shlex
import stat
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from errno import EACCES, EISDIR, ENOENT
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click
from click.core import ParameterSource

from reconciler import CONFIGURATION
from reconciler.cli.foreign_words import not_read
from reconciler.cli.options import ConnectionOptions, PlanningOptions, SourceOptions
from reconciler.errors import ConfigurationError, UsageError
from reconciler.model.wording import advised
from reconciler.system.checkout import in_ci, lies_outside
from reconciler.system.processes import own_tokens, reveals_token
from reconciler.system.secrets import concealed

if TYPE_CHECKING:
    from datetime import date, timedelta

    from reconciler.document.guard import Limits
    from reconciler.service import Client

LOG = logging.getLogger("reconciler")


A_URL = "RECONCILER_API_URL or --api-url"
SUCH_AS = "such as https://host/api/v4"

ALLOW_DELETES_UNTIL = "allow_deletes until"
"""The key of the last day of the permission of `reconciler.yaml`."""

LISTS = ("paths", "values", "env")
"""The keys that take one string or several."""


def read_configuration() -> Mapping[str, Any]:
    """Return the defaults of parameters: those of `reconciler.yaml` in the working directory, then those of a CI job.

    The token file that `reconciler.yaml` names does not count if the environment holds a token.

    Raises:
        ConfigurationError: the file is not valid; or this is a CI job, and the file names manifests or values outside
            of the checkout, where the job's secret files lie.
    """
    job = os.environ.get("CI_API_V4_URL")
    job_defaults = {"api_url": job} if job else {}
    file = Path(CONFIGURATION)
    if not file.is_file():
        return job_defaults
    from reconciler import configuration

    read = configuration.read_configuration(file)
    if read.get("allow_deletes"):
        permission = read["allow_deletes"]
        read |= {"allow_deletes": permission["count"], ALLOW_DELETES_UNTIL: configuration.day(permission["until"])}
    given = {
        key: [value] if key in LISTS and isinstance(value, str) else value
        for key, value in read.items()
        if key != "token_file" or not os.environ.get("RECONCILER_TOKEN")
    }
    if "set" in given:
        given["set"] = [f"{name}={value}" for name, value in read["set"].items()]
    for key in ("paths", "values"):
        outside = next((path for path in given.get(key, ()) if lies_outside(path)), None)
        if outside is not None:
            option = "as PATHS" if key == "paths" else "by --values"
            raise ConfigurationError(
                f"{CONFIGURATION}: {key}: {outside} lies outside of the checkout, and a merge request can change that "
                f"file; move it into the checkout, or name it {option} in the job's script instead"
            )
    return job_defaults | given


def configured() -> Mapping[str, Any]:
    """Return the defaults that `reconciler.yaml` and a CI job set for this command; see `read_configuration`."""
    context = click.get_current_context(silent=True)
    return (context.default_map if context else None) or {}


def on_command_line(*names: str) -> tuple[str, ...]:
    """Return the parameters among some that have a value on the command line of this run, not in `reconciler.yaml`."""
    source = click.get_current_context().get_parameter_source
    return tuple(name for name in names if source(name) is ParameterSource.COMMANDLINE)


def given_outside(*names: str) -> tuple[str, ...]:
    """Return the parameters among some that have a value on the command line or in the environment."""
    source = click.get_current_context().get_parameter_source
    return tuple(name for name in names if source(name) in (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT))


def trusted(connection: ConnectionOptions) -> tuple[str | None, bool]:
    """Return the file of the certificates that every request of this run trusts, and whether the system's count too.

    The runner of a CI job knows the certificates of the service that runs the job, which may be another service than
    the managed one.
    """
    file = connection.ca_file or os.environ.get("RECONCILER_CA_FILE")
    # A file that somebody names replaces the certificates of the system; that of the runner only adds to them.
    return (file, False) if file else (os.environ.get("CI_SERVER_TLS_CA_FILE") or None, True)


def open_client(
    connection: ConnectionOptions, *, brisk: bool = False, given_token: str | None = None, reads_moved: bool = True
) -> "Client":
    """Return a client for the configured service; no request is made yet.

    Args:
        connection: the options.
        brisk: whether to give up soon on a service that cannot be reached or is out of order.
        given_token: used instead of the configured token.
        reads_moved: whether a moved target is read at its new path even though the run may not write there.

    Raises:
        ConfigurationError: no URL, no token, a URL that is not safe, a token file that others may write to.
        UsageError: an invalid rate or duration.
    """
    from reconciler.service import Client, Policy, Rate

    try:
        rate = None if connection.rate is None else Rate.parse(connection.rate)
    except ValueError as error:
        raise UsageError(f"--rate {error}") from None
    policy = Policy(
        concurrency=connection.concurrency,
        rate=rate,
        max_wait=duration("--max-wait", connection.max_wait).total_seconds(),
        follow_moved=connection.follow_moved,
        reads_moved=reads_moved or connection.follow_moved,
    )
    if brisk:
        policy = replace(policy, connect_timeout=5, read_timeout=10, tries=2, first_tries=1)
    url, (ca_file, besides) = checked_api_url(connection), trusted(connection)
    return Client(url, given_token or _token(connection), ca_file=ca_file, besides=besides, policy=policy)


@contextmanager
def connected(
    connection: ConnectionOptions, *, brisk: bool = False, only_reads: bool = False, reads_moved: bool = True
) -> "Iterator[Client]":
    """Connect to the service; see `open_client`.

    A command that only reads takes the token for reading, if there is one.
    """
    token = reading_token() if only_reads else None
    with open_client(connection, brisk=brisk, given_token=token, reads_moved=reads_moved) as client:
        try:
            yield client
        except KeyboardInterrupt:
            client.stop.set()
            raise


def limits_of(planning: PlanningOptions, today: "date", *, in_job: bool) -> "Limits":
    """Return the limits of a plan that is made on this day; see `allowed_deletes`."""
    from reconciler.document.guard import Limits

    return Limits(allowed_deletes(planning, today), planning.max_changes, planning.max_loosening, in_job=in_job)


def allowed_deletes(planning: PlanningOptions, today: "date") -> int | None:
    """Return the allowed deletions; none, with a warning, by a permission of `reconciler.yaml` that has ended."""
    until, given = configured().get(ALLOW_DELETES_UNTIL), planning.allow_deletes
    is_flag = given is not None and bool(given_outside("allow_deletes"))
    if until is None or is_flag or today <= until:
        return given
    LOG.warning(
        "%s: allow_deletes ended on %s and no longer counts; remove it, or set a later day", CONFIGURATION, until
    )
    return None


def grace_of(planning: PlanningOptions) -> "timedelta":
    """Return the age of a successor at which its predecessor is deleted; commands without the option have the same age.

    Raises:
        UsageError: the value is not a duration.
    """
    context = click.get_current_context(silent=True)
    has_option = context is not None and "grace" in context.params
    return duration("--grace", planning.grace if has_option else configured().get("grace", planning.grace))


def duration(option: str, text: str) -> "timedelta":
    """Return the value of an option that takes a duration, such as 24h.

    Raises:
        UsageError: the value is not a duration, or too long.
    """
    from reconciler.model.resource import read_duration

    try:
        return read_duration(text)
    except ValueError as error:
        raise UsageError(f"{option}: {error}; not {text}") from None


def template_variables(sources: SourceOptions, secrets: Callable[[], Collection[str]]) -> tuple[str, ...]:
    """Return the names of the environment variables that templates may read.

    Args:
        sources: the options.
        secrets: returns our own secrets.

    Raises:
        ConfigurationError: a variable has one of our own tokens; or this is a CI job, and `reconciler.yaml` names the
            variables: with a template, a merge request would show any secret of the job.
    """
    if sources.env and in_ci() and not given_outside("env"):
        raise ConfigurationError(
            f"{CONFIGURATION}: env is not accepted in a CI job, where a merge request can change that file, and plans "
            f"show what templates read; set RECONCILER_ENV to {' '.join(sources.env)!r} in the CI/CD settings, "
            "or give --env"
        )
    tokens = secrets() if sources.env else ()
    for name in sources.env:
        if reveals_token(name, os.environ.get(name, ""), tokens):
            raise ConfigurationError(
                f"templates may not read the environment variable {name}: it holds a token of reconciler, and plans "
                f"show what templates read; remove it from --env, or from env in {CONFIGURATION}"
            )
    return sources.env


def tokens_of(connection: ConnectionOptions, notify: str | None = None) -> frozenset[str]:
    """Return our own secrets: those of the environment, the token of the file, even if unused, and the webhook."""
    tokens = own_tokens(os.environ)
    file = Path(connection.token_file or os.environ.get("RECONCILER_TOKEN_FILE", ""))
    try:
        # A pipe, such as the output of a command, can be read only once: that is left to the client.
        token = file.read_text(encoding="utf-8", errors="replace").strip() if file.is_file() else ""
    except OSError:
        token = ""
    return tokens | {secret for secret in (token, notify) if secret}


def _refuse_redirected_token(connection: ConnectionOptions) -> None:
    """In a CI job, refuse a `reconciler.yaml` that decides who gets the token: a merge request may change that file.

    Raises:
        ConfigurationError: the file names another service than the job's, or certificates to trust.
    """
    job, context = os.environ.get("CI_API_V4_URL"), click.get_current_context(silent=True)
    if not job or context is None:
        return
    in_file = [
        name for name in ("api_url", "ca_file") if context.get_parameter_source(name) is ParameterSource.DEFAULT_MAP
    ]
    if "api_url" in in_file and _origin(connection.api_url or "") != _origin(job):
        raise ConfigurationError(
            f"{CONFIGURATION}: api_url {connection.api_url} is not the service of this CI job ({job}), and a merge "
            "request can change that file; if it is meant, set RECONCILER_API_URL in the CI/CD settings, or give "
            "--api-url"
        )
    if "ca_file" in in_file:
        raise ConfigurationError(
            f"{CONFIGURATION}: ca_file is not accepted in a CI job, where a merge request can change that file; set "
            "RECONCILER_CA_FILE in the CI/CD settings, or give --ca-file"
        )


def _origin(url: str) -> tuple[str, str]:
    """Return the scheme, and the host with its port."""
    parts = urlsplit(url)
    return parts.scheme, parts.netloc.lower().removesuffix({"http": ":80", "https": ":443"}.get(parts.scheme, ""))


def checked_api_url(connection: ConnectionOptions) -> str:
    """Return the URL of the service.

    Raises:
        ConfigurationError: there is no URL, or the URL is not safe; see `open_client`.
    """
    if not connection.api_url:
        foreign = not_read("RECONCILER_API_URL", os.environ)
        raise ConfigurationError(f"no service: set RECONCILER_API_URL or --api-url, {SUCH_AS}{foreign}")
    if concealed(connection.api_url) != connection.api_url:
        raise ConfigurationError(f"{A_URL} holds a token or a password; it must be the URL alone, {SUCH_AS}")
    try:
        url = urlsplit(connection.api_url)
    except ValueError:
        raise ConfigurationError(f"{A_URL} is not the URL of an API, {SUCH_AS}") from None
    # What is no URL at all is not shown: it may be a token.
    if not url.scheme or not url.hostname:
        raise ConfigurationError(f"{A_URL} is not the URL of an API, {SUCH_AS}")
    if url.scheme not in ("http", "https") or url.query or url.fragment:
        raise ConfigurationError(f"not the URL of an API: {url.hostname}; {SUCH_AS}")
    _refuse_redirected_token(connection)
    if not connection.insecure_http and exposes_token(connection.api_url):
        raise ConfigurationError(
            f"http://{url.hostname} would send the token unprotected; use https, or --insecure-http if that is meant"
        )
    return connection.api_url.rstrip("/")


def exposes_token(api_url: str) -> bool:
    """Whether the token would be sent unencrypted to another host."""
    from reconciler.service.connection import is_loopback

    return urlsplit(api_url).scheme == "http" and not is_loopback(api_url)


def may_be_plain(connection: ConnectionOptions) -> Callable[[str], bool]:
    """Return a predicate: whether git may use a URL of http, as the client of the API may."""
    return lambda url: connection.insecure_http or not exposes_token(url)


def reading_token() -> str | None:
    """Return the token for commands that only read; None for the usual token, which the command line may name."""
    return None if on_command_line("token_file") else os.environ.get("RECONCILER_READ_TOKEN", "").strip() or None


def _token(connection: ConnectionOptions) -> str:
    token = (
        _token_of_file(Path(connection.token_file))
        if connection.token_file
        else os.environ.get("RECONCILER_TOKEN", "").strip()
    )
    if not token:
        raise ConfigurationError(
            f"no token: set RECONCILER_TOKEN or --token-file{not_read('RECONCILER_TOKEN', os.environ)}"
        )
    return token


def _token_of_file(path: Path) -> str:
    try:
        path.lstat()
    except OSError as error:
        # The path is not shown: a variable that is not of the type File has the token itself here.
        raise ConfigurationError(
            f"the token file cannot be read: {error.strerror}; --token-file and RECONCILER_TOKEN_FILE take the path of "
            "a file, never the token: in GitLab, give the CI/CD variable the type File"
        ) from None
    token = read_file(path).strip()
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o022:
        raise ConfigurationError(f"others may write to {path}; first: chmod go-w {shlex.quote(str(path))}")
    if mode & 0o044:
        LOG.warning("others may read %s; if that is not meant: chmod 600 %s", path, shlex.quote(str(path)))
    return token


REMEDIES = {ENOENT: "check the path", EISDIR: "name a file in it", EACCES: "check its permissions"}
"""What to do about a file that cannot be read."""


def read_file(path: Path) -> str:
    """Return the text of a file that the user names.

    Raises:
        ConfigurationError: the file cannot be read, or is not text.
    """
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(advised(f"{path}: {error.strerror}", REMEDIES.get(error.errno or 0, ""))) from error
    except UnicodeDecodeError:
        raise ConfigurationError(f"{path}: not a text file") from None
