"""Error tracking client keys of a project, which have neither name nor age: how many there are (spec 4.6)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from pydantic import Field

from reconciler.model.endpoints import (
    Access,
    Collection,
    Deletion,
    Existing,
    Listing,
    Names,
    New,
    Reading,
    Requests,
    Writes,
)
from reconciler.model.foreign_keys import Alias, ForeignKeys
from reconciler.model.kind import Kind, Needs, ReadSection, Role
from reconciler.model.protocols import Json
from reconciler.model.resource import LiveRecord, Resource, Wanted
from reconciler.model.targets import Key, Level


class ClientKeys(Resource):
    """How many client keys a project has. The address (DSN) of a new one is delivered when it is created."""

    foreign_keys: ClassVar[ForeignKeys] = {
        "active": "whether a key is active is not managed: leave it out",
        "keys": Alias("count"),
        **dict.fromkeys(("public_key", "sentry_dsn"), "the service generates this, and `apply` delivers it"),
    }

    count: int = Field(
        ge=0,
        le=100,
        default=1,
        description="How many there are at least; with `prune`, exactly: the oldest are deleted first.",
        examples=[1],
    )


class ClientKey(Resource):
    """One key, which has no fields."""


def split(client_keys: ClientKeys, prune: bool) -> Mapping[str, Wanted]:
    """Return the keys by their places: a key is known by its place among all keys by age, the oldest being 1."""
    declared = prune or "count" in client_keys.model_fields_set
    return {"keys": {str(place): ClientKey() for place in range(1, client_keys.count + 1)}} if declared else {}


def complete(reading: Reading) -> Json:
    """Return the keys with their places."""
    keys = sorted(reading.answer, key=lambda entry: entry["id"])
    return [{**entry, "place": str(place)} for place, entry in enumerate(keys, start=1)]


def arrange(wanted: Mapping[Key, Resource | None], live: Sequence[LiveRecord]) -> Mapping[Key, Resource | None]:
    """Where there are more keys than wanted, the newest stay."""
    surplus = max(len(live) - len(wanted), 0)
    return {str(place): ClientKey() for place in range(surplus + 1, len(live) + 1)} if surplus else wanted


def create(new: New) -> Requests:
    """The service generates the whole key."""
    return (new.post({}),)


def join(names_by_part: Mapping[str, list[Key]]) -> Mapping[str, Json]:
    """Return the section of a project's keys."""
    return {"count": len(names_by_part.get("keys", ()))}


def to_sandbox(read: ReadSection) -> Mapping[str, Json]:
    """Return the keys by ID; their values are made up anew."""
    return {"error_tracking_client_keys": [{"id": number} for number in read.numbers("keys")]}


def losses(_old: Existing) -> Iterator[str]:
    """Yield the loss; the applications that use the key are not named, since the service does not show them."""
    yield "applications that report errors to its address are refused, and the address cannot be restored"


KEYS = Collection(
    "keys",
    ClientKey,
    title="error tracking client key",
    suffix="error_tracking/client_keys",
    key="place",
    # The specification asks for the numeric ID (4.6); GitLab 18.9 takes a path too.
    listing=Listing(complete=complete, needs_numeric_id=True),
    names=Names(unique=False, arrange=arrange),
    writes=Writes(create=create, update=None, needs_numeric_id=True),
    deletion=Deletion(lost="its former address"),
    access=Access(secret="sentry_dsn"),  # noqa: S106 - the name of a field
    losses=losses,
)

KIND = Kind(
    name="error_tracking_client_keys",
    foreign_names=("error_tracking", "client_keys"),
    summary="How many client keys for error tracking a project has.",
    spec="4.6",
    models={Level.PROJECT: ClientKeys},
    parts=(KEYS,),
    split=split,
    join=join,
    order=9,
    to_sandbox=to_sandbox,
    needs=Needs(roles={Level.PROJECT: Role.MAINTAINER}),
    pages={Level.PROJECT: "{target}/-/settings/operations#js-error-tracking-settings"},
)
