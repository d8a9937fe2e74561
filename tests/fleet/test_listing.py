"""Lists of projects: pages side by side, and readings of projects while later pages are still under way."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import Event
from typing import Any

import pytest

from reconciler.engine.discovery import Discovery, GroupListing, Prefetch, discover
from reconciler.engine.read import read_live
from reconciler.errors import Forbidden, Stopped, Unauthorized
from reconciler.manifests import Member, read_contents
from reconciler.model.obstacle import Obstacle
from reconciler.model.protocols import Spread
from reconciler.model.state import DesiredTarget
from reconciler.model.targets import Level, Target
from reconciler.service import Client, Policy
from tests.building import KINDS, desired, section

WAIT = 10
"""Seconds after which a test that would hang fails."""


def entries(*paths: str) -> list[dict[str, Any]]:
    return [{"id": 100 + len(path), "path_with_namespace": path} for path in paths]


def wished(path: str) -> DesiredTarget:
    """Return the level of notifications, wanted of a project."""
    target = Target(Level.PROJECT, path)
    return DesiredTarget(target, (section("notification_settings", {"level": "watch"}, target),))


class Service(Client):
    """A service whose lists are those of a test, and where all projects are alike.

    Attributes:
        asked: the paths of all readings.
        read: set by the first of them.
    """

    def __init__(self, lists: Mapping[str, Callable[..., list[Any]]], concurrency: int = 2) -> None:
        super().__init__("http://localhost/api/v4", "t", policy=Policy(concurrency=concurrency))
        self.lists = lists
        self.asked: list[str] = []
        self.read = Event()

    def get(self, path: str) -> Any:
        self.asked.append(path)
        self.read.set()
        return {"level": "watch"}

    def gather(self, path: str, keep: Callable[[list[Any]], list[Any]], spread: Spread | None = None) -> list[Any]:
        return self.lists[path.partition("?")[0]](keep, spread)


def found_in(service: Service, *groups: str) -> tuple[Discovery, list[list[str]]]:
    """List groups; the second value are the projects that were prepared at once."""
    prepared = []

    def prepare(members: Mapping[str, Sequence[Member]]) -> Iterable[DesiredTarget]:
        paths = {each.path: None for found in members.values() for each in found}
        prepared.append([*paths])
        return [wished(path) for path in paths]

    prefetch = Prefetch(KINDS, prepare)
    return discover(dict.fromkeys(groups, GroupListing()), service, prefetch=prefetch), prepared


def paths_of(found: Discovery) -> list[str]:
    """Return the projects of `acme`."""
    members = found.groups["acme"]
    assert not isinstance(members, Obstacle)
    return [each.path for each in members]


def test_projects_are_read_while_later_pages_are_still_under_way_and_only_once() -> None:
    def listed(keep: Callable[[list[Any]], list[Any]], _spread: Spread) -> list[Any]:
        first = keep(entries("acme/a", "acme/bb", "acme/x-deletion_scheduled-7"))
        assert service.read.wait(WAIT)
        keep(entries("acme/bb"))
        return first + keep(entries("acme/ccc"))

    with Service({"groups/acme/projects": listed}) as service:
        found, _ = found_in(service, "acme")
        paths = ["acme/a", "acme/bb", "acme/ccc"]
        assert paths_of(found) == paths
        assert 1 <= len(service.asked) == len(found.parts)
        whole = desired(*(each for path in paths for each in wished(path).sections))
        live = read_live(whole, service, KINDS, early=found.parts)
        assert sorted(service.asked) == [f"projects/{path.replace('/', '%2F')}/notification_settings" for path in paths]
        assert [target.ref for target, _, _ in live.parts] == paths
        changed = desired(section("notification_settings", {"level": "mention"}, Target(Level.PROJECT, "acme/a")))
        read_live(changed, service, KINDS, early=found.parts)
        assert service.asked.count("projects/acme%2Fa/notification_settings") == 2


def test_a_project_is_read_early_only_if_all_groups_above_it_have_shown_it() -> None:
    above, below = Event(), Event()

    def outer(keep: Callable[[list[Any]], list[Any]], _spread: Spread) -> list[Any]:
        found = keep(entries("acme/a", "acme/tools/b"))
        assert service.read.wait(WAIT)
        above.set()
        assert below.wait(WAIT)
        return found

    def inner(keep: Callable[[list[Any]], list[Any]], _spread: Spread) -> list[Any]:
        assert above.wait(WAIT)
        service.read.clear()
        found = keep(entries("acme/tools/b"))
        assert service.read.wait(WAIT)
        below.set()
        return found

    with Service({"groups/acme/projects": outer, "groups/acme%2Ftools/projects": inner}, concurrency=4) as service:
        _, prepared = found_in(service, "acme", "acme/Tools")
    assert prepared == [["acme/a"], ["acme/tools/b"]]


def ask_for(ask: Callable[[int], Any], number: int, keep: Any, spread: Spread) -> list[Any]:
    """Ask for pages as the client does."""
    pages = spread(lambda page: ask(int(page)), [str(page) for page in range(number)])
    return [member for page in pages for member in keep(page)]


def test_pages_are_taken_by_all_who_are_idle_and_stay_in_order() -> None:
    both = [Event(), Event()]

    def page(number: int) -> list[Any]:
        if number < 2:
            both[number].set()
            assert both[1 - number].wait(WAIT)
        return entries(f"acme/{number}")

    with Service({"groups/acme/projects": lambda keep, spread: ask_for(page, 9, keep, spread)}) as service:
        found, _ = found_in(service, "acme")
    assert paths_of(found) == [f"acme/{number}" for number in range(9)]


@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_page_that_fails_ends_its_list_and_no_other(concurrency: int) -> None:
    asked = []

    def page(number: int) -> list[Any]:
        asked.append(number)
        raise Forbidden("GET x", "403 Forbidden", 403)

    lists = {
        "groups/acme/projects": lambda keep, spread: ask_for(page, 9, keep, spread),
        "groups/other/projects": lambda keep, _spread: keep(entries("other/a")),
    }
    with Service(lists, concurrency) as service:
        found, _ = found_in(service, "acme", "other")
    assert [isinstance(each, Obstacle) for each in found.groups.values()] == [True, False]
    assert len(asked) <= concurrency


def test_a_refused_token_ends_the_other_lists_too() -> None:
    begun, refused = Event(), Event()
    stopped: list[Stopped] = []

    def fail(_keep: Any, _spread: Spread) -> list[Any]:
        assert begun.wait(WAIT)
        refused.set()
        raise Unauthorized("GET x", "401 Unauthorized", 401)

    def go_on(keep: Any, spread: Spread) -> list[Any]:
        begun.set()
        assert refused.wait(WAIT)
        while not stopped:
            try:
                ask_for(lambda _: entries("other/a"), 3, keep, spread)
            except Stopped as error:
                stopped.append(error)
        return ask_for(lambda _: entries("other/a"), 3, keep, spread)

    with Service({"groups/acme/projects": fail, "groups/other/projects": go_on}) as service:
        with pytest.raises(Unauthorized):
            found_in(service, "acme", "other")
    assert len(stopped) == 1


def test_what_is_declared_of_some_projects_takes_no_other_document() -> None:
    head = "apiVersion: reconciler/v1\nkind: "
    texts = [
        "ProjectSet\nmetadata: {name: all}\nselect: {group: Acme}\nspec: {milestones: {'{name}': {}}}",
        "ProjectSet\nmetadata: {name: some}\nselect: {projects: [acme/a, acme/c]}\nspec: {approval_settings: {}}",
        "Project\nmetadata: {id: 2}\nspec: {milestones: {own: {}}}",
        "Project\nmetadata: {path: acme/c}\nspec: {}",
        "Group\nmetadata: {path: acme}\nspec: {approval_settings: {}}",
    ]
    manifests = read_contents({"a.yaml": "".join(f"{head}{text}\n---\n" for text in texts).encode()}, KINDS)
    assert manifests.index.sections_below == {"Acme": {"milestones", "approval_settings"}}
    listed = (Member("acme/a", id=1), Member("acme/b", id=2))
    found = manifests.of_members({"acme": listed})
    assert [(str(each.target), [section.kind for section in each.sections]) for each in found] == [
        ("project acme/a", ["approval_settings", "milestones"]),
        ("project 2", ["milestones"]),
    ]
    whole = manifests.with_discovered({"Acme": (*listed, Member("acme/c", id=3))}).desired.targets
    assert [each for each in whole if each.target in {every.target for every in found}] == [*found]
    wrong = {"a.yaml": (head + texts[0].replace("'{name}': {}", "'{name}': {}, b: {}")).encode()}
    assert read_contents(wrong, KINDS).of_members({"acme": (Member("acme/b", id=2),)}) == ()
