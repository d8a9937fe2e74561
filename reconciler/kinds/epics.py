"""Epics of a group, each known by its title, which need not be unique (spec 4.20)."""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from reconciler.model.endpoints import (
    Collection,
    Deletion,
    Existing,
    Listing,
    Names,
    New,
    Reading,
    Relations,
    Requests,
    Writes,
    as_json,
    stripped,
)
from reconciler.model.foreign_keys import Alias, ForeignKeys
from reconciler.model.kind import Day, Kind, Needs, ReadSection, Role
from reconciler.model.protocols import Json, Request
from reconciler.model.resource import NOT_HERE, Item, LiveRecord, Resource, recognized
from reconciler.model.targets import Level

QUICK_ACTION = re.compile(r"^/[A-Za-z_]+", re.MULTILINE)
LONGEST_DESCRIPTION = 1_048_576


DATES = ("start_date", "due_date")


def _without_quick_actions(text: str | None) -> str | None:
    """GitLab carries out a line that starts with `/word`, and cuts it out: no such description would ever be there."""
    action = QUICK_ACTION.search(text or "")
    if action:
        raise ValueError(
            f"a line that starts with {action[0]} is a quick action, which GitLab carries out and cuts out: "
            "declare the field that it sets, or indent the line"
        )
    return text


def _as_labels(raw: object) -> object:
    """Return labels as a set: in the order of the alphabet, each once, without blanks around their names."""
    if not isinstance(raw, list | tuple):
        return raw
    others = [name for name in raw if not isinstance(name, str)]
    if others:
        is_number = isinstance(others[0], int | float)
        raise ValueError("a label is text" + (f': write "{others[0]}" in quotes' if is_number else ""))
    names = tuple(sorted({name.strip() for name in raw}))
    wrong = next((name for name in names if not name or "," in name), None)
    if wrong is not None:
        raise ValueError(f'a label must not be blank or contain a comma: "{wrong}"')
    return names


def _as_parent(raw: object) -> object:
    if isinstance(raw, str) and not raw.strip():
        raise ValueError("a title must not be blank; null means no parent")
    return raw.strip() if isinstance(raw, str) else raw


class Epic(Item):
    """An epic of a group."""

    foreign_keys: ClassVar[ForeignKeys] = {
        "title": "the title of an epic is its key",
        "name": "the title of an epic is its key",
        "state_event": Alias("state", {"reopen": "state: opened", "close": "state: closed"}),
        "start_date_fixed": Alias("start_date"),
        **dict.fromkeys(("due_date_fixed", "end_date"), Alias("due_date")),
        **dict.fromkeys(
            ("start_date_is_fixed", "due_date_is_fixed"),
            "a declared date is fixed; null takes the date of the children",
        ),
        **dict.fromkeys(
            (f"{name}_from_{source}" for name in DATES for source in ("milestones", "inherited_source")),
            "the service derives this from the children: leave it out",
        ),
        **dict.fromkeys(("add_labels", "remove_labels"), "`labels` is the whole list here"),
        **dict.fromkeys(("author", "author_id", "color", "epic_iid"), "this is not managed: leave it out"),
        "parent_id": "`parent` takes the title of the parent, or its ID",
    }

    description: Annotated[
        str | None,
        Field(max_length=LONGEST_DESCRIPTION),
        BeforeValidator(lambda text: None if text == "" else text),
        AfterValidator(_without_quick_actions),
    ] = Field(
        default=None,
        description="Text of at most 1,048,576 characters, without quick actions. Null or empty: none.",
        examples=["Everything for the new provider."],
    )
    labels: Annotated[tuple[str, ...], BeforeValidator(_as_labels, json_schema_input_type=list[str])] = Field(
        default=(),
        description="Names of labels of the group or the groups above it: replaced as a whole.",
        examples=[["roadmap"]],
    )
    confidential: bool = Field(
        default=False,
        description="Hide the epic from everybody below the role Planner. Its children must be confidential too.",
        examples=[False],
    )
    start_date: Day = Field(
        default=None,
        description="Fixed first day, YYYY-MM-DD. Null: from the children. GitLab has one switch for both dates: "
        "beside a fixed date, null is none.",
        examples=["2027-01-01"],
    )
    due_date: Day = Field(
        default=None,
        description="Fixed last day, YYYY-MM-DD, not before `start_date`. Null: as of `start_date`.",
        examples=["2027-12-31"],
    )
    parent: Annotated[str | Annotated[int, Field(gt=0)] | None, BeforeValidator(_as_parent)] = Field(
        default=None,
        description="The epic above: its title in this group, or the numeric ID of an epic of any group. Null: none.",
        examples=["Roadmap 2027"],
    )
    state: Literal["opened", "closed"] = Field(default="opened", description="Open or closed.", examples=["opened"])

    def errors(self) -> Iterator[tuple[str, str]]:
        """An epic does not end before it starts."""
        if self.start_date and self.due_date and self.due_date < self.start_date:
            yield "due_date", f"due_date must not be before start_date, which is {self.start_date}"


EDITORS_ONLY = "only users who may edit epics can see this: make the token's owner a Planner"
PARENT_IN_OTHER_GROUP = "its parent, the epic with ID {}, is in another group: remove it there"


