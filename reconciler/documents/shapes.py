"""The shapes in which changes, problems and unmanaged objects are kept, and the ways there and back.

What stands below a target says nothing of it: scope and section come from where it stands. Reading is strict: every
request must lead to the target and the part it stands under.
"""

import re
from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import Field

from reconciler.documents.checksum import Document
from reconciler.errors import PlanRefused
from reconciler.model.diff import AsRead
from reconciler.model.endpoints import Collection
from reconciler.model.kind import Kinds, Part
from reconciler.model.plan import Change, Create, Delete, Problem, SectionPlan, TargetPlan, Unmanaged, Update
from reconciler.model.protocols import Json, Method, Request
from reconciler.model.targets import Address, Key, Level, Target
from reconciler.planning.shards import Shard

Fields = Annotated[dict[str, Json], Field(examples=[{"due_date": "2026-12-31"}])]

Content = dict[str, Any]
"""What becomes of a value before it is written: it has the shape of a `Document`."""


class ShardShape(Document):
    """Which part of the targets a run was about."""

    number: int = Field(ge=1, description="Which, from 1.")
    total: int = Field(ge=1, description="Of how many.")


class RequestShape(Document):
    """One write."""

    method: Method = Field(description="The HTTP method.")
    path: str = Field(description="Below the service's URL; `{id}` is the ID that the change's first request returns.")
    body: dict[str, Json] | None = Field(description="The JSON body, or null.")


class ReadShape(Document):
    """An object as it was read: a saved plan refuses to change one that has moved since."""

    id: int | None = Field(description="Its own numeric ID, if it has one.")
    names: list[Key] = Field(description="All that it answers to; none for a settings section.")
    fields: Fields = Field(description="All its fields.")
    read_only: dict[str, str] = Field(description="Fields that cannot be changed, each with the reason.")


class Placed(Document):
    """Where in a section something stands."""

    part: str = Field(description="Which of the section's endpoints; the section's name where it has only one.")
    title: str = Field(description="What people call such an object.", examples=["milestone"])
    name: Key | None = Field(description="What this object is called; null for a settings section.")


class UnmanagedShape(Placed):
    """A live object that no manifest mentions; it stays as it is."""

    id: int | None = Field(description="Its numeric ID, if it has one.")
    grants_access: bool = Field(description="Whether somebody or something may do something because of it.")
    owner: str | None = Field(description="Username of its owner; null if unknown.")
    last_used: str | None = Field(description="When it was last used, as the service says it; null if unknown.")


class CreateShape(Placed):
    """An object that does not exist and will."""

    action: Literal["create"] = Field(description="The object is created.")
    after: Fields = Field(description="The declared fields.")
    target_id: int | None = Field(description="The numeric ID of the project or group that the name refers to, if any.")
    replaces_ids: list[int] = Field(description="The IDs of live objects of the same name that this one succeeds.")
    former_names: list[Key] = Field(description="The declared former names, none of which is live: nothing is renamed.")
    requests: list[RequestShape] = Field(description="What is sent, in this order.")


class UpdateShape(Placed):
    """An object, or a settings section, some of whose fields will change."""

    action: Literal["update"] = Field(description="The object, or the settings section, is changed.")
    before: Fields = Field(description="The fields that change, as they were read.")
    after: Fields = Field(description="The same fields, as they will be.")
    renamed_from: Key | None = Field(description="The name before, or null where it stays.")
    hint: str = Field(description="Why the service may refuse it; empty if nothing speaks for that.")
    read: ReadShape = Field(description="The whole object, as it was read.")
    requests: list[RequestShape] = Field(description="What is sent, in this order.")


class DeleteShape(Placed):
    """An object that exists and will not."""

    action: Literal["delete"] = Field(description="The object is deleted.")
    before: Fields = Field(description="All its fields, as they were read.")
    read: ReadShape = Field(description="The whole object, as it was read.")
    successor_id: int | None = Field(
        description="The ID of the token that has succeeded it, whose value is delivered before this one is deleted; "
        "null if none has."
    )
    requests: list[RequestShape] = Field(description="What is sent, in this order.")


ChangeShape = Annotated[CreateShape | UpdateShape | DeleteShape, Field(discriminator="action")]


class ProblemShape(Placed):
    """Something wanted that cannot be planned."""

    field: str | None = Field(description="The field it is about, or null for the whole object.")
    reason: str = Field(description="Why it cannot be planned.")
    remedy: str = Field(description="What to do about it; empty where the reason says it.")
    origin: str = Field(description="What asks for it in the manifests, as path:line.")


class SectionShape(Document):
    """What stands in every section, of a plan or of a report."""

    section: str = Field(description="The section's name; empty where nothing of the target can be seen.")
    found: int = Field(ge=0, description="How many objects it held when it was read.")
    problems: list[ProblemShape] = Field(description="What is wanted and cannot be planned.")
    unmanaged: list[UnmanagedShape] = Field(
        description="Live objects that no manifest mentions; they stay as they are."
    )


class TargetShape(Document):
    """Which target, of a plan or of a report."""

    level: Level = Field(description="What it is.")
    ref: Key | None = Field(description="The full path or the numeric ID; null for the user behind the token.")


def shard_content(shard: Shard | None) -> Content | None:
    """Return a shard in the shape of `ShardShape`."""
    return None if shard is None else {"number": shard.number, "total": shard.total}


def read_shard(shape: ShardShape | None) -> Shard | None:
    """Return the shard of a document, if it is one."""
    return None if shape is None else Shard(shape.number, shape.total)


def target_content(target: TargetPlan, sections: Iterable[Content]) -> Content:
    """Return which target, and what is kept of its sections."""
    return {
        "level": target.target.level,
        "ref": target.target.ref,
        "origin": target.origin,
        "sections": list(sections),
    }


