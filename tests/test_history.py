"""The history of drift: since when each difference is there, whatever the runs looked at."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from reconciler.document.checksum import with_checksum
from reconciler.document.compare import fingerprint
from reconciler.document.document import RunDocument
from reconciler.errors import PlanRefused
from reconciler.model.item import Create, Finding, problem_at
from reconciler.model.shards import Shard
from reconciler.model.targets import Address, Level, Target
from reconciler.reports import history as histories
from reconciler.reports.history import History, load_history, save_history, with_run, without_future
from reconciler.schema import schema_of
from tests.building import KINDS, SectionPlan, target_plan
from tests.render.hostile import EVIL
from tests.render.samples import EMPTY, NOON, about

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
TARGETS = [Target(Level.PROJECT, "acme/api"), Target(Level.PROJECT, 7), Target(Level.GROUP, "acme"), Target(Level.USER)]
SECTIONS = {"milestones": ("milestones",), "job_token_scope": ("projects", "groups")}

Place = tuple[Target, str, str]
"""A target, a section and a part of it."""

Present = Mapping[Place, Iterable[str]]
"""The names of the objects that differ."""


@dataclass(frozen=True)
class Seen:
    """A run: what differs, and what could not be read."""

    present: Present
    unread: frozenset[Place] = frozenset()
    hidden: frozenset[Target] = frozenset()


def difference(place: Place, name: str) -> Create:
    target, section, part = place
    return Create(Address(target, section, part, "thing", name), {}, ())


def problem(place: Place) -> Finding:
    target, section, part = place
    return problem_at(Address(target, section, part, "things"), "403 Forbidden")


def run(
    at: datetime, seen: Seen, places: Iterable[Place], *, narrowed: bool | None = False, shard: Shard | None = None
) -> RunDocument:
    """Return the plan of a run that looks at some places."""
    looked: dict[Target, dict[str, list[Place]]] = {}
    for place in places:
        looked.setdefault(place[0], {}).setdefault(place[1], []).append(place)
    targets = []
    for target, sections in looked.items():
        if target in seen.hidden:
            targets.append(target_plan(target, (SectionPlan("").saying(problem((target, "", ""))),)))
            continue
        planned = [
            SectionPlan(
                section,
                changes=tuple(
                    difference(each, name)
                    for each in parts
                    if each not in seen.unread
                    for name in seen.present.get(each, ())
                ),
                findings=tuple(problem(each) for each in parts if each in seen.unread),
            )
            for section, parts in sections.items()
        ]
        targets.append(target_plan(target, tuple(planned)))
    return replace(about(EMPTY, targets), created_at=at, narrowed=narrowed, shard=shard)


ALL: list[Place] = [
    (target, section, part) for target in TARGETS for section, parts in SECTIONS.items() for part in parts
]
API, GROUPS = ALL[0], ALL[2]


def ages(history: History, *of: tuple[Place, str]) -> list[int | None]:
    """Return the days from noon at which differences were first seen; None for those that are gone."""
    since = history.first_seen()
    found = [since.get(fingerprint(difference(*each))) for each in of]
    return [None if moment is None else (moment - NOON).days for moment in found]


places = st.sampled_from(ALL)
seen = st.builds(
    Seen,
    st.dictionaries(places, st.sets(st.sampled_from("ab"))),
    st.frozensets(places, max_size=2),
    st.frozensets(st.sampled_from(TARGETS), max_size=1),
)
scopes = st.none() | st.sets(places, min_size=1).map(
    lambda some: [each for each in ALL if any(each[:2] == other[:2] for other in some)]
)


@pytest.mark.untraced
@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(seen, scopes), max_size=6))
def test_over_any_runs_a_difference_keeps_its_first_moment_until_a_run_looks_and_does_not_find_it(
    runs: list[tuple[Seen, list[Place] | None]],
) -> None:
    history: History | None = None
    expected: dict[str, datetime] = {}
    places_of: dict[str, Place] = {}
    for number, (found, scope) in enumerate(runs):
        at = NOON + number * HOUR
        saved = run(at, found, scope or ALL, narrowed=scope is not None)
        history = with_run(history, saved)
        readable = [each for each in scope or ALL if each[0] not in found.hidden]
        now: dict[str, Place] = {}
        for place in readable:
            if place in found.unread:
                now[fingerprint(problem(place))] = place
            else:
                now |= {fingerprint(difference(place, name)): place for name in found.present.get(place, ())}
        for target in {target for target, *_ in scope or ALL}:
            whole = (target, "", "")
            if target in found.hidden:
                now[fingerprint(problem(whole))] = whole
            else:
                expected.pop(fingerprint(problem(whole)), None)
        for place in readable:
            expected.pop(fingerprint(problem(place)), None) if place not in found.unread else None
            for mark in [mark for mark, its in places_of.items() if its == place and mark not in now]:
                if place not in found.unread:
                    expected.pop(mark, None)
        for mark, place in now.items():
            places_of[mark] = place
            expected.setdefault(mark, at)
        assert history.first_seen() == expected
        assert load_history(save_history(history), EMPTY.service) == history
        assert with_run(history, saved) == history
        assert history.runs[-1].changes + history.runs[-1].problems == len(expected)
        assert history.runs[-1].whole is (scope is None)


def test_an_age_outlives_everything_that_says_nothing_about_it() -> None:
    two = Seen({API: "ab", GROUPS: "a"})
    three = [(API, "a"), (API, "b"), (GROUPS, "a")]
    history = with_run(None, run(NOON, Seen({API: "a"}), ALL))
    assert ages(history, *three) == [0, None, None]
    history = with_run(history, run(NOON + DAY, two, ALL))
    assert ages(history, *three) == [0, 1, 1]
    for narrowed, shard in ((True, None), (None, None), (False, Shard(1, 2))):
        history = with_run(history, run(NOON + 2 * DAY, Seen({}), ALL[3:], narrowed=narrowed, shard=shard))
        assert ages(history, *three) == [0, 1, 1]
        assert not history.runs[-1].whole
    history = with_run(history, run(NOON + 3 * DAY, Seen({API: "a"}, frozenset({GROUPS})), ALL))
    assert ages(history, *three) == [0, None, 1]
    history = with_run(history, run(NOON + 4 * DAY, Seen({}, hidden=frozenset({TARGETS[0]})), ALL))
    assert ages(history, *three) == [0, None, 1]
    assert [(each.changes, each.problems) for each in history.runs] == [(1, 0), (3, 0), (3, 0), (2, 1), (2, 2)]
    history = with_run(history, run(NOON + 5 * DAY, two, ALL))
    assert ages(history, *three) == [0, 5, 1]
    history = with_run(history, run(NOON + 6 * DAY, Seen({}), ALL[1:2]))  # nothing else is declared now
    assert history.differences == ()


def test_a_run_that_creates_a_target_has_looked_at_all_of_it() -> None:
    def planned(at: datetime, *sections: SectionPlan) -> RunDocument:
        return replace(about(EMPTY, [target_plan(TARGETS[0], sections)]), created_at=at, narrowed=False)

    created = SectionPlan("", changes=(Create(TARGETS[0].address, {"name": "api"}, ()),))
    held = [SectionPlan("milestones", changes=(difference(API, name),)) for name in "ab"]
    history = with_run(None, planned(NOON, held[0]))
    history = with_run(history, planned(NOON + DAY, created, held[1]))
    assert [(each.section, len(each.changes), each.since) for each in history.differences] == [
        ("", 1, NOON + DAY),
        ("milestones", 1, NOON + DAY),
    ]
    history = with_run(history, planned(NOON + 2 * DAY, held[1]))
    assert [(each.section, each.since) for each in history.differences] == [("milestones", NOON + DAY)]


def test_a_run_that_comes_late_adds_earlier_moments_only() -> None:
    history = with_run(None, run(NOON + 2 * DAY, Seen({API: "a"}), ALL))
    late = run(NOON, Seen({API: "ab"}), ALL)
    history = with_run(history, late)
    assert ages(history, (API, "a"), (API, "b")) == [0, None]
    assert [(each.at, each.changes) for each in history.runs] == [(NOON, 2), (NOON + 2 * DAY, 1)]
    assert with_run(history, late) == history
    part = run(NOON + DAY, Seen({}), ALL[:1], narrowed=True)
    assert with_run(history, part) == history


def test_a_clock_that_was_wrong_once_leaves_no_trace() -> None:
    history = with_run(None, run(NOON, Seen({API: "a"}), ALL))
    spoilt = with_run(history, run(NOON + 4000 * DAY, Seen({API: "ab"}), ALL))
    now = NOON + DAY
    after = without_future(spoilt, now)
    assert (after.runs, ages(after, (API, "a"), (API, "b"))) == (history.runs, [0, None])
    assert [each.seen for each in after.differences] == [now]
    after = with_run(after, run(now, Seen({API: "b"}), ALL))
    assert ages(after, (API, "a"), (API, "b")) == [None, 1]
    assert [each.at for each in after.runs] == [NOON, now]
    soon = with_run(history, run(now, Seen({API: "ab"}), ALL))
    assert without_future(soon, now - timedelta(minutes=5)) == soon  # clocks differ a little


def test_a_history_stays_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(histories, "MAX_DIFFERENCES", 5)
    monkeypatch.setattr(histories, "MAX_RUNS", 3)
    history = None
    for number in range(5):
        names = [f"{index}" for index in range(2 * number + 1)]
        history = with_run(history, run(NOON + number * DAY, Seen({API: names}), ALL))
    assert history
    assert [((each.at - NOON).days, each.changes) for each in history.runs] == [(2, 5), (3, 7), (4, 9)]
    assert len(history.first_seen()) == 5
    assert ages(history, (API, "0"), (API, "4"), (API, "8")) == [0, 2, None]
    for days, left in ((93, 5), (95, 0)):
        later = run(NOON + timedelta(days=days), Seen({}), ALL[3:4], narrowed=True)
        assert len(with_run(history, later).first_seen()) == left


def test_a_history_holds_addresses_and_no_values() -> None:
    place: Place = (Target(Level.PROJECT, EVIL), EVIL, EVIL)
    secret = Create(Address(*place, "token", EVIL), {"value": "glpat-secret"}, ())
    planned = target_plan(place[0], (SectionPlan(EVIL, changes=(secret, secret), findings=(problem(place),)),), EVIL)
    history = with_run(None, replace(about(EMPTY, [planned]), narrowed=False))
    text = save_history(history)
    assert text.isascii()
    assert "glpat-secret" not in text
    content = json.loads(text)
    content.pop("checksum")
    mark = fingerprint(secret)
    assert content == {
        "format": "reconciler.history/v1",
        "service": EMPTY.service,
        "runs": [
            {
                "at": "2026-12-01T12:00:00Z",
                "targets": 1,
                "whole": True,
                "changes": 2,
                "problems": 1,
                "projects": 1,
                "in_order": 0,
            }
        ],
        "differences": [
            {
                "level": "project",
                "ref": EVIL,
                "section": EVIL,
                "part": EVIL,
                "since": "2026-12-01T12:00:00Z",
                "seen": "2026-12-01T12:00:00Z",
                "changes": [mark, mark],
                "problems": [fingerprint(problem(place))],
            }
        ],
    }
    Draft202012Validator(schema_of("history", KINDS)).validate(json.loads(text))
    assert with_run(load_history(text, EMPTY.service), replace(about(EMPTY, [planned]), narrowed=False)) == history


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not a history of drift: line 1, column 1 is not JSON"),
        (
            '{"format": "reconciler.plan/v4"}',
            "not a history of drift but a saved plan: its format is reconciler.plan/v4",
        ),
        (
            '{"format": "reconciler.history/v2"}',
            "the history of drift was made by a newer reconciler: its format is reconciler.history/v2, "
            "not reconciler.history/v1; update this one",
        ),
        (
            save_history(History(service="https://git.example.com/api/v4")).replace('"runs": []', '"runs": [1]'),
            "the history of drift was edited after it was saved: its checksum does not match; make it again",
        ),
        (
            with_checksum({"format": "reconciler.history/v1", "service": "x", "runs": [], "differences": [7]}),
            "the history of drift is damaged: differences[0] should be an object",
        ),
        (
            save_history(History(service="https://elsewhere.example/api/v4")),
            "the history is about 'https://elsewhere.example/api/v4', and this is 'https://git.example.com/api/v4'",
        ),
    ],
)
def test_a_file_that_is_no_history_of_this_service_is_refused(text: str, message: str) -> None:
    with pytest.raises(PlanRefused) as refused:
        load_history(text, EMPTY.service)
    assert str(refused.value) == message
