"""One clock decides in a run: the service's where anything was asked, whatever the clock of the machine shows."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.inventory.checkout import Checkout

SET = """\
apiVersion: reconciler/v1
kind: ProjectSet
metadata: {name: all}
select: {group: acme, include: [acme/api, acme/lib]}
spec: {notification_settings: {level: watch}}
"""


def until(days: int, section: str) -> str:
    """Return the metadata of an exception."""
    day = (datetime.now(UTC) + timedelta(days=days)).date()
    return f", exceptions: [{{section: {section}, until: {day}, reason: A demo}}]"


@pytest.fixture
def ahead(user: Checkout, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    """A user who has applied exceptions that end tomorrow, and whose machine's clock is nine days ahead since then."""
    user.declare("{milestones: {a: {}}}", more=until(1, "milestones"))
    user.declare("{trigger_tokens: {t: {}}}", "acme/lib", "manifests/lib.yaml", more=until(1, "trigger_tokens"))
    user.change(lambda project: project.update(builds_enabled=False), "acme/lib")
    user.write("manifests/set.yaml", SET)
    user.commit("first")
    assert user.apply()[0] == 0
    monkeypatch.setattr("reconciler.system.clock.now", lambda: datetime.now(UTC) + timedelta(days=9))
    return user


@pytest.mark.untraced
def test_a_day_has_not_come_because_a_machine_thinks_so(ahead: Checkout) -> None:
    """The list says on which day time alone changes what is wanted, and the service says what day it is."""
    ahead.cli.sandbox.clear_log()
    assert ahead.plan("--since applied")[0] == 0
    assert [entry["target"] for entry in ahead.cli.sandbox.log() if "acme%2Fapi/notification" in entry["target"]] == []


@pytest.mark.untraced
def test_an_exception_has_not_ended_because_a_machine_thinks_so(ahead: Checkout) -> None:
    """Of a section that a project cannot have, as its list shows, and of one that differs."""
    code, lines = ahead.plan("--all --since HEAD")
    assert (code, [line for line in lines if line.startswith("  !")]) == (0, [])
