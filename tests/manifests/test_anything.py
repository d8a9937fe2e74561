"""Whatever stands in a manifest, it is read, or told what is wrong with it: nothing else ever comes out."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from reconciler.errors import LocatedDiagnostic, ManifestErrors
from reconciler.manifests import Manifests, Member, read_contents
from tests.manifests.conftest import KINDS

pytestmark = pytest.mark.untraced

DOCUMENTS: list[dict[str, Any]] = [
    {
        "apiVersion": "reconciler/v1",
        "kind": "Project",
        "metadata": {"path": "acme/api", "profiles": ["base"], "labels": {"team": "payments"}},
        "spec": {
            "prune": ["milestones"],
            "notification_settings": {"level": "custom", "events": {"new_issue": True}},
            "approval_settings": {"allow_author_approval": False},
            "container_repository_protection_rules": {"acme/api/*": {"minimum_access_level_for_push": "owner"}},
            "job_token_scope": {"enabled": True, "projects": ["acme/lib", 12], "groups": ["acme"]},
            "milestones": {"a": {"start_date": "2026-12-01", "due_date": None, "renamed_from": ["b"]}, "c": None},
            "trigger_tokens": {"nightly": {}},
        },
    },
    {"apiVersion": "reconciler/v1", "kind": "User", "spec": {"notification_settings": {"notification_email": None}}},
    {"apiVersion": "reconciler/v1", "kind": "Group", "metadata": {"id": 12, "profiles": ["plain"]}},
    {
        "apiVersion": "reconciler/v1",
        "kind": "Profile",
        "metadata": {"name": "base"},
        "spec": {
            "milestones": {"{name} 1": {"description": "{{ {path}"}},
            "job_token_scope": {"projects": ["{namespace}/lib"]},
        },
    },
    {
        "apiVersion": "reconciler/v1",
        "kind": "Profile",
        "metadata": {"name": "plain"},
        "spec": {"approval_settings": {"retain_approvals_on_push": True}},
    },
    {
        "apiVersion": "reconciler/v1",
        "kind": "ProjectSet",
        "metadata": {"name": "one", "priority": 1, "profiles": ["base"]},
        "select": {"group": "acme", "include": ["**"], "exclude": ["acme/x"], "archived": False},
        "spec": {"trigger_tokens": {"nightly": {}, "{name}": None}},
    },
    {
        "apiVersion": "reconciler/v1",
        "kind": "ProjectSet",
        "metadata": {"name": "two", "priority": 1},
        "select": {"projects": ["acme/web", "acme/api"]},
        "spec": {"trigger_tokens": {"nightly": {}}, "prune": ["trigger_tokens"]},
    },
]


def _scalars(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [each for key, inner in value.items() for each in (key, *_scalars(inner))]
    return [each for inner in value for each in _scalars(inner)] if isinstance(value, list) else [value]


SCALARS = st.sampled_from(
    [*_scalars(DOCUMENTS), "", " ", "{", "}}", "{nope}", "acme/../x", "\x1b[2J", -1, 0, 2.5, "null", "milestonez"]
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(SCALARS.map(str), inner, max_size=3),
    max_leaves=5,
)


@st.composite
def _altered(draw: Callable[[st.SearchStrategy[Any]], Any], value: Any, depth: int = 0) -> Any:
    """Draw the value with something in it replaced, left out, added or renamed."""
    what = draw(st.sampled_from(["inside", "inside", "inside", "replace", "add", "remove", "rename"]))
    if not isinstance(value, dict | list) or not value or what == "replace":
        return draw(VALUES) if depth else value
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    key = draw(st.sampled_from(keys))
    altered = value.copy()
    if what == "inside":
        altered[key] = draw(_altered(value[key], depth + 1))
    elif isinstance(altered, list):
        altered.append(draw(VALUES))
    elif what == "add":
        altered[str(draw(SCALARS))] = draw(VALUES)
    else:
        moved = altered.pop(key)
        if what == "rename":
            altered[str(draw(SCALARS))] = moved
    return altered


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(_altered(DOCUMENTS).flatmap(_altered).flatmap(_altered))
@example(DOCUMENTS)
def test_anything_is_read_or_told_what_is_wrong(documents: Any) -> None:
    read, faults = _read(documents)
    assert (read is None) == bool(faults)
    for fault in faults:
        assert fault.line >= 1
        assert fault.column >= 1
        assert fault.message.isprintable()
    if read:
        for target in read.desired.targets:
            for section in read.of(target.target).spec:
                assert read.of(target.target).explain((section,))


def test_what_is_altered_is_right_to_begin_with() -> None:
    read, faults = _read(DOCUMENTS)
    assert faults == ()
    assert read
    assert len(read.desired.targets) == 4


def _read(documents: Any) -> tuple[Manifests | None, tuple[LocatedDiagnostic, ...]]:
    text = "\n---\n".join(json.dumps(document, indent=1) for document in documents)
    try:
        return read_contents({"a.yaml": text.encode()}, KINDS).with_discovered(_Everywhere()), ()
    except ManifestErrors as error:
        return None, error.diagnostics


class _Everywhere(dict[str, Any]):
    """A service on which every group holds two projects."""

    def __missing__(self, group: str) -> list[Member]:
        return [Member(f"{group}/api"), Member(f"{group}/old", archived=True)]
