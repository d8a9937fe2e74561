"""Tokens that may not do all, members who may not, and a limit on requests."""

from time import sleep

import pytest

from tests.acceptance.installation import DEVELOPER, World
from tests.between import Passing, between

pytestmark = pytest.mark.untraced
"""Others cover the same lines; tracing would take as long as the tests."""

THROTTLE = [f"throttle_authenticated_api_{name}" for name in ("enabled", "requests_per_period", "period_in_seconds")]
MOST = 20
"""Requests in four seconds."""

SPEC = """
kind: Project
metadata: {path: acme/app}
spec: {milestones: {a: {}}, trigger_tokens: {nightly: {}}, job_token_scope: {groups: [acme]}}
"""


def test_tokens_that_do_not_suffice(world: World) -> None:
    world.project("app")
    world.write("manifests/all.yaml", SPEC)
    reading = world.token(world.owner, "read_api")
    world.expect("apply --yes --tokens-to tokens", 3, READ_ONLY, token=reading)
    doctor = world.run("doctor --section milestones", token=reading)
    assert (doctor.code, [line for line in doctor.lines if "milestones" in line]) == (3, [ONLY_READS])
    expired = world.token(world.owner, expires_at="2026-01-02")
    for token, reason in ((expired, EXPIRED), ("glpat-unknown", "401 Unauthorized")):
        done = world.run("plan", token=token)
        assert (done.code, done.out) == (1, "")
        assert f"{reason}; the token is wrong, expired or revoked" in done.err


def test_a_member_without_the_role(world: World) -> None:
    member = world.user("member")
    world.value("POST", f"groups/{world.ids['']}/members", {"user_id": member.id, "access_level": DEVELOPER})
    world.project("app", member.token)
    world.write("manifests/all.yaml", SPEC)
    world.expect("apply --yes --tokens-to tokens", 3, A_DEVELOPER, token=member.token)


def test_the_limit_that_the_service_tells_is_kept(world: World) -> None:
    for number in range(6):
        world.project(f"p{number}")
    world.write(
        "manifests/all.yaml",
        """
kind: ProjectSet
metadata: {name: all}
select: {group: acme}
spec: {milestones: {a: {}, b: {}}, trigger_tokens: {}, job_token_scope: {enabled: true}}
""",
    )
    installation, seen = world.installation, list[Passing]()
    before = installation.ask("GET", "application/settings")
    if not before.is_success:
        installation.remarks.append(f"its settings are closed ({before.status_code}): the limit was left as it is")
    try:
        if before.is_success:
            installation.value("PUT", "application/settings", dict(zip(THROTTLE, (True, MOST, 4), strict=True)))
        with between(installation.api_url) as relay:
            relay.alter = seen.append
            done = world.run("apply --yes -q", api_url=relay.api_url)
    finally:
        restored = {name: before.json()[name] for name in THROTTLE} if before.is_success else {}
        while restored and installation.ask("PUT", "application/settings", restored).status_code == 429:
            sleep(1)
    assert (done.code, {each.status for each in seen}) == (0, {200, 201})
    assert "Applied: 12 created" in done.out
    assert f". {len(seen)} requests made." in done.out
    if before.is_success:
        # A request counts in the window in which it comes; the response names that in which it leaves.
        assert len({each.headers["ratelimit-reset"] for each in seen}) >= len(seen) / MOST


EXPIRED = "401 Token is expired. You can either do re-authorization or token refresh"
NOT_ENOUGH = "the token's scopes do not suffice (plan and drift take read_api, apply takes api): make a new one with the scope api, and set RECONCILER_TOKEN or --token-file"
READ_ONLY = f"""
project acme/app
+ allowlisted group "acme" failed: POST projects/N/job_token_scope/groups_allowlist: 403 The request requires higher privileges than provided by the access token; {NOT_ENOUGH}
+ milestone "a" skipped: the token's scopes do not suffice
+ trigger token "nightly" skipped: the token's scopes do not suffice
Applied: 1 failed, 2 skipped. 6 requests made.
"""
ONLY_READS = (
    "error milestones read: yes, write: no: the token may only read; use one with the scope api, or add --read-only"
)
A_DEVELOPER = """
project acme/app
+ milestone "a" done
! job_token_scope: cannot be read: the token's owner is Developer there, and Maintainer is needed; make the token's owner Maintainer
! trigger_tokens: cannot be read: the token's owner is Developer there, and Maintainer is needed; make the token's owner Maintainer
Applied: 1 created, 2 problems. 6 requests made.
"""
