"""The service and the token: three requests tell whether the one can be used, and what the other may do."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from types import MappingProxyType
from urllib.parse import urlsplit

from reconciler.doctor.findings import Access, Finding, ServiceCheck, Token, TokenKind, Verdict
from reconciler.errors import (
    NEW_TOKEN,
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
from reconciler.model.protocols import Json, Reader
from reconciler.planning.causes import whole_url

SOON = 14
"""Days before its expiry from which a token had better be renewed."""

_WORDS = (
    "ai_features admin_mode create_runner k8s_proxy manage_runner read_api read_observability read_registry "
    "read_repository read_service_ping read_user read_virtual_registry self_rotate sudo write_observability "
    "write_registry write_repository write_virtual_registry"
)

LESSER = frozenset(_WORDS.split())
"""Scopes that do not let write through the API, and but for `read_api` do not let read through it either."""

BOT = re.compile(r"(project|group)_[0-9]+_bot.*")
"""Usernames of the bots that are made for the tokens of projects and groups."""

KINDS = MappingProxyType(
    {
        TokenKind.PERSONAL: "personal access token",
        TokenKind.PROJECT: "project access token",
        TokenKind.GROUP: "group access token",
        TokenKind.BOT: "access token of a service account",
        TokenKind.OAUTH: "OAuth token",
        TokenKind.JOB: "CI job token",
        TokenKind.UNKNOWN: "token of a kind that the service does not tell",
    }
)


def look_at_service(reader: Reader, api_url: str, today: date, *, exposed: bool = False) -> ServiceCheck:
    """Ask what the token is, what the service is, and whose the token is; no more once one answer makes an end of it.

    Args:
        reader: the service.
        api_url: where it is.
        today: the day on which expiry is judged.
        exposed: whether the token goes there unprotected.
    """
    warnings: tuple[Finding, ...] = ()
    if exposed:
        said = "plain http: whoever is in between can read the token"
        warnings = (Finding(Verdict.WARNING, "url", said, "use https"),)
    front = _Look(reader, api_url, today).go()
    return replace(front, findings=(*warnings, *front.findings))


@dataclass(frozen=True, slots=True)
class _Look:
    reader: Reader
    api_url: str
    today: date

    def go(self) -> ServiceCheck:
        record = self._ask("personal_access_tokens/self")
        fault = self._fault_of_service(record)
        if fault is not None:
            return ServiceCheck(self.api_url, findings=(fault,))
        if isinstance(record, Unauthorized):
            return self._refused(record)
        version = self._ask("version")
        fault = self._fault_of_service(version) or self._no_api(record, version)
        if fault is not None:
            return ServiceCheck(self.api_url, findings=(fault,))
        if isinstance(version, Unauthorized):
            return self._job_token() if isinstance(record, Refused) else self._refused(version)
        front = self._version(version)
        return replace(front, token=self._token(record, self._ask("user")))

    def _ask(self, path: str) -> Json | ServiceError:
        try:
            return self.reader.get(path)
        except ServiceError as error:
            return error

    def _fault_of_service(self, answer: Json | ServiceError) -> Finding | None:
        """Say why the service cannot be used, if an answer says so."""
        match answer:
            case Unreachable():
                said = f"{answer.failure.summary}: {answer.reason}"
                return Finding(Verdict.ERROR, "reachable", said, answer.remedy)
            case Moved():
                remedy = "set the URL to where it leads, with /api/v4 at its end"
                return Finding(Verdict.ERROR, "api", answer.reason, remedy)
            case BadAnswer():
                return Finding(Verdict.ERROR, "api", f"this is no API: {answer.reason}", self._better_url())
            case Forbidden() | NotFound() | Refused() | Unauthorized():
                return None
            case ServiceError():
                remedy = self._over_tls() if isinstance(answer, AnswerLost) else ""
                return Finding(Verdict.ERROR, "api", f"cannot be used now: {answer}", remedy or "try again later")
        return None

    def _no_api(self, record: Json | ServiceError, version: Json | ServiceError) -> Finding | None:
        """Say that there is no API, where neither answer is that of one."""
        if isinstance(version, NotFound | Refused) and isinstance(record, ServiceError):
            return Finding(Verdict.ERROR, "api", f"this is no API: {version}", self._better_url())
        if isinstance(version, ServiceError) or (isinstance(version, dict) and isinstance(version.get("version"), str)):
            return None
        return Finding(Verdict.ERROR, "api", "this is no API: GET version: no version is told", self._better_url())

    def _better_url(self) -> str:
        return whole_url(self.api_url) or self._over_tls() or "something else answers there, or a proxy in between"

    def _over_tls(self) -> str:
        url = urlsplit(self.api_url)
        return f"try https://{url.netloc}{url.path}" if url.scheme == "http" else ""

    def _refused(self, error: Unauthorized) -> ServiceCheck:
        token = Token(findings=(Finding(Verdict.ERROR, "token", f"refused: {error.reason}", NEW_TOKEN),))
        return ServiceCheck(self.api_url, token=token, findings=(_reached(),))

    def _job_token(self) -> ServiceCheck:
        said = "a CI job token, which may not ask for any of this"
        remedy = "use a personal, project or group access token instead of CI_JOB_TOKEN"
        findings = (Finding(Verdict.ERROR, "token", said, remedy),)
        token = Token(TokenKind.JOB, reads=Access.NO, writes=Access.NO, findings=findings)
        return ServiceCheck(self.api_url, token=token, findings=(_reached(),))

    def _version(self, answer: Json | ServiceError) -> ServiceCheck:
        if isinstance(answer, ServiceError):
            finding = Finding(Verdict.UNKNOWN, "version", f"not told: {answer}")
            return ServiceCheck(self.api_url, findings=(_reached(), finding))
        enterprise = answer.get("enterprise") if isinstance(answer.get("enterprise"), bool) else None
        editions = {True: "Enterprise Edition", False: "Community Edition", None: "edition not told"}
        finding = Finding(Verdict.OK, "version", f"{answer['version']}, {editions[enterprise]}")
        return ServiceCheck(self.api_url, answer["version"], enterprise, findings=(_reached(), finding))

    def _token(self, record: Json | ServiceError, user: Json | ServiceError) -> Token:
        told: Mapping[str, Json] = record if isinstance(record, dict) else {}
        owner: Mapping[str, Json] = user if isinstance(user, dict) else {}
        scopes = _texts(told.get("scopes"))
        token = Token(
            kind=_kind(record, owner),
            owner=owner["username"] if isinstance(owner.get("username"), str) else None,
            admin=owner.get("is_admin") is True,
            scopes=scopes,
            expires_at=_day(told.get("expires_at")),
            reads=_suffices(scopes, {"api", "read_api"}),
            writes=_suffices(scopes, {"api"}),
        )
        return replace(token, findings=(self._whose(token, told), _scopes(token), self._expiry(token, told)))

    def _whose(self, token: Token, told: Mapping[str, Json]) -> Finding:
        name = f' "{told["name"]}"' if isinstance(told.get("name"), str) else ""
        admin = ", an administrator" if token.admin else ""
        said = f"{KINDS[token.kind]}{name} of {token.owner or 'somebody the service does not tell'}{admin}"
        if told.get("revoked") is True or told.get("active") is False:
            return Finding(Verdict.ERROR, "token", f"{said}, which is not active any more", NEW_TOKEN)
        known = token.owner is not None and token.kind is not TokenKind.UNKNOWN
        return Finding(Verdict.OK if known else Verdict.UNKNOWN, "token", said)

    def _expiry(self, token: Token, told: Mapping[str, Json]) -> Finding:
        if token.expires_at is None:
            if "expires_at" in told and told["expires_at"] is None:
                return Finding(Verdict.OK, "expiry", "never")
            return Finding(Verdict.UNKNOWN, "expiry", "not told")
        days = (token.expires_at - self.today).days
        if days <= 0:
            return Finding(Verdict.ERROR, "expiry", f"expired on {token.expires_at}", NEW_TOKEN)
        said = f"{token.expires_at}, in {days} day{'' if days == 1 else 's'}"
        if days <= SOON:
            return Finding(Verdict.WARNING, "expiry", said, "renew it in time")
        return Finding(Verdict.OK, "expiry", said)


def _reached() -> Finding:
    return Finding(Verdict.OK, "reachable", "yes")


def _kind(record: Json | ServiceError, owner: Mapping[str, Json]) -> TokenKind:
    """Only what hangs on a user describes itself; a bot's name tells what it was made for."""
    if isinstance(record, Refused):
        return TokenKind.OAUTH
    if not isinstance(record, dict) or not isinstance(owner.get("bot"), bool):
        return TokenKind.UNKNOWN
    if not owner["bot"]:
        return TokenKind.PERSONAL
    made_for = BOT.fullmatch(str(owner.get("username")))
    return TokenKind(made_for[1]) if made_for else TokenKind.BOT


