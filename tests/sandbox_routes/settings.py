"""Settings of the instance, as far as clients need them: how many requests a user may send, what may be imported."""

from typing import Any

from reconciler.sandbox.answers import Answer
from reconciler.sandbox.call import Call, Route
from reconciler.sandbox.parameters import boolean, integer, read, texts
from reconciler.sandbox.routes.group_import import LIMIT
from reconciler.sandbox.routes.project_import import SOURCES, enabled_sources
from reconciler.sandbox.state import Instance

PREFIX = "throttle_authenticated_api"
_PLAIN = (
    boolean(f"{PREFIX}_enabled", blank=False),
    integer(f"{PREFIX}_requests_per_period", blank=False),
    integer(f"{PREFIX}_period_in_seconds", blank=False),
    integer(LIMIT.name, blank=False),
)
_IMPORTABLE = ("github", "bitbucket", "bitbucket_server", "fogbugz", "git", "gitlab_project", "gitea", "manifest")
_SOURCES = texts(SOURCES.name, values=_IMPORTABLE)


def get_settings(call: Call) -> Answer:
    """`GET /application/settings`."""
    return Answer(200, _show(call, call.instance()))


def update_settings(call: Call) -> Answer:
    """`PUT /application/settings`."""
    sent = read(call, *_PLAIN, _SOURCES)
    instance = call.instance()
    for name, value in sent.items():
        call.changed = call.changed or getattr(instance, name) != value
        setattr(instance, name, value)
    return Answer(200, _show(call, instance))


def _show(call: Call, instance: Instance) -> dict[str, Any]:
    return {
        **{each.name: getattr(instance, each.name) for each in _PLAIN},
        SOURCES.name: enabled_sources(call.state),
    }


ROUTES = (
    Route("GET", "/application/settings", get_settings),
    Route("PUT", "/application/settings", update_settings),
)
