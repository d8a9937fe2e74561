"""The tokens that stay beside their successors for a while: nothing differs yet, and a later run deletes them. Pure."""

from collections.abc import Iterator
from datetime import UTC

from reconciler.engine.inventory import collections_of
from reconciler.engine.survey import FleetSurvey
from reconciler.model.effective import ends_of_grace
from reconciler.model.resource import Objects
from reconciler.model.wording import counted


def successions(run: FleetSurvey) -> Iterator[str]:
    """Yield one sentence about all of them; nothing if there are none."""
    ends = sorted(
        end
        for target in run.desired.targets
        for section, part, _ in collections_of(target, run)
        if isinstance(live := run.live.parts.get((target.target, section.kind, part.name)), Objects)
        for end in ends_of_grace(section, part, live.own, run.desired.grace, run.live.read_at)
    )
    if ends:
        first = f"{ends[0].astimezone(UTC):%Y-%m-%d %H:%M UTC}"
        tells = "a run after {} deletes it" if len(ends) == 1 else "runs after {} delete them"
        yield f"{counted(len(ends), 'rotated token')} beside a successor: {tells.format(first)}"
