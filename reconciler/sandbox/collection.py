"""Pages of lists, and collections: the endpoints that most kinds share."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Generic, Literal, TypeVar
from urllib.parse import parse_qsl, urlencode

from pydantic import AfterValidator

from .answers import Answer, refused
from .call import Call, Insertion, Route, level_of
from .parameters import Attribute, integer, read, text
from .records import CountedItem, DatedItem, StoredItem
from .state import MAINTAINER, StateSection

I = TypeVar("I", bound=StoredItem)  # noqa: E741 - an item
T = TypeVar("T")
DEFAULT_SIZE, LARGEST_SIZE = 20, 100
PAGE = (integer("page"), integer("per_page", never=(0,)))
_SECRETS = ("private_token", "access_token")


class RouteCollection(Generic[I]):
    """The items of a kind on an owner, with endpoints that list, get, create, update and delete them.

    A plain kind needs only a collection and a model; a kind with quirks overrides methods. Requests are checked in the
    service's order: number in the path, parameters, owner and role, item, values.

    Args:
        name: the section's key in the state file.
        item: the model of its items.
        paths: of the list, below `/api/v4`. The owner is what `:id` in a path names; without `:id`, the instance.
        part: the name of the item's number in the path.
        key: the field behind that number: unique in the service or within the owner; or a field of text.
        role: the least role for reading and writing; on the instance, only administrators do either.
        feature: the field of a project that must be on; then the project must not be archived either.
        pages: whether a list has pages, in both dialects or by the spec only.
        filters: the parameters of a list, besides its order and page.
        order: fields by which a list can be ordered, the first by default, and then the last first; without any, a
            list is ordered by ID.
        new: the parameters of a creation.
        changes: the parameters of an update.
        validator: checks all items of an owner in a state file, as pydantic's `AfterValidator` does.
    """

    def __init__(
        self,
        name: str,
        item: type[I],
        *paths: str,
        part: str = "item_id",
        key: str = "id",
        role: int = MAINTAINER,
        feature: str = "",
        pages: Literal["always", "by the spec", "never"] = "always",
        filters: Sequence[Attribute] = (),
        order: Sequence[str] = (),
        new: Sequence[Attribute] = (),
        changes: Sequence[Attribute] = (),
        validator: Callable[..., list[I]] | None = None,
    ) -> None:
        items: Any = list[item]  # type: ignore[valid-type]  # known at run time
        items = Annotated[items, AfterValidator(validator)] if validator else items
        self.section: StateSection[list[I]] = StateSection(name, tuple(map(level_of, paths)), items, [])
        self.item = item
        self.paths = paths
        self.part = part
        self.key_field = key
        self.role = role
        self.feature = feature
        self.pages = pages
        ordering = (text("order_by", values=tuple(order)), text("sort", values=("asc", "desc"))) if order else ()
        self.filters = (*filters, *ordering)
        self.order = tuple(order)
        self.new = tuple(new)
        self.changes = tuple(changes)

    def routes(self, *operations: str, update: str = "PUT", **rules: Any) -> tuple[Route, ...]:
        """Return the endpoints for `list`, `get`, `create`, `update` and `delete`, or only the named endpoints.

        Args:
            operations: their names; all of them by default.
            update: the method of an update.
            rules: further arguments of each `Route`.
        """
        one = f"/:{self.part}"
        by_operation: dict[str, tuple[str, str, Callable[[Call], Answer | Insertion]]] = {
            "list": ("GET", "", self.list_items),
            "get": ("GET", one, self.get),
            "create": ("POST", "", self.create),
            "update": (update, one, self.update),
            "delete": ("DELETE", one, self.delete),
        }
        wanted = [by_operation[name] for name in operations or by_operation]
        return tuple(Route(method, path + end, serve, **rules) for path in self.paths for method, end, serve in wanted)

    def list_items(self, call: Call) -> Answer:
        """Answer with a page of items, or with all items in the order in which they are kept."""
        if self.pages == "never" or (self.pages == "by the spec" and call.state.deployed):
            return Answer(200, [self.show(call, *pair) for pair in self.select(call, self.owner(call), {})])
        sent = read(call, *self.filters, *PAGE)
        items = self.in_order(self.select(call, self.owner(call), sent), sent)
        return page_of(call, items, lambda pair: self.show(call, *pair))

    def get(self, call: Call) -> Answer:
        """Answer with one item."""
        key = self.key(call)
        owner = self.owner(call)
        return Answer(200, self.show(call, owner, self.find(call, owner, key)))

    def create(self, call: Call) -> Insertion:
        """Check a new item, and return the function that inserts it."""
        sent = self.read_new(call)
        owner = self.owner_to_write(call)
        wanted = self.make(call, owner, sent)
        self.check(call, owner, wanted, None)

        def insert() -> Answer:
            self.check_again(call, owner, wanted)
            self.add(call, owner, wanted)
            return Answer(201, self.show(call, owner, wanted))

        return insert

    def update(self, call: Call) -> Answer:
        """Change an item; values that the item has already change nothing."""
        key = self.key(call)
        sent = self.read_changes(call)
        owner = self.owner_to_write(call)
        item = self.find(call, owner, key)
        self.require_right(call, owner, item)
        self.require_unmodified(call, item)
        wanted = item.model_copy(update=sent)
        if wanted != item:
            self.check(call, owner, wanted, item)
            self.save(call, item, wanted)
        return Answer(200, self.show(call, owner, item))

    def delete(self, call: Call) -> Answer:
        """Delete an item."""
        key = self.key(call)
        owner = self.owner_to_write(call)
        item = self.find(call, owner, key)
        self.require_right(call, owner, item)
        self.require_unmodified(call, item)
        self.remove(call, owner, item)
        return Answer(204)

    def read_new(self, call: Call) -> dict[str, Any]:
        """Return the attributes sent for a new item; 400 if they are invalid."""
        return read(call, *self.new)

    def read_changes(self, call: Call) -> dict[str, Any]:
        """Return the attributes sent to change an item; 400 if they are invalid."""
        return read(call, *self.changes)

    def owner(self, call: Call) -> Any:
        """Return the owner in the path, if the caller may read its items; else 404 or 403."""
        if call.level == "instance":
            return call.instance()
        owner = call.project(self.role) if call.level == "project" else call.group(self.role)
        if self.feature:
            call.require_open(owner)
            if not getattr(owner, self.feature):
                raise refused(403, "403 Forbidden")
        return owner

    def owner_to_write(self, call: Call) -> Any:
        """Return the owner in the path, if the caller may write its items; else 404 or 403."""
        return self.owner(call)

    def select(self, call: Call, owner: Any, sent: dict[str, Any]) -> Sequence[tuple[Any, I]]:
        """Return the listed items, each with its owner."""
        return [(owner, item) for item in self.items(call, owner)]

    def in_order(self, items: Sequence[tuple[Any, I]], sent: dict[str, Any]) -> list[tuple[Any, I]]:
        """Return items, each with its owner, in the requested order."""
        by = sent.get("order_by") or next(iter(self.order), "id")
        backwards = bool(self.order) and sent.get("sort") != "asc"
        return sorted(items, key=lambda pair: (getattr(pair[1], by), pair[1].id), reverse=backwards)

    def items(self, call: Call, owner: Any) -> Sequence[I]:
        """Return the owner's items that the caller can see."""
        return self.section.of(owner)

    def key(self, call: Call) -> Any:
        """Return the key of the item in the path; 400 for anything but a number, if the key is a number."""
        return call.number(self.part) if self.key_field in ("id", "iid") else call.parts[self.part]

    def find(self, call: Call, owner: Any, key: Any) -> I:
        """Return the item with that key; else 404."""
        for item in self.items(call, owner):
            if getattr(item, self.key_field) == key:
                return item
        raise refused(404, "404 Not found")

    def make(self, call: Call, owner: Any, sent: dict[str, Any]) -> I:
        """Return a new item from the attributes that were sent, null meaning the default; it is not yet checked."""
        given = {name: value for name, value in sent.items() if value is not None}
        made: I = self.item.model_construct(**given)  # type: ignore[assignment]  # pydantic says Item
        return made

    def check(self, call: Call, owner: Any, wanted: I, before: I | None) -> None:
        """Refuse an invalid item, before a creation and before an update that changes something."""

    def check_again(self, call: Call, owner: Any, wanted: I) -> None:
        """Refuse a duplicate that a unique index detects at the moment of the insertion."""

    def require_right(self, call: Call, owner: Any, item: I) -> None:
        """Refuse with 403 a caller that may not change or delete this item."""

    def require_unmodified(self, call: Call, item: I) -> None:
        """Refuse with 412 if the item has changed since `If-Unmodified-Since` (spec section 7).

        Production honours the header for deletions only.
        """
        if isinstance(item, DatedItem) and not (call.state.deployed and call.method != "DELETE"):
            call.require_unmodified(item.updated_at)

    def show(self, call: Call, owner: Any, item: I) -> dict[str, Any]:
        """Return the record of an item: all its fields, with moments as the dialect shows them."""
        record = item.model_dump()
        for name in record:
            if name.endswith("_at"):
                record[name] = call.state.show_time(record[name])
        return record

    def add(self, call: Call, owner: Any, item: I) -> None:
        """Keep a new item, with the next ID and the current time."""
        state = call.state
        item.id = state.numbers(self.item).give()
        item.complete()
        if isinstance(item, CountedItem):
            item.iid = state.numbers(self.item, owner.path).give()
        if isinstance(item, DatedItem):
            item.created_at = item.updated_at = state.tick()
        self.section.of(owner).append(item)
        call.changed = True

    def save(self, call: Call, item: I, wanted: I) -> None:
        """Save the wanted values of an item, and the current time."""
        if isinstance(wanted, DatedItem):
            wanted.updated_at = call.state.tick()
        item.replace_with(wanted)
        call.changed = True

    def remove(self, call: Call, owner: Any, item: I) -> None:
        """Remove an item."""
        kept = self.section.of(owner)
        kept[:] = [other for other in kept if other is not item]
        call.changed = True


