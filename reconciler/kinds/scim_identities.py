"""SCIM identities of a group by external UID: renamed and unlinked here, created elsewhere (spec 4.12)."""

from collections.abc import Iterator
from typing import ClassVar

from reconciler.model.endpoints import Access, Collection, Existing, Listing, Names, Writes
from reconciler.model.foreign_keys import ForeignKeys
from reconciler.model.kind import Kind, Needs, Role
from reconciler.model.resource import Item
from reconciler.model.targets import Level


class Identity(Item):
    """The link between an account of the identity provider and a user."""

    foreign_keys: ClassVar[ForeignKeys] = {
        "extern_uid": "the external UID of an identity is its key",
        **dict.fromkeys(("external_uid", "externalId", "id"), "the external UID of an identity is its key"),
        **dict.fromkeys(
            ("user", "userName", "user_id"), "the identity provider links an identity to its user: leave this out"
        ),
        "active": "the identity provider decides whether an identity is active",
    }


def losses(old: Existing) -> Iterator[str]:
    """Yield the loss: an identity links a user to the identity provider."""
    yield f"the identity provider no longer manages the user with ID {old.found.id}; only it can link the user again"


IDENTITIES = Collection(
    "scim_identities",
    Identity,
    title="SCIM identity",
    suffix="scim/identities",
    key="extern_uid",
    id_field="user_id",
    path_field="extern_uid",
    listing=Listing(has_pages=False),
    # GitLab looks an identity up whatever the case of its UID.
    names=Names(canonical=str.casefold),
    writes=Writes(
        create=None,
        creation="provision the user with the identity provider, or leave the identity out",
        method="PATCH",
        suffix="scim",
    ),
    access=Access(),
    losses=losses,
)

KIND = Kind(
    name="scim_identities",
    foreign_names=("scim", "identities", "saml_identities"),
    summary="SCIM identities of a group, by external UID; the API renames and unlinks them, and creates none.",
    spec="4.12",
    models={Level.GROUP: dict[str, Identity | None]},
    parts=(IDENTITIES,),
    order=8,
    needs=Needs(roles={Level.GROUP: Role.OWNER}),
    pages={Level.GROUP: "{target}/-/saml"},
)