def _scopes(token: Token) -> Finding:
    if token.scopes is None:
        return Finding(Verdict.UNKNOWN, "scopes", "not told")
    listed = ", ".join(token.scopes) or "none"
    if token.reads is Access.NO:
        return Finding(Verdict.ERROR, "scopes", f"{listed}: not enough to read", NEW_TOKEN)
    if token.writes is Access.NO:
        remedy = "it does for plan and drift; apply needs the scope api"
        return Finding(Verdict.WARNING, "scopes", f"{listed}: enough to read, not to write", remedy)
    if token.writes is Access.UNKNOWN:
        return Finding(Verdict.UNKNOWN, "scopes", f"{listed}: what that allows is not known")
    return Finding(Verdict.OK, "scopes", f"{listed}: enough to read and to write")


def _suffices(scopes: tuple[str, ...] | None, enough: set[str]) -> Access:
    if scopes is None or not LESSER.union(enough).issuperset(scopes):
        return Access.YES if scopes is not None and enough.intersection(scopes) else Access.UNKNOWN
    return Access.YES if enough.intersection(scopes) else Access.NO


def _texts(told: Json) -> tuple[str, ...] | None:
    if isinstance(told, list) and all(isinstance(each, str) for each in told):
        return tuple(told)
    return None


def _day(told: Json) -> date | None:
    try:
        return date.fromisoformat(told)
    except (TypeError, ValueError):
        return None
