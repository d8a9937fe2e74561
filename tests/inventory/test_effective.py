"""The digest of what is wanted of a target, and the day on which time alone changes it."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

from reconciler.memory.effective import again_on, digest_of, due_moments
from reconciler.model.creation import Creation
from reconciler.model.endpoints import Collection
from reconciler.model.exceptions import DeclaredException
from reconciler.model.resource import LiveRecord
from reconciler.model.state import DesiredTarget
from tests.building import API, KINDS, section

TODAY = date(2026, 12, 1)
NOW = datetime(2026, 12, 1, 15, tzinfo=UTC)


def target(*sections: Any, **more: Any) -> DesiredTarget:
    return DesiredTarget(API, sections, **more)


def digest(kind: str, value: Any, *, prune: bool = False) -> str:
    return digest_of(target(section(kind, value, prune=prune)))


def test_the_digest_is_of_what_is_wanted_however_it_is_written() -> None:
    written = digest("milestones", {"b": {"due_date": "2026-12-31"}, "a": {"state": "closed"}})
    assert written == digest("milestones", {"a": {"state": "closed"}, "b": {"due_date": "2026-12-31"}})
    assert written.startswith("1:")
    assert len(written) == 66


def test_whatever_changes_what_is_wanted_changes_the_digest() -> None:
    exception = DeclaredException("milestones", date(2026, 12, 31), "a freeze", "a", ("state",))
    milestones = section("milestones", {"a": {"state": "closed"}})
    digests = [
        digest_of(target()),
        digest_of(target(unmanaged=frozenset({"milestones"}))),
        digest_of(target(milestones)),
        digest_of(target(replace(milestones, at_least={"a": frozenset({"state"})}))),
        digest("milestones", {"a": {}}),
        digest("milestones", {"a": None}),
        digest("milestones", {}),
        digest("milestones", {}, prune=True),
        digest("milestones", {"a": {"state": "closed", "renamed_from": "b"}}),
        digest("trigger_tokens", {"a": {}}),
        digest("trigger_tokens", {"a": {"rotate_after": "90d"}}),
        digest("trigger_tokens", {"a": {"rotate_after": "30d"}}),
        digest("job_token_scope", {"projects": ["7"]}),
        digest("job_token_scope", {"projects": [7]}),
        digest("job_token_scope", {"groups": ["7"]}),
        digest("job_token_scope", {"enabled": True}),
        digest("approval_settings", {"allow_author_approval": True}),
        digest_of(target(milestones, exceptions=(exception,))),
        digest_of(target(milestones, exceptions=(replace(exception, until=date(2027, 1, 1)),))),
        digest_of(target(milestones, exceptions=(replace(exception, fields=()),))),
        digest_of(target(milestones, creation=Creation("api"))),
        digest_of(target(milestones, creation=Creation("api", "private"))),
    ]
    assert len({*digests}) == len(digests)


def test_what_changes_nothing_does_not_change_the_digest() -> None:
    exception = DeclaredException("milestones", date(2026, 12, 31), "a freeze")
    milestones = section("milestones", {"a": {}})
    before = target(milestones, exceptions=(exception,), creation=Creation("api", origin="a.yaml:1"))
    other = replace(exception, reason="another", origin="b.yaml:2")
    moved = replace(
        before,
        exceptions=(other,),
        origin="b.yaml:1",
        labels={"team": "x"},
        creation=Creation("api", origin="b.yaml:1"),
    )
    assert digest_of(moved) == digest_of(before)


def moments(value: Any, births: dict[str, list[datetime | None]], grace: timedelta = timedelta()) -> list[datetime]:
    """Return when tokens are due that were created at some times; a token named `other` is another user's."""
    part = KINDS["trigger_tokens"].part("trigger_tokens")
    assert isinstance(part, Collection)
    declared = section("trigger_tokens", value)
    resource = part.model()
    live = [
        LiveRecord(resource, (name.removesuffix("*"),), created_at=birth, ours=not name.endswith("*"))
        for name, all_ in births.items()
        for birth in all_
    ]
    return list(due_moments(declared, part, live, grace, NOW))


def test_a_rotation_and_the_end_of_a_grace_are_due() -> None:
    born, reborn = datetime(2026, 9, 1, 15, tzinfo=UTC), datetime(2026, 11, 30, 15, tzinfo=UTC)
    declared = {"t": {"rotate_after": "90d"}, "never": {}, "gone": None}
    assert moments(declared, {"t": [born], "never": [born], "t*": [reborn]}) == [datetime(2026, 11, 30, 15, tzinfo=UTC)]
    assert moments(declared, {"t": [born, reborn]}, timedelta(days=2)) == [
        datetime(2027, 2, 28, 15, tzinfo=UTC),
        datetime(2026, 12, 2, 15, tzinfo=UTC),
    ]
    assert moments(declared, {"t": [None]}) == []


def test_a_token_that_the_run_creates_is_due_too() -> None:
    declared = {"t": {"rotate_after": "90d"}}
    assert (
        moments(declared, {}) == moments(declared, {"t*": [datetime(2026, 9, 1, tzinfo=UTC)]}) == [NOW + timedelta(90)]
    )
    born = datetime(2026, 11, 1, tzinfo=UTC)
    renamed = {"u": {"rotate_after": "90d", "renamed_from": "t"}}
    assert moments(renamed, {"t": [born]}) == [born + timedelta(90)]


def test_settings_are_never_due() -> None:
    part = KINDS["trigger_tokens"].part("trigger_tokens")
    assert isinstance(part, Collection)
    settings = section("approval_settings", {"allow_author_approval": True})
    declared = replace(settings, wanted={"trigger_tokens": settings.wanted["approval_settings"]})
    assert list(due_moments(declared, part, (), timedelta(), NOW)) == []


def test_again_is_the_first_day_on_which_anything_is_due() -> None:
    over = DeclaredException("milestones", date(2026, 11, 30), "over")
    ends = DeclaredException("milestones", date(2026, 12, 1), "ends today")
    late = datetime(2026, 12, 5, 23, 30, tzinfo=UTC)
    assert again_on([over], [], TODAY) is None
    assert again_on([over, ends], [late], TODAY) == date(2026, 12, 2)
    assert again_on([], [late.astimezone(tz=None)], TODAY) == date(2026, 12, 5)
