"""The two shapes of the service: a `Singleton` (one settings record) and a `Collection` (objects with identities).

A kind declares its parts as one or the other and adds what is its own as small pure functions: how to read an answer,
what to send. Requests are values; nothing here talks to the service.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from reconciler.model.protocols import Json, Reader, Request
from reconciler.model.resource import Found, Resource
from reconciler.model.targets import Key, Level, Target


@dataclass(frozen=True, slots=True)
class Singleton:
    """One settings record a target: it always exists, is read with one GET and updated with one request.

    Attributes:
        name: the part's name, unique within its kind.
        title: what people call it.
        suffix: the path below the target's.
        decode: reads the service's answer.
        body: what to send, given the wanted fields that differ, what was found, and the target.
        method: of the update.
        complete: fetches what the answer lacks for comparing it with the wanted fields, and adds it to the answer;
            None where the answer always suffices.
        whole: whether an update sends fields that nobody declared, as they were read.
    """

    name: str
    title: str
    suffix: str
    decode: Callable[[Target, Json], Found]
    body: Callable[[Target, Resource, Found], Mapping[str, Json]]
    method: Literal["PUT", "PATCH"]
    complete: Callable[[Reader, Json, Mapping[str, Json]], Json] | None = None
    whole: bool = False

    is_collection: ClassVar[bool] = False
    unique_names: ClassVar[bool] = True

    def update(self, target: Target, wanted: Resource, found: Found) -> tuple[Request, ...]:
        """Return the request that makes what was found what is wanted."""
        return (Request(self.method, target.url + self.suffix, self.body(target, wanted, found)),)


@dataclass(frozen=True, slots=True)
class Collection:
    """Objects of one target that are listed, created, updated and deleted one by one.

    Attributes:
        name: the part's name, unique within its kind.
        title: what people call one object.
        suffix: the path of the collection below the target's.
        model: of one object.
        decode: reads one entry of the list.
        create: the requests that create an object, given the collection's path, the name, what is wanted, and the ID
            of the target the name refers to (None where names are just names).
        update: the requests that make a found object the wanted one of that name, given the collection's path and the
            wanted fields that differ; None where objects have no fields.
        key_error: says what is wrong with a name for this target and what would be right; None where it is fine.
        key_warning: says why some servers may refuse a name for this target; None where all take it.
        canonical_key: the form in which two spellings of one name are equal.
        lowers_placeholders: whether `{path}` and its like are filled in in lower case within names.
        key_level: the level of the targets whose paths or IDs the names are, or None where names are just names.
        unique_names: whether the service refuses a second object of the same name.
        grants_access: whether somebody or something may do something because an object is there.
        needs_numeric_id: whether writes need the target's own numeric ID in their path.
        delivers: the field of the answer to a creation that is a secret, to be delivered and never shown; or None.
        secret_is_complete: whether that field's value is shown whole, as it is to those who may know it.
        required: the fields that a creation needs.
        immutable: the fields that no update can change.
    """

    name: str
    title: str
    suffix: str
    model: type[Resource]
    decode: Callable[[Target, Json], Found]
    create: Callable[[str, Key, Resource, int | None], tuple[Request, ...]]
    update: Callable[[str, Key, Resource, Found], tuple[Request, ...]] | None = None
    key_error: Callable[[Target, Key], str | None] = lambda _scope, _key: None
    key_warning: Callable[[Target, Key], str | None] = lambda _scope, _key: None
    canonical_key: Callable[[Key], Key] = lambda key: key
    lowers_placeholders: bool = False
    key_level: Level | None = None
    unique_names: bool = True
    grants_access: bool = False
    needs_numeric_id: bool = False
    delivers: str | None = None
    secret_is_complete: Callable[[str], bool] = bool
    required: tuple[str, ...] = ()
    immutable: tuple[str, ...] = ()

    is_collection: ClassVar[bool] = True
    whole: ClassVar[bool] = False

    def delete(self, path: str, found: Found) -> tuple[Request, ...]:
        """Return the request that deletes a found object."""
        return (Request("DELETE", f"{path}/{found.id}"),)
