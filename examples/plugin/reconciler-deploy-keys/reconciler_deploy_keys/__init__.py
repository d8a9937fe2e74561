"""Deploy keys of a project, each known by its title."""

from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field

from reconciler.model.direction import FALSE, Directions
from reconciler.model.endpoints import Access, Collection, Names, Writes
from reconciler.model.kind import Kind, Needs, Role
from reconciler.model.resource import Item
from reconciler.model.targets import Level


def without_comment(key: str) -> str:
    """Return the type and the value of a key: the service may show another comment than the one it was sent."""
    return " ".join(key.split()[:2])


class DeployKey(Item):
    """An SSH key that reads the repository without a user."""

    directions: ClassVar[Directions] = {"can_push": FALSE}
    admits: ClassVar[bool] = True

    key: Annotated[str, AfterValidator(without_comment)] = Field(
        default="",
        pattern=r"^(ssh|ecdsa|sk)-\S+ \S+",
        description="The public key. A creation needs it, and no update can change it.",
        examples=["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJuVlsH9c0gpY0KbPqbzwTJz0dYFWGkVqYzhKjZk0Zb1"],
    )
    can_push: bool = Field(default=False, description="Whether the key may write too.", examples=[True])


KEYS = Collection(
    "deploy_keys",
    DeployKey,
    title="deploy key",
    names=Names(unique=False),
    writes=Writes(required=("key",), immutable=("key",)),
    access=Access(),
)

KIND = Kind(
    name="deploy_keys",
    summary="Deploy keys of a project, by title.",
    models={Level.PROJECT: dict[str, DeployKey | None]},
    parts=(KEYS,),
    needs=Needs(roles={Level.PROJECT: Role.MAINTAINER}),
)