def section_content(section: SectionPlan, **own: list[Content]) -> Content:
    """Return a section in the shape of `SectionShape`, with what is its own in the middle."""
    return {
        "section": section.section,
        "found": section.found,
        **own,
        "problems": [_problem_content(problem) for problem in section.problems],
        "unmanaged": [_unmanaged_content(each) for each in section.unmanaged],
    }


def change_content(change: Change) -> Content:
    """Return a change in the shape of one of the three."""
    place = _placed_content(change.address)
    requests = [_request_content(request) for request in change.requests]
    match change:
        case Create():
            return {
                "action": "create",
                **place,
                "after": dict(change.after),
                "target_id": change.target_id,
                "replaces_ids": list(change.replaces_ids),
                "former_names": list(change.former_names),
                "requests": requests,
            }
        case Update():
            return {
                "action": "update",
                **place,
                "before": dict(change.before),
                "after": dict(change.after),
                "renamed_from": change.renamed_from,
                "hint": change.hint,
                "read": _read_content(change.read),
                "requests": requests,
            }
        case Delete():  # pragma: no branch - mypy would see a fourth
            return {
                "action": "delete",
                **place,
                "before": dict(change.before),
                "read": _read_content(change.read),
                "successor_id": change.successor_id,
                "requests": requests,
            }


def read_scope(shape: TargetShape) -> Target:
    """Return which target is meant.

    Raises:
        PlanRefused: a user has a path, or a group or a project has none.
    """
    if (shape.ref is None) != (shape.level is Level.USER):
        raise PlanRefused(f"damaged: a {shape.level} with the ref {shape.ref!r}")
    return Target(shape.level, shape.ref)


def read_section(
    target: Target, shape: SectionShape, changes: Iterable[CreateShape | UpdateShape | DeleteShape], kinds: Kinds
) -> SectionPlan:
    """Return a section of a target.

    Raises:
        PlanRefused: there is no such section or part, or a request leads elsewhere.
    """
    return SectionPlan(
        shape.section,
        shape.found,
        tuple(_read_change(target, shape.section, change, kinds) for change in changes),
        tuple(
            Problem(
                _read_address(target, shape.section, problem),
                problem.reason,
                problem.field,
                problem.remedy,
                problem.origin,
            )
            for problem in shape.problems
        ),
        tuple(_read_unmanaged(_read_address(target, shape.section, each), each) for each in shape.unmanaged),
    )


def _read_unmanaged(address: Address, shape: UnmanagedShape) -> Unmanaged:
    return Unmanaged(address, shape.id, shape.grants_access, shape.owner, shape.last_used)


def _unmanaged_content(each: Unmanaged) -> Content:
    own = {name: getattr(each, name) for name in ("id", "grants_access", "owner", "last_used")}
    return {**_placed_content(each.address), **own}


def _problem_content(problem: Problem) -> Content:
    own = {name: getattr(problem, name) for name in ("field", "reason", "remedy", "origin")}
    return {**_placed_content(problem.address), **own}


def _placed_content(address: Address) -> Content:
    return {"part": address.part, "title": address.title, "name": address.name}


def _read_address(target: Target, section: str, shape: Placed) -> Address:
    return Address(target, section, shape.part, shape.title, shape.name)


def _read_change(target: Target, section: str, shape: CreateShape | UpdateShape | DeleteShape, kinds: Kinds) -> Change:
    address = _read_address(target, section, shape)
    part = _part(section, shape.part, kinds)
    requests = tuple(_read_request(request, target, part) for request in shape.requests)
    match shape:
        case CreateShape():
            delivers = isinstance(part, Collection) and part.secret_field is not None
            replaces_ids, former_names = tuple(shape.replaces_ids), tuple(shape.former_names)
            return Create(address, shape.after, requests, shape.target_id, replaces_ids, delivers, former_names)
        case UpdateShape():
            read = _as_read(shape.read)
            return Update(address, shape.before, shape.after, requests, read, shape.renamed_from, shape.hint)
        case DeleteShape():  # pragma: no branch - mypy would see a fourth
            return Delete(address, shape.before, requests, _as_read(shape.read), shape.successor_id)


def _read_content(read: AsRead) -> Content:
    return {"id": read.id, "names": list(read.names), "fields": dict(read.fields), "read_only": dict(read.read_only)}


def _as_read(shape: ReadShape) -> AsRead:
    return AsRead(shape.id, tuple(shape.names), shape.fields, shape.read_only)


def _request_content(request: Request) -> Content:
    body = None if request.body is None else dict(request.body)
    return {"method": request.method, "path": request.path, "body": body}


def _part(section: str, name: str, kinds: Kinds) -> Part:
    for part in kinds[section].parts if section in kinds else ():
        if part.name == name:
            return part
    raise PlanRefused(
        f"damaged, or made by another reconciler: no section has the name {section!r} and a part {name!r}"
    )


def _read_request(shape: RequestShape, target: Target, part: Part) -> Request:
    if not _paths(target, part).fullmatch(shape.path):
        raise PlanRefused(f"damaged: {shape.method} {shape.path!r} does not lead to {part.title} of {str(target)!r}")
    return Request(shape.method, shape.path, shape.body)


def _paths(scope: Target, part: Part) -> re.Pattern[str]:
    """What a path of this part may look like: below the target, by path or by number, and then below the part."""
    target = re.escape(scope.url)
    if isinstance(scope.ref, str):
        target = f"(?:{target}|{scope.level}s/[0-9]+/)"
    return re.compile(rf"{target}{re.escape(part.suffix)}(?:/[A-Za-z0-9_-]+|/\{{id\}})*")
