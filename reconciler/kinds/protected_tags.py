"""Protected tags of a project, each known by its name, in which `*` stands for anything."""

from collections.abc import Iterator
from typing import ClassVar

from pydantic import Field

from reconciler.model.direction import ENTRIES, Directions
from reconciler.model.endpoints import Collection, Cover, Existing, Relations, Writes
from reconciler.model.entries import Entries
from reconciler.model.foreign_keys import ForeignKeys
from reconciler.model.kind import Kind, Needs, Role
from reconciler.model.resource import Item
from reconciler.model.targets import Level


class ProtectedTag(Item):
    """The rule for all tags of a project that a name matches."""

    foreign_keys: ClassVar[ForeignKeys] = {
        "name": "the name of a protected tag is its key",
        "tag": "the name of a protected tag is its key",
        **dict.fromkeys(
            ("create_access_level", "create_access_levels"),
            "declare the role in `allowed_to_create`, such as [maintainer]; [] is nobody",
        ),
        "protected": "a declared rule protects: leave `protected: true` out, and write `NAME: null` for false",
    }

    directions: ClassVar[Directions] = {"allowed_to_create": ENTRIES}

    allowed_to_create: Entries = Field(
        default=("maintainer",),
        description="Who may create such tags: roles (`developer`, `maintainer`, `admin`), users (`{user: ada}`), "
        "invited groups (`{group: acme/leads}`) and deploy keys (`{deploy_key: release}`). An empty list: nobody.",
        examples=[["maintainer", {"deploy_key": "release"}]],
    )


def losses(_old: Existing) -> Iterator[str]:
    """Yield the loss, with a condition: another rule that matches the same tags still protects them."""
    yield "every Developer may create, and every Maintainer delete, tags that match no other rule"


TAGS = Collection(
    "protected_tags",
    ProtectedTag,
    title="protected tag",
    key="name",
    id_field="",
    path_field="name",
    writes=Writes(
        renames=False,
        defaults={"allowed_to_create": "maintainer"},
        # No request changes a rule. Without the cover, its tags would be open between DELETE and POST, and stay open if
        # the run is killed there.
        cover=Cover("***", ProtectedTag(allowed_to_create=())),
    ),
    relations=Relations(entries={"allowed_to_create": "create_access_levels"}),
    losses=losses,
)

KIND = Kind(
    name="protected_tags",
    foreign_names=("tags", "protected_tag", "tag_protection", "tags_protection"),
    summary="Who may create tags, by name or wildcard.",
    models={Level.PROJECT: dict[str, ProtectedTag | None]},
    parts=(TAGS,),
    in_repository=True,
    protects=True,
    needs=Needs(roles={Level.PROJECT: Role.MAINTAINER}),
    pages={Level.PROJECT: "{target}/-/settings/repository#js-protected-tags-settings"},
)
