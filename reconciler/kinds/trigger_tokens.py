"""Pipeline trigger tokens of a project, each known by its description, which need not be unique (spec 4.8)."""

from collections.abc import Iterator
from typing import ClassVar

from reconciler.model.endpoints import Access, Collection, Deletion, Existing, Names
from reconciler.model.foreign_keys import ForeignKeys
from reconciler.model.kind import Archived, Kind, Needs, Role
from reconciler.model.resource import Rotated
from reconciler.model.targets import Level


class TriggerToken(Rotated):
    """A token that starts pipelines. Its value is delivered once, when it is created, and never read again."""

    admits: ClassVar[bool] = True

    foreign_keys: ClassVar[ForeignKeys] = {
        "token": "the service chooses the value of a token; `apply` delivers it, see --tokens-to",
        "name": "the description of a token is its key",
        **dict.fromkeys(
            ("trigger_id", "pipeline_trigger_id", "last_used", "owner"), "the service sets this: leave it out"
        ),
        "description": "the description of a token is its key",
    }


def secret_is_complete(token: str) -> bool:
    """Return whether this is a whole token, and not the four characters that other users see (spec section 8)."""
    return len(token) > 4


def losses(old: Existing) -> Iterator[str]:
    """Yield the losses. A token counts as used when a pipeline was started with it.

    A null may be a token never used.
    """
    record = old.found
    yield f"last used {record.last_used[:10]}" if record.last_used else "no use of it is recorded"
    if not record.ours:
        yield f"it belongs to {record.owner or 'another user'}"
    yield "its value no longer starts pipelines, and cannot be restored"


TOKENS = Collection(
    "trigger_tokens",
    TriggerToken,
    title="trigger token",
    suffix="triggers",
    key="description",
    # A description is no key for GitLab: each POST, a repeated one too, makes one more token.
    names=Names(unique=False, exchangeable=True),
    deletion=Deletion(lost="its former value"),
    access=Access(secret="token", is_complete=secret_is_complete),  # noqa: S106 - the name of a field
    losses=losses,
)

KIND = Kind(
    name="trigger_tokens",
    foreign_names=("triggers", "pipeline_trigger", "pipeline_triggers"),
    summary="Pipeline trigger tokens of a project, by description.",
    spec="4.8",
    models={Level.PROJECT: dict[str, TriggerToken | None]},
    parts=(TOKENS,),
    order=6,
    needs=Needs(
        roles={Level.PROJECT: Role.MAINTAINER},
        archived=Archived.CLOSED,
        switches={"builds_access_level": "CI/CD"},
    ),
    pages={Level.PROJECT: "{target}/-/settings/ci_cd#js-pipeline-triggers"},
)
