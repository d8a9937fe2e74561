"""The planning of a collection: wanted names are matched with found objects, and what differs becomes a change."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from reconciler.model.diff import as_read, become, differences, fields_of, only
from reconciler.model.endpoints import Collection, Existing, New
from reconciler.model.plan import Create, Delete, Problem, Unmanaged, Update
from reconciler.model.resource import Found, Resource, Rotated
from reconciler.model.state import Reference, Unknown
from reconciler.model.targets import Address, Key, Level
from reconciler.planning.draft import Draft

OF_ANOTHER_USER = (
    "due for rotation, but it belongs to another user; its owner can rotate it, or delete it and the next run creates "
    "a new one"
)


def identity(part: Collection, name: Key) -> Key:
    """Return the form in which two spellings of one object's name are equal; paths ignore case."""
    if part.key_level is None:
        return part.canonical_key(name)
    return name.casefold() if isinstance(name, str) else name


def by_birth(found: Found) -> tuple[datetime, int]:
    """Return what puts objects in the order in which they were created, as far as the service tells."""
    return found.created_at or datetime.min.replace(tzinfo=UTC), found.id or 0


class Matching:
    """The planning of one collection: matches wanted names with found objects."""

    def __init__(self, draft: Draft, part: Collection, live: tuple[Found, ...]) -> None:
        self.draft, self.part = draft, part
        self.target, self.ids, self.missing = draft.target, draft.live.ids, draft.missing
        self.live = sorted(
            (found for found in live if not self._is_itself(found.names)), key=lambda found: found.id or 0
        )
        self.by_name: dict[Key, list[Found]] = {}
        for found in self.live:
            for name in found.names:
                self.by_name.setdefault(identity(part, name), []).append(found)
        self.claimed: set[int] = set()
        self.added: set[int] = set()
        self.unresolvable = False

    def run(self, wanted: Mapping[Key, Resource | None]) -> None:
        """Plan all items, and what becomes of the objects that none of them is about."""
        self.draft.found += len(self.live)
        # What must not exist comes last, for a rename may have claimed it by then.
        for name in sorted(wanted, key=lambda key: (wanted[key] is None, isinstance(key, int), key)):
            if not self._is_itself((name,)):
                self._plan_item(name, wanted[name])
        for found in sorted(self.live, key=lambda found: str(found.names[0])):
            if id(found) in self.claimed:
                continue
            # A wanted path that cannot be looked up may be a former path of any entry: then none is removed.
            if self.draft.section.prune and not self.unresolvable:
                self._delete(found.names[0], found)
            else:
                address, grants = self._address(found.names[0]), self.part.grants_access
                self.draft.unmanaged.append(Unmanaged(address, found.id, grants, found.owner, found.last_used))

    def _plan_item(self, name: Key, wanted: Resource | None) -> None:
        if wanted is None:
            self._plan_absence(name)
            return
        target_id = self._resolve(name, self.part.key_level) if self.part.key_level else None
        if isinstance(target_id, Unknown):
            self.unresolvable = True
            self._problem(name, target_id.reason, target_id.remedy)
        elif target_id is not None and not self._is_itself((target_id,)):
            self._plan_wanted(name, wanted, self._claim(target_id), target_id)
        elif not self.part.key_level:
            self._plan_wanted(name, wanted, self._claim(name), None)
        elif target_id is None:
            self.unresolvable = True

    def _plan_absence(self, name: Key) -> None:
        """Delete what must not exist, unless a rename has claimed it, or a wanted path may be a former one of it."""
        claimed = self.claimed.copy()
        if self.unresolvable:
            return
        if self.part.key_level and any(not isinstance(found.names[0], str) for found in self.live):
            number = self._resolve(name, self.part.key_level)
            name = number if isinstance(number, int) else name
        for found in self._claim(name):
            if id(found) not in claimed:
                self._delete(name, found)

    def _plan_wanted(self, name: Key, wanted: Resource, matches: list[Found], target_id: int | None) -> None:
        former_names = getattr(wanted, "renamed_from", ())
        old_names = [old for old in former_names if self._find(old)]
        olds = [found for old in old_names for found in self._claim(old)]
        match matches, olds:
            case [], []:
                self._create(name, wanted, target_id, former_names)
            case [_, *_], [] if isinstance(wanted, Rotated) and wanted.rotate_after is not None:
                self._rotate(name, wanted, wanted.rotate_after, matches)
            case ([found], []) | ([], [found]):
                self._update(name, wanted, found)
            case [], _:
                self._problem(name, _crowd(olds, f"the former name {_names(old_names)}"))
            case _, []:
                self._problem(name, _crowd(matches))
            case _:
                self._problem(name, f"both this name and the former {_names(old_names)} are live; delete one of them")

    def _create(self, name: Key, wanted: Resource, target_id: int | None, former_names: tuple[Key, ...]) -> None:
        whole = become(type(wanted)(), wanted)
        errors = list(whole.errors())
        for field, reason in errors:
            self.draft.problems.append(Problem(self._address(name), f"cannot be created: {reason}", field))
        path = None if errors or target_id in self.added else self._path(name)
        if path is not None:
            if target_id is not None:
                self.added.add(target_id)
            requests = self.part.create(New(self.part, self.target, path, name, wanted, target_id))
            delivers = self.part.secret_field is not None
            self.draft.creates.append(
                Create(
                    self._address(name),
                    fields_of(wanted),
                    requests,
                    target_id,
                    delivers=delivers,
                    former_names=former_names,
                )
            )

    def _rotate(self, name: Key, wanted: Resource, age: timedelta, matches: list[Found]) -> None:
        """Create a successor where the newest is too old; delete what the newest has succeeded, once it is settled.

        Only what is ours succeeds and is succeeded.
        """
        ours = [found for found in matches if found.ours]
        if len(matches) > max(1, len(ours)):
            self._problem(name, _crowd(matches))
        if ours:
            self._succeed(name, wanted, age, ours, matches)
        elif len(matches) == 1 and self._age(matches[0]) >= age:
            self._problem(name, OF_ANOTHER_USER)

    def _succeed(self, name: Key, wanted: Resource, age: timedelta, ours: list[Found], matches: list[Found]) -> None:
        if any(found.created_at is None for found in ours):
            self._problem(name, "the service does not tell how old it is, so it cannot be rotated")
            return
        newest = max(ours, key=by_birth)
        if self._age(newest) >= age:
            ids = tuple(found.id for found in matches if found.id is not None)
            requests = self.part.create(New(self.part, self.target, self.part.path(self.target), name, wanted))
            self.draft.creates.append(
                Create(self._address(name), fields_of(wanted), requests, replaces_ids=ids, delivers=True)
            )
        if self._age(newest) >= self.draft.grace:
            for found in ours:
                if found is not newest:
                    self._delete(name, found, newest.id)

    def _age(self, found: Found) -> timedelta:
        """How old an object is; nothing where the service does not tell, or tells its time in whole seconds only."""
        now = self.draft.live.read_at
        return max(now - (found.created_at or now), timedelta())

    def _update(self, name: Key, wanted: Resource, found: Found) -> None:
        former = None if identity(self.part, name) in map(self._identity, found.names) else found.names[0]
        if former is not None and "renamed_from" in found.read_only:
            self._problem(name, found.read_only["renamed_from"])
            return
        possible = self.draft.settle(self._address(name), wanted, found)
        if possible is None or self.part.update is None:
            return
        before, after = differences(possible, found)
        path = self._path(name) if after or former is not None else None
        if path is not None:
            requests = self.part.update(Existing(self.part, self.target, path, name, only(possible, after), found))
            self.draft.updates.append(Update(self._address(name), before, after, requests, as_read(found), former))

    def _delete(self, name: Key, found: Found, successor_id: int | None = None) -> None:
        path = self._path(name)
        if path is not None:
            requests = self.part.delete(Existing(self.part, self.target, path, name, Resource(), found))
            self.draft.deletes.append(
                Delete(self._address(found.names[0]), fields_of(found.resource), requests, as_read(found), successor_id)
            )

    def _path(self, name: Key) -> str | None:
        """The collection's path for writes; None while the numeric ID in it is missing."""
        if self.part.needs_numeric_id and isinstance(self.target.ref, str):
            number = self._look_up(Reference(self.target.level, self.target.ref.casefold()))
            if isinstance(number, Unknown):
                need = f"writing here takes the numeric ID of {self.target}"
                self._problem(name, f"{need}: {number.reason}", "declare it by `id` instead of `path`")
                return None
            return None if number is None else f"{self.target.level}s/{number}/{self.part.suffix}"
        return self.target.url + self.part.suffix

    def _resolve(self, name: Key, level: Level) -> int | Unknown | None:
        """The numeric ID of the target a name refers to; None while it is missing."""
        live = self._find(name)
        if live:
            return live[0].id
        if isinstance(name, int):
            return name
        return self._look_up(Reference(level, name.casefold()))

    def _look_up(self, reference: Reference) -> int | Unknown | None:
        if reference not in self.ids:
            self.missing.add(reference)
        return self.ids.get(reference)

    def _is_itself(self, names: Iterable[Key]) -> bool:
        """Whether an allowlist's entry is the project whose list it is: it may always reach itself."""
        if self.part.key_level is not self.target.level or self.target.ref is None:
            return False
        itself = self._identity(self.target.ref)
        number = self.ids.get(Reference(self.target.level, str(itself)))
        return any(self._identity(name) in (itself, number) for name in names)

    def _identity(self, name: Key) -> Key:
        return identity(self.part, name)

    def _find(self, name: Key) -> list[Found]:
        return self.by_name.get(self._identity(name), [])

    def _claim(self, name: Key) -> list[Found]:
        found = self._find(name)
        self.claimed |= {id(each) for each in found}
        return found

    def _address(self, name: Key) -> Address:
        return self.draft.address(self.part, name)

    def _problem(self, name: Key, reason: str, remedy: str = "") -> None:
        self.draft.problems.append(Problem(self._address(name), reason, remedy=remedy))


def _names(names: Iterable[Key]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _crowd(found: Sequence[Found], name: str = "this name") -> str:
    strangers = [each for each in found if not each.ours]
    whose = "belongs to another user" if len(strangers) == 1 else "belong to other users"
    replaces_ids = f"; {_ids(strangers)} {whose}" if 0 < len(strangers) < len(found) else ""
    return f"{len(found)} objects have {name} ({_ids(found)}); expected one{replaces_ids}"


def _ids(found: Iterable[Found]) -> str:
    numbers = sorted(each.id or 0 for each in found)
    return f"ID{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))}"
