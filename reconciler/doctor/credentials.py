"""The service and the token: three requests show whether both can be used. Begin with `check_service`."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import date
from types import MappingProxyType
from urllib.parse import urlsplit

from reconciler.document.diagnosis import DoctorFinding, Permission, ServiceCheck, Token, TokenKind, Verdict
from reconciler.engine.why import ADMIN_MODE, OWNER, TOKEN, caller_of, url_remedy
from reconciler.errors import (
    NEW_TOKEN,
    AccountClosed,
    AnswerLost,
    BadAnswer,
    Forbidden,
    Moved,
    NotFound,
    Refused,
    ServiceError,
    Unauthorized,
    Unreachable,
)
from reconciler.model.caller import Caller
from reconciler.model.protocols import Json, Reader
from reconciler.model.wording import counted

SOON = 14
"""Days before its expiry from which a token has a warning."""

_WORDS = (
    "ai_features admin_mode create_runner k8s_proxy manage_runner read_api read_observability read_registry "
    "read_repository read_service_ping read_user read_virtual_registry self_rotate sudo write_observability "
    "write_registry write_repository write_virtual_registry"
)

LESSER = frozenset(_WORDS.split())
"""Scopes that do not allow writing through the API; of these, only `read_api` allows reading."""

BOT = re.compile(r"(project|group)_[0-9]+_bot.*")
"""Usernames of the bots behind project and group access tokens."""

KINDS = MappingProxyType(
    {
        TokenKind.PERSONAL: "personal access token",
        TokenKind.PROJECT: "project access token",
        TokenKind.GROUP: "group access token",
        TokenKind.BOT: "access token of a service account",
        TokenKind.OAUTH: "OAuth token",
        TokenKind.JOB: "CI job token",
        TokenKind.UNKNOWN: "token of unknown type",
    }
)

JOB_TOKEN = Token(
    TokenKind.JOB,
    reads=Permission.NO,
    writes=Permission.NO,
    findings=(
        DoctorFinding(
            Verdict.ERROR,
            "token",
            "a CI job token, which may read none of this",
            "use a personal, project or group access token instead of CI_JOB_TOKEN",
        ),
    ),
)


def check_service(
    reader: Reader, api_url: str, current_day: Callable[[], date], *, exposed: bool = False
) -> ServiceCheck:
    """Check the service and the token; stop at a response that makes further requests useless.

    Args:
        reader: the service.
        api_url: its URL.
        current_day: returns the day that expiry is compared with; called after the first requests.
        exposed: whether the token is sent unencrypted.
    """
    warning = DoctorFinding(
        Verdict.WARNING, "url", "plain http: anyone on the network path can read the token", "use https"
    )
    checked = _check(reader, api_url, current_day)
    return replace(checked, findings=(warning, *checked.findings)) if exposed else checked


def check_read_token(reading: ServiceCheck) -> Iterator[DoctorFinding]:
    """Yield an error if the service refuses RECONCILER_READ_TOKEN, and a warning if that token may write."""
    name = "RECONCILER_READ_TOKEN"
    if reading.token.writes is Permission.YES:
        reason = "may write, and everybody who can push a branch can read it"
        yield DoctorFinding(Verdict.WARNING, name, reason, "use a token with the scope read_api alone")
    elif not reading.usable:
        yield DoctorFinding(Verdict.ERROR, name, "the service refuses it", "renew it")


def _check(reader: Reader, api_url: str, current_day: Callable[[], date]) -> ServiceCheck:
    # First what every token may read, whatever its scopes.
    record = _ask(reader, TOKEN)
    obstacle = _obstacle(record, api_url)
    if obstacle:
        return ServiceCheck(api_url, findings=(obstacle,))
    reached = DoctorFinding(Verdict.OK, "reachable", "yes")
    if isinstance(record, Unauthorized):
        return ServiceCheck(api_url, token=_refused(record), findings=(reached,))
    response = _ask(reader, "version")
    obstacle = _obstacle(response, api_url) or _no_api(record, response, api_url)
    if obstacle:
        return ServiceCheck(api_url, findings=(obstacle,))
    if isinstance(response, Unauthorized):
        token = JOB_TOKEN if isinstance(record, Refused) else _refused(response)
        return ServiceCheck(api_url, token=token, findings=(reached,))
    owner, fields = _ask(reader, OWNER), record if isinstance(record, dict) else {}
    caller = caller_of(owner if isinstance(owner, dict) else {}, fields, reader)
    token = _token(record, owner, caller, current_day())
    if isinstance(response, ServiceError):
        return ServiceCheck(
            api_url,
            token=token,
            findings=(reached, DoctorFinding(Verdict.UNKNOWN, "version", f"not reported: {response}")),
        )
    enterprise = response.get("enterprise") if isinstance(response.get("enterprise"), bool) else None
    edition = {True: "Enterprise Edition", False: "Community Edition", None: "edition not reported"}[enterprise]
    version = DoctorFinding(Verdict.OK, "version", f"{response['version']}, {edition}")
    return ServiceCheck(api_url, response["version"], enterprise, token, (reached, version))


def _ask(reader: Reader, path: str) -> Json | ServiceError:
    try:
        return reader.recall(path)
    except ServiceError as error:
        return error


def _obstacle(response_or_error: Json | ServiceError, api_url: str) -> DoctorFinding | None:
    """Return the error that a response means for the service as a whole, if any."""
    match response_or_error:
        case Unreachable():
            return DoctorFinding(
                Verdict.ERROR,
                "reachable",
                f"{response_or_error.failure.summary}: {response_or_error.reason}",
                response_or_error.remedy,
            )
        case Moved():
            remedy = "set the URL to the target of the redirect, ending in /api/v4"
            return DoctorFinding(Verdict.ERROR, "api", response_or_error.reason, remedy)
        case BadAnswer():
            return DoctorFinding(Verdict.ERROR, "api", f"not an API: {response_or_error.reason}", _better_url(api_url))
        case Forbidden() | NotFound() | Refused() | Unauthorized():
            return None
        case ServiceError():
            remedy = _over_tls(api_url) if isinstance(response_or_error, AnswerLost) else ""
            return DoctorFinding(
                Verdict.ERROR, "api", f"not usable now: {response_or_error}", remedy or "try again later"
            )
    return None


def _no_api(
    token_record: Json | ServiceError, version_response: Json | ServiceError, api_url: str
) -> DoctorFinding | None:
    """Return an error if neither response comes from an API."""
    if isinstance(version_response, NotFound | Refused) and isinstance(token_record, ServiceError):
        return DoctorFinding(Verdict.ERROR, "api", f"not an API: {version_response}", _better_url(api_url))
    if isinstance(version_response, ServiceError) or (
        isinstance(version_response, dict) and isinstance(version_response.get("version"), str)
    ):
        return None
    text = "not an API: GET version: the response has no version"
    return DoctorFinding(Verdict.ERROR, "api", text, _better_url(api_url))


def _better_url(api_url: str) -> str:
    return url_remedy(api_url) or _over_tls(api_url) or "check the URL: another server, or a proxy, answers there"


def _over_tls(api_url: str) -> str:
    url = urlsplit(api_url)
    return f"try https://{url.netloc}{url.path}" if url.scheme == "http" else ""


def _refused(unauthorized: Unauthorized) -> Token:
    remedy = unauthorized.remedy if isinstance(unauthorized, AccountClosed) else NEW_TOKEN
    return Token(findings=(DoctorFinding(Verdict.ERROR, "token", f"refused: {unauthorized.reason}", remedy),))


def _token(token_record: Json | ServiceError, owner_record: Json | ServiceError, caller: Caller, today: date) -> Token:
    fields: Mapping[str, Json] = token_record if isinstance(token_record, dict) else {}
    owner: Mapping[str, Json] = owner_record if isinstance(owner_record, dict) else {}
    scopes = _strings(fields.get("scopes"))
    token = Token(
        kind=_kind(token_record, owner),
        owner=caller.name,
        caller=caller,
        scopes=scopes,
        expires_at=_day(fields.get("expires_at")),
        reads=_suffices(scopes, {"api", "read_api"}),
        writes=_suffices(scopes, {"api"}),
    )
    return replace(token, findings=(_identity(token, fields), _scopes(token), _expiry(token, fields, today)))


def _kind(token_record: Json | ServiceError, owner: Mapping[str, Json]) -> TokenKind:
    """Return the type of a token."""
    # the record of a token does not name its type: OAuth tokens have no record, and a bot's username names its purpose
    if isinstance(token_record, Refused):
        return TokenKind.OAUTH
    if not isinstance(token_record, dict) or not isinstance(owner.get("bot"), bool):
        return TokenKind.UNKNOWN
    if not owner["bot"]:
        return TokenKind.PERSONAL
    made_for = BOT.fullmatch(str(owner.get("username")))
    return TokenKind(made_for[1]) if made_for else TokenKind.BOT


def _identity(token: Token, fields: Mapping[str, Json]) -> DoctorFinding:
    name = f' "{fields["name"]}"' if isinstance(fields.get("name"), str) else ""
    admin = ", an administrator" if token.caller.admin or token.caller.lacks_admin_mode else ""
    text = f"{KINDS[token.kind]}{name} of {token.owner or 'an unknown user'}{admin}"
    if fields.get("revoked") is True or fields.get("active") is False:
        return DoctorFinding(Verdict.ERROR, "token", f"{text}, which is no longer active", NEW_TOKEN)
    known = token.owner is not None and token.kind is not TokenKind.UNKNOWN
    return DoctorFinding(Verdict.OK if known else Verdict.UNKNOWN, "token", text)


def _scopes(token: Token) -> DoctorFinding:
    if token.scopes is None:
        return DoctorFinding(Verdict.UNKNOWN, "scopes", "not reported")
    listed = ", ".join(token.scopes) or "none"
    if token.reads is Permission.NO:
        return DoctorFinding(Verdict.ERROR, "scopes", f"{listed}: not enough to read", NEW_TOKEN)
    if token.writes is Permission.NO:
        remedy = "plan and drift need no more; apply needs the scope api"
        return DoctorFinding(Verdict.WARNING, "scopes", f"{listed}: enough to read, not to write", remedy)
    if token.writes is Permission.UNKNOWN:
        return DoctorFinding(Verdict.UNKNOWN, "scopes", f"{listed}: not known to this version")
    if token.caller.shortfall:
        reason = f"{listed}: enough only where {token.owner} is a member: {token.caller.shortfall}"
        return DoctorFinding(Verdict.WARNING, "scopes", reason, ADMIN_MODE)
    return DoctorFinding(Verdict.OK, "scopes", f"{listed}: enough to read and to write")


def _expiry(token: Token, fields: Mapping[str, Json], today: date) -> DoctorFinding:
    if token.expires_at is None:
        if "expires_at" in fields and fields["expires_at"] is None:
            return DoctorFinding(Verdict.OK, "expiry", "never")
        return DoctorFinding(Verdict.UNKNOWN, "expiry", "not reported")
    days = (token.expires_at - today).days
    if days <= 0:
        return DoctorFinding(Verdict.ERROR, "expiry", f"expired on {token.expires_at}", NEW_TOKEN)
    text = f"{token.expires_at}, in {counted(days, 'day')}"
    if days <= SOON:
        return DoctorFinding(Verdict.WARNING, "expiry", text, "renew it in time")
    return DoctorFinding(Verdict.OK, "expiry", text)


def _suffices(scopes: tuple[str, ...] | None, enough: set[str]) -> Permission:
    if scopes is not None and enough.intersection(scopes):
        return Permission.YES
    return Permission.NO if scopes is not None and LESSER.union(enough).issuperset(scopes) else Permission.UNKNOWN


def _strings(value: Json) -> tuple[str, ...] | None:
    return tuple(value) if isinstance(value, list) and all(isinstance(entry, str) for entry in value) else None


def _day(value: Json) -> date | None:
    try:
        return date.fromisoformat(value)
    except (TypeError, ValueError):
        return None
