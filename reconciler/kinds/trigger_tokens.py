"""Pipeline trigger tokens of a project, each known by its description, which need not be unique (spec 4.8)."""

from collections.abc import Mapping
from datetime import UTC, datetime
from operator import index
from types import MappingProxyType
from typing import ClassVar

from reconciler.model.endpoints import Collection
from reconciler.model.kind import Archived, Kind, Needs, Rehearsed, Role
from reconciler.model.protocols import Json, Request
from reconciler.model.resource import Found, Resource, Rotated, name_shown
from reconciler.model.targets import Key, Level, Target

LONGEST_DESCRIPTION = 255
SHORTENED = 4
"""How many characters the service shows of a token that belongs to somebody else (spec section 8)."""


class TriggerToken(Rotated):
    """A token that starts pipelines. Its value is delivered once, when it is created, and never read again."""

    misplaced: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "token": "the service chooses the value of a token; `apply` delivers it, see --tokens-to",
            "description": "the description of a token is its key",
        }
    )


def fault_of_description(_scope: Target, description: Key) -> str | None:
    """Descriptions are not blank, and not longer than the service keeps."""
    if len(str(description)) > LONGEST_DESCRIPTION:
        return f"a description has at most {LONGEST_DESCRIPTION} characters; this one has {len(str(description))}"
    return None if str(description).strip() else "a description must not be blank"


def decode(_scope: Target, entry: Json) -> Found:
    """Read one token, of its value only whether it is shown whole: only owner and administrators may rename it."""
    read_only = {
        "renamed_from": "the token belongs to another user, and only its owner or an administrator may rename it"
    }
    token = entry.get("token")
    ours = isinstance(token, str) and secret_is_complete(token)
    owner, last_used = entry.get("owner"), entry.get("last_used")
    username = owner.get("username") if isinstance(owner, dict) else None
    return Found(
        TriggerToken(),
        names=(name_shown(entry["description"] or ""),),
        id=index(entry["id"]),
        created_at=moment(entry.get("created_at")),
        ours=ours,
        owner=username if isinstance(username, str) else None,
        last_used=last_used if isinstance(last_used, str) else None,
        read_only={} if ours else read_only,
    )


def secret_is_complete(value: str) -> bool:
    """Tell whether this is a token and not its first characters."""
    return len(value) > SHORTENED


def moment(told: Json) -> datetime | None:
    """Read a time, which is UTC where it does not say otherwise; None where there is none."""
    try:
        when = datetime.fromisoformat(told)
    except (TypeError, ValueError):
        return None
    return when if when.tzinfo else when.replace(tzinfo=UTC)


def create(path: str, description: Key, _wanted: Resource, _target_id: int | None) -> tuple[Request, ...]:
    """The answer holds the token's value, this once."""
    return (Request("POST", path, {"description": description}),)


def update(path: str, description: Key, _wanted: Resource, found: Found) -> tuple[Request, ...]:
    """An update without a description would clear it."""
    return (Request("PUT", f"{path}/{found.id}", {"description": description}),)


TOKENS = Collection(
    name="trigger_tokens",
    title="trigger token",
    suffix="triggers",
    model=TriggerToken,
    decode=decode,
    create=create,
    update=update,
    key_error=fault_of_description,
    unique_names=False,
    grants_access=True,
    delivers="token",
    secret_is_complete=secret_is_complete,
)


def rehearsal(read: Rehearsed) -> Mapping[str, Json]:
    """The tokens, by their descriptions; those that are not shown whole are somebody else's. No value is known."""
    owners = {found.id: None if found.read_only else read.username for found in read.parts.get("trigger_tokens", ())}
    items = read.items("trigger_tokens", "description")
    return {"trigger_tokens": [{**item, "owner": owners[item["id"]]} for item in items]}


KIND = Kind(
    name="trigger_tokens",
    summary="Pipeline trigger tokens of a project, by description.",
    spec="4.8",
    models=MappingProxyType({Level.PROJECT: dict[str, TriggerToken | None]}),
    parts=(TOKENS,),
    split=lambda section, _prune: {"trigger_tokens": section},
    order=6,
    rehearsal=rehearsal,
    needs=Needs(
        roles=MappingProxyType({Level.PROJECT: Role.MAINTAINER}),
        archived=Archived.CLOSED,
        switches=MappingProxyType({"builds_access_level": "CI/CD"}),
    ),
)
