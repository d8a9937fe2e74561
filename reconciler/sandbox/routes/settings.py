"""Settings of the instance, as far as they limit how many requests a user may send: `PUT /application/settings`.

The spec does not define this endpoint; it follows production servers.
"""

from typing import Any

from ..answers import Answer
from ..call import Call, Route
from ..parameters import boolean, integer, read
from ..state import Instance

PREFIX = "throttle_authenticated_api"
_SETTINGS = (
    boolean(f"{PREFIX}_enabled", blank=False),
    integer(f"{PREFIX}_requests_per_period", blank=False),
    integer(f"{PREFIX}_period_in_seconds", blank=False),
)


def get_settings(call: Call) -> Answer:
    """`GET /application/settings`."""
    return Answer(200, _show(call.instance()))


def update_settings(call: Call) -> Answer:
    """`PUT /application/settings`."""
    sent = read(call, *_SETTINGS)
    instance = call.instance()
    for name, value in sent.items():
        call.changed = call.changed or getattr(instance, name) != value
        setattr(instance, name, value)
    return Answer(200, _show(instance))


def _show(instance: Instance) -> dict[str, Any]:
    return {each.name: getattr(instance, each.name) for each in _SETTINGS}


ROUTES = (
    Route("GET", "/application/settings", get_settings),
    Route("PUT", "/application/settings", update_settings),
)
