"""The planning of targets that do not exist yet."""

from reconciler.model.creation import Creation, Namespace, creation_request
from reconciler.model.plan import Create
from reconciler.model.protocols import Json
from reconciler.model.targets import Target


def creation_of(target: Target, creation: Creation, namespace: Namespace) -> Create:
    """Return the change that creates a target."""
    after: dict[str, Json] = {"name": creation.name}
    if creation.source is not None:
        source = {**creation.source.fields, "token_env": creation.source.token_env}
        after["import"] = {creation.source.source: source}
    else:
        visibility = creation.visibility or namespace.visibility
        after |= {"visibility": visibility} if visibility and (creation.visibility or not creation.archive) else {}
    if creation.archive is not None:
        after |= {"from_archive": str(creation.archive.file), "sha256": creation.archive.digest}
    request = creation_request(target, after, namespace)
    return Create(target.address, after, (request,), origin=creation.origin)
