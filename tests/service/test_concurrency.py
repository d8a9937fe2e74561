"""The number of requests in flight: fixed, or found, on a service that is a pure model; no real time passes."""

from collections.abc import Callable, Mapping, Sequence
from random import Random
from statistics import mean, median
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.service.concurrency import LADDER, AdaptiveLimit, ConcurrencyLimit, FixedLimit, route_of
from tests.service.simulation import READS, Run, Service, Unmoved, reads, simulate

ALIKE = settings(deadline=None, derandomize=True, max_examples=3)
SEEDS = st.integers(0, 1000)

VERSIONS = {"GET version": 0.005, "GET approvals": 0.057, "GET milestones": 0.060, "GET allowlist": 0.150}
"""Routes whose costs differ by a factor of 30."""


def a_run(
    limit: ConcurrencyLimit | None = None,
    *,
    seed: int = 7,
    requests: Sequence[str] | None = None,
    costs: Mapping[str, float] = READS,
    compute: float = 0.0,
    **service: Any,
) -> tuple[Run, Service]:
    """Let a run make its requests, with an adaptive limit if none is given."""
    there = Service(costs=costs, random=Random(seed), **service)  # noqa: S311 - repeatable
    run = Run(limit or AdaptiveLimit(), reads(1500, costs) if requests is None else requests, compute)
    simulate(there, run)
    return run, there


def share(**settings: Any) -> float:
    """Return the answers per second as a share of those with the best fixed number."""
    found, _ = a_run(**settings)
    return found.rate / max(a_run(Unmoved(number), **settings)[0].rate for number in (2, 8, 24, 32))


@pytest.mark.untraced
@pytest.mark.parametrize("workers", [4, 16, 64])
@ALIKE
@given(SEEDS)
def test_the_number_finds_itself(workers: int, seed: int) -> None:
    assert share(workers=workers, seed=seed) >= 0.9


@pytest.mark.untraced
@ALIKE
@given(SEEDS)
def test_answers_stay_quick(seed: int) -> None:
    run, service = a_run(workers=16, seed=seed)
    alone, _ = a_run(Unmoved(1), workers=16, seed=seed)
    assert run.slowness(service) <= 1.5 * alone.slowness(service)


@pytest.mark.untraced
@pytest.mark.parametrize(
    "settings",
    [
        {"workers": 1},
        {"workers": 16, "costs": VERSIONS},
        {"workers": 16, "latency": 0.1},
        {"workers": 4, "spread": 0.8},
        {"workers": 64, "compute": 0.0009, "costs": {"GET a": 0.0001}, "requests": ["GET a"] * 3000},
        {"workers": 4, "pace": lambda now: 3 if now > 8 else 1},
        {"workers": 16, "pace": lambda now: 3 if now > 4 else 1},
        {"workers": 16, "pace": lambda now: 1 if now > 6 else 3},
        {"workers": 16, "pace": lambda now: 10 if 3 < now < 6 else 1},
        {"workers": 4, "requests": reads(600) + ["PUT a"] * 300, "costs": READS | {"PUT a": 0.8}},
    ],
    ids=[
        "one worker",
        "mixed routes",
        "a long way",
        "scattered times",
        "the run's own interpreter",
        "few workers that become slow",
        "workers that become slow",
        "workers that become quick",
        "workers that are slow for a while",
        "writes after reads",
    ],
)
def test_whatever_the_service_is_like(settings: dict[str, Any]) -> None:
    assert mean(share(seed=seed, **settings) for seed in range(2)) >= 0.85


@pytest.mark.parametrize("workers", [4, 8, 16, 64])
def test_a_short_run_is_as_quick_as_with_eight(workers: int) -> None:
    found = mean(a_run(seed=seed, workers=workers, requests=reads(20))[0].seconds for seed in range(20))
    eight = mean(a_run(Unmoved(8), seed=seed, workers=workers, requests=reads(20))[0].seconds for seed in range(20))
    assert found <= 1.05 * eight


def test_a_slow_listing_at_the_start_costs_nothing() -> None:
    costs = READS | {"GET projects": 2.0}
    without, _ = a_run(workers=16)
    listing, _ = a_run(workers=16, costs=costs, requests=["GET projects", *reads(1500)])
    assert min(listing.limits) >= 4
    assert listing.seconds <= 1.05 * without.seconds


def test_routes_that_are_first_seen_at_a_higher_number_are_no_reason_to_climb() -> None:
    costs = READS | {"GET groups": 0.06}
    run, _ = a_run(workers=1, costs=costs, requests=["GET groups"] * 4 + reads(250))
    assert max(run.limits) == 11
    assert median(run.limits) <= 4