def complete(reading: Reading) -> Json:
    """Mark the epics whose parent is in another group, for only there it can be removed."""
    here = {None, *(entry["id"] for entry in reading.answer)}
    return [
        entry if entry.get("parent_id") in here else {**entry, "elsewhere": entry["parent_id"]}
        for entry in reading.answer
    ]


def decode(entry: Json) -> LiveRecord:
    """Read an epic. Dates are compared if they are fixed; by the specification, only editors see which dates are."""
    shown = {name: entry[name] for name in ("labels", "confidential", "state") if name in entry}
    shown |= {"description": entry.get("description"), "parent": entry.get("parent_id")}
    read_only = {name: NOT_HERE for name in ("labels", "confidential", "state") if name not in entry}
    for name in DATES:
        if f"{name}_is_fixed" in entry:
            shown[name] = entry[f"{name}_fixed"] if entry[f"{name}_is_fixed"] else None
        else:
            read_only[name] = EDITORS_ONLY
    if "elsewhere" in entry:
        read_only["parent"] = PARENT_IN_OTHER_GROUP.format(entry["elsewhere"])
    epic, unknown = recognized(Epic, shown)
    return LiveRecord(epic, read_only=read_only, unknown=unknown)


def is_hidden(epic: Resource) -> bool:
    """Return whether an epic is written before its parent: a public epic may not be below a confidential epic.

    If a public epic is below a confidential epic, or above it, GitLab drops the update without a word.
    """
    return isinstance(epic, Epic) and epic.confidential


def create(new: New) -> Requests:
    """Return the request: dates are sent with the flags that fix them, and the parent by its ID."""
    fields = _with_labels(new.fields)
    for name in DATES:
        if name in fields:
            fields |= {f"{name}_fixed": fields.pop(name), f"{name}_is_fixed": True}
    if "parent" in fields:
        fields["parent_id"] = new.siblings.id_of(fields.pop("parent"))
    return (new.post(new.new_name | fields), *new.then)


def update(old: Existing) -> Requests:
    """Return the requests: both dates if one changes.

    A parent is removed by a request of its own, since null is an error.
    """
    changed = _with_labels(old.fields)
    requests = []
    if not changed.keys().isdisjoint(DATES):
        shown = as_json(old.found.resource)
        for name in DATES:
            day = changed.pop(name) if name in changed else shown.get(name)
            changed |= {f"{name}_fixed": day, f"{name}_is_fixed": day is not None}
    if "parent" in changed:
        parent = changed.pop("parent")
        if parent is None:
            above, *_ = old.siblings.named(getattr(old.found.resource, "parent", ""))
            requests.append(Request("DELETE", f"{old.path}/{above.path_id}/epics/{old.found.id}"))
        else:
            changed["parent_id"] = old.siblings.id_of(parent)
    changed |= old.new_name
    return (*requests, old.send(changed)) if changed else (*requests,)


def _with_labels(fields: dict[str, Json]) -> dict[str, Json]:
    """Labels are sent as one text with commas between their names: an empty one removes all."""
    return fields | ({"labels": ",".join(fields["labels"])} if "labels" in fields else {})


def losses(old: Existing) -> Iterator[str]:
    """Yield the losses; the list shows the children in the same group, and no issues."""
    yield "its issues and child epics lose it, and its comments are deleted"
    children = old.siblings.below.get(("parent", old.part.identity(old.found.names[0])), 0)
    if children:
        yield f"child epics in this group: {children}; before GitLab 16.11, they are deleted too"


EPICS = Collection(
    "epics",
    Epic,
    title="epic",
    path_field="iid",
    decode=decode,
    page="-/epics/{iid}",
    # By default the list has the epics of subgroups too, and an order without a tie-break.
    listing=Listing(query="include_descendant_groups=false&order_by=created_at&sort=asc", complete=complete),
    names=Names(unique=False, canonical=stripped, exchangeable=True),
    writes=Writes(create=create, update=update, events={"opened": "reopen", "closed": "close"}),
    deletion=Deletion(lost="its issues, comments and children"),
    relations=Relations(
        refers=("parent",),
        reversed=is_hidden,
        # GitLab creates a label for each unknown name, so that a typo would make one.
        vocabularies={"labels": "labels?include_ancestor_groups=true&only_group_labels=true"},
    ),
    losses=losses,
)


def to_sandbox(read: ReadSection) -> Mapping[str, Json]:
    """Return the epics with their numbers in paths, and with their labels."""
    records = read.parts.get("epics", ())
    ids = {record.names[0]: record.id for record in records}
    epics = []
    for record, item in zip(records, read.items(EPICS), strict=True):
        parent = item.pop("parent", None)
        fixed = {f"{name}_is_fixed": item.get(name) is not None for name in DATES}
        epics.append({**item, **fixed, "iid": int(record.path_id or 0), "parent_id": ids.get(parent, parent)})
    labels = sorted({label for epic in epics for label in epic.get("labels", ())})
    return {"epics": epics, "labels": [{"name": name} for name in labels]}


KIND = Kind(
    name="epics",
    foreign_names=("group_epics", "group_epic"),
    summary="Epics of a group, by title.",
    spec="4.20",
    models={Level.GROUP: dict[str, Epic | None]},
    parts=(EPICS,),
    order=10,
    to_sandbox=to_sandbox,
    needs=Needs(roles={Level.GROUP: Role.PLANNER}, readers={Level.GROUP: Role.GUEST}, licensed=True),
    pages={Level.GROUP: "{target}/-/epics"},
    arrives_in="epics",
)