def page_of(call: Call, rows: Sequence[T], render: Callable[[T], Any]) -> Answer:
    """Return a page of rendered items, with the headers that link to the other pages.

    The endpoint has read `PAGE` with its own parameters, before it checked the caller.
    """
    wanted = read(call, *PAGE)
    size = wanted.get("per_page")
    size = DEFAULT_SIZE if size is None or size < 0 else min(size, LARGEST_SIZE)
    page = max(wanted.get("page") or 1, 1)
    pages = max(-(-len(rows) // size), 1)
    start = (page - 1) * size
    body = [render(item) for item in rows[start : start + size]]
    return Answer(200, body, _headers(call, page, size, len(rows), pages))


def _headers(call: Call, page: int, size: int, total: int, pages: int) -> list[tuple[str, str]]:
    following = str(page + 1) if page < pages else ""
    previous = str(page - 1) if 1 < page <= pages else ""
    links = [("prev", previous), ("next", following), ("first", "1"), ("last", str(pages))]
    path, _, query = call.target.partition("?")
    kept = [
        (name, value)
        for name, value in parse_qsl(query, keep_blank_values=True)
        if name not in ("page", "per_page", *_SECRETS)
    ]
    base = f"{call.url}{path}?" + (f"{urlencode(kept)}&" if kept else "")
    return [
        ("link", ", ".join(f'<{base}page={to}&per_page={size}>; rel="{rel}"' for rel, to in links if to)),
        ("x-next-page", following),
        ("x-page", str(page)),
        ("x-per-page", str(size)),
        ("x-prev-page", previous),
        ("x-total", str(total)),
        ("x-total-pages", str(pages)),
    ]