@pytest.mark.parametrize("admits", [3, 6, 20])
def test_a_service_that_refuses_some_is_not_asked_again_and_again(admits: int) -> None:
    run, _ = a_run(workers=16, admits=admits, requests=reads(4000))
    quarter = len(run.answers) // 4
    assert run.refused <= 25
    assert sum(status == 429 for *_, status in run.answers[-quarter:]) <= 4
    assert run.rate >= 0.75 * a_run(Unmoved(admits), workers=16, requests=reads(2000))[0].rate


def test_an_outage_is_forgotten() -> None:
    limit = AdaptiveLimit()
    lost, begun = 0, 0.0
    while limit.requests > 1:
        limit.answer(limit.send("GET x", begun), begun + 0.1, 503)
        begun, lost = begun + 1, lost + 1
    assert lost <= 4
    run, _ = a_run(limit, workers=16, requests=reads(3000))
    assert max(run.limits[-500:]) >= 16


def test_runs_side_by_side_leave_each_other_room() -> None:
    slowness = []
    for make in (AdaptiveLimit, lambda: Unmoved(8)):
        service, runs = Service(4, READS), [Run(make(), reads(1500)) for _ in range(4)]
        simulate(service, *runs)
        slowness.append(mean(run.slowness(service) for run in runs))
    assert slowness[0] <= 1.5 * slowness[1]


def test_a_run_with_little_to_do_at_once_learns_nothing_of_more() -> None:
    service = Service(16, READS)
    run = Run(AdaptiveLimit(), reads(600), at_once=2)
    simulate(service, run)
    assert set(run.limits[1:]) == {11}
    run.requests, run.at_once = reads(600), 1000
    simulate(Service(16, READS), run)
    assert max(run.limits) >= 16


@pytest.mark.untraced
def test_the_limit_moves_between_one_and_thirty_two() -> None:
    for workers in (1, 64):
        run, _ = a_run(workers=workers, spread=0.8, requests=reads(3000))
        assert set(run.limits) <= set(LADDER)


@pytest.mark.parametrize("make", [AdaptiveLimit, lambda: FixedLimit(4)])
def test_an_answer_that_never_came_or_took_no_time_says_nothing_of_the_load(
    make: Callable[[], ConcurrencyLimit],
) -> None:
    limit = make()
    for moment in range(20):
        limit.answer(limit.send("GET x", moment), moment + 100, None)
        limit.answer(limit.send("GET x", moment), moment, 200)
    assert (limit.requests, limit.in_flight) == (4, 0)


def test_a_fixed_number_is_halved_once_a_round_and_regained_one_a_round() -> None:
    limit = FixedLimit(8)
    seen = [limit.requests]
    together = [limit.send("GET x", 0) for _ in range(8)]
    for sent, status in zip(together, (200, 429, 429, 503), strict=False):  # all sent before the first was answered
        limit.answer(sent, 1, status)
        seen.append(limit.requests)
    for moment in (2, 3, 4):
        limit.answer(limit.send("GET x", moment), moment + 0.5, 503)
        seen.append(limit.requests)
    assert seen == [8, 8, 3, 3, 3, 1, 1, 1]
    for moment in range(5, 45):
        limit.answer(limit.send("GET x", moment), moment + 0.5, 200)
        seen.append(limit.requests)
    assert sorted(seen[8:]) == seen[8:]
    assert seen[-1] == 8


def test_a_fixed_number_bears_a_slow_service() -> None:
    limit = FixedLimit(8)
    for moment in range(40):
        limit.answer(limit.send("GET x", 10 * moment), 10 * moment + (0.1 if moment < 10 else 9), 200)
    assert limit.requests == 8


@pytest.mark.parametrize(
    ("request_", "route"),
    [
        ("GET version", "GET version"),
        ("GET projects/acme%2Fweb/milestones", "GET projects/*/milestones"),
        ("PUT projects/acme%2Fweb/milestones/12", "PUT projects/*/milestones/*"),
        ("GET groups/acme/projects", "GET groups/*/projects"),
        ("GET projects/12/job_token_scope/groups_allowlist", "GET projects/*/job_token_scope/groups_allowlist"),
        ("DELETE projects/a%2Fb/job_token_scope/allowlist/7", "DELETE projects/*/job_token_scope/allowlist/*"),
    ],
)
def test_routes_are_methods_and_paths_without_names(request_: str, route: str) -> None:
    assert route_of(request_) == route
