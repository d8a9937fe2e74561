"""A diagnosis as JSON, for programs."""

from dataclasses import asdict
from datetime import date
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from reconciler.doctor.findings import Access, Costs, Diagnosis, Finding, SectionState, TargetState, TokenKind, Verdict
from reconciler.model.protocols import Json
from reconciler.model.targets import Key, Level

FORMAT = "reconciler.diagnosis/v1"


class Document(BaseModel):
    """The shape of a document, or of a piece of one."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, defer_build=True)


class FindingShape(Document):
    """One thing that was found."""

    verdict: Verdict = Field(description="What it comes to.")
    about: str = Field(description="What it is about.")
    said: str = Field(description="What was found.")
    remedy: str = Field(description="What to do about it; empty where nothing is to be done.")


class ServiceShape(Document):
    """The service."""

    url: str = Field(description="Of its API.")
    version: str | None = Field(description="What it runs; null where it does not tell.")
    edition: Literal["enterprise", "community"] | None = Field(
        description="Whether it has the code of the paid editions, licensed or not; null where it does not tell."
    )
    findings: list[FindingShape] = Field(description="What was found of it.")


class TokenShape(Document):
    """The token, never its value."""

    kind: TokenKind = Field(description="What sort it is.")
    owner: str | None = Field(description="The username of whose it is; null where the service does not tell.")
    scopes: list[str] | None = Field(description="What it may be used for; null where the service does not tell.")
    expires_at: date | None = Field(
        description="The first day on which it is not valid any more; null where there is none, or none is told."
    )
    reads: Access = Field(description="Whether its scopes suffice to read.")
    writes: Access = Field(description="Whether its scopes suffice to write.")
    findings: list[FindingShape] = Field(description="What was found of it.")


class SectionStateShape(Document):
    """One declared section of one target."""

    section: str = Field(description="The section's name.")
    verdict: Verdict = Field(description="What it comes to, its findings aside.")
    read: Access = Field(description="Whether it was read.")
    write: Access = Field(description="Whether it could be written; nothing was.")
    said: str = Field(description="Why not, or why that is unknown; empty where the target's findings say it.")
    remedy: str = Field(description="What to do about it; empty where nothing is to be done.")
    findings: list[FindingShape] = Field(description="What a plan would call problems.")


class TargetStateShape(Document):
    """One target."""

    level: Level = Field(description="What it is.")
    ref: Key | None = Field(description="The full path or the numeric ID; null for the user behind the token.")
    origin: str = Field(description="Its manifest, as path:line.")
    findings: list[FindingShape] = Field(description="What is wrong with it as a whole.")
    sections: list[SectionStateShape] = Field(description="Its declared sections, in the order of a plan.")


class EstimateShape(Document):
    """What a run costs, as far as can be told beforehand."""

    requests: int = Field(ge=0, description="How many requests it makes.")
    seconds: float = Field(ge=0, description="How long it takes.")


class CostsShape(Document):
    """What a plan costs, and applying it."""

    plan: EstimateShape = Field(description="Of reading and planning.")
    apply: EstimateShape = Field(description="Of the changes, and of looking at them afterwards.")
    changes: int = Field(ge=0, description="How many changes there are.")
    latency: float = Field(ge=0, description="Seconds that an answer took, on average.")
    concurrency: int = Field(ge=1, description="How many requests were in flight at once, at most.")


class CountsShape(Document):
    """The diagnosis in numbers."""

    ok: int = Field(description="How much is well.")
    warning: int = Field(description="How much will not stay well, or is not safe.")
    unknown: int = Field(description="How much the service does not tell.")
    error: int = Field(description="How much of what is wanted cannot be had.")


class DiagnosisDocument(Document):
    """A diagnosis."""

    format: Literal["reconciler.diagnosis/v1"] = Field(description="What this document is.")
    counts: CountsShape = Field(description="How many findings and sections come to what.")
    service: ServiceShape = Field(description="What answers at the URL.")
    token: TokenShape = Field(description="The token.")
    manifests: list[FindingShape] = Field(description="What keeps the manifests from being looked at.")
    targets: list[TargetStateShape] = Field(description="Users, then groups, then projects.")
    costs: CostsShape | None = Field(description="What the runs cost; null where no target was looked at.")


def diagnosis_content(found: Diagnosis) -> dict[str, Json]:
    """Return a diagnosis in the shape of `DiagnosisDocument`."""
    front, token = found.front, found.front.token
    return {
        "format": FORMAT,
        "counts": {str(verdict): found.counts[verdict] for verdict in Verdict},
        "service": {
            "url": front.url,
            "version": front.version,
            "edition": {True: "enterprise", False: "community", None: None}[front.enterprise],
            "findings": _findings(front.of_service),
        },
        "token": {
            "kind": token.kind,
            "owner": token.owner,
            "scopes": None if token.scopes is None else list(token.scopes),
            "expires_at": None if token.expires_at is None else token.expires_at.isoformat(),
            "reads": token.reads,
            "writes": token.writes,
            "findings": _findings(front.of_token),
        },
        "manifests": _findings(found.of_manifests),
        "targets": [_target(target) for target in found.targets],
        "costs": None if found.costs is None else _costs(found.costs),
    }


def _costs(costs: Costs) -> Json:
    return {
        "plan": {"requests": costs.plan.requests, "seconds": round(costs.plan.seconds, 3)},
        "apply": {"requests": costs.apply.requests, "seconds": round(costs.apply.seconds, 3)},
        "changes": costs.changes,
        "latency": round(costs.latency, 4),
        "concurrency": costs.concurrency,
    }


def _findings(findings: tuple[Finding, ...]) -> list[Json]:
    return [asdict(finding) for finding in findings]


def _target(target: TargetState) -> Json:
    return {
        "level": target.target.level,
        "ref": target.target.ref,
        "origin": target.origin,
        "findings": _findings(target.findings),
        "sections": [_section(section) for section in target.sections],
    }


def _section(section: SectionState) -> Json:
    return {
        "section": section.section,
        "verdict": section.verdict,
        "read": section.read,
        "write": section.write,
        "said": section.said,
        "remedy": section.remedy,
        "findings": _findings(section.findings),
    }
