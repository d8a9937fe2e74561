"""Whatever fleet has drifted in whatever way, accepting it leaves an empty plan and changes no line without need."""

from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from reconciler.edit.accept import accept
from reconciler.edit.differences import CONTRADICTION, Acceptance, Drift, ManifestFiles
from reconciler.engine.compare.planner import make_plan
from reconciler.errors import ManifestErrors
from reconciler.kinds.notification_settings import EVENT_NAMES
from reconciler.manifests import Manifests, Member, read_contents
from reconciler.manifests.yaml_emitter import write_yaml
from reconciler.model.kind import Kinds
from reconciler.model.obstacle import Obstacle
from reconciler.model.plan import Plan
from reconciler.model.state import LiveState, Reference
from reconciler.model.targets import Level, Target
from tests.building import KINDS, live

pytestmark = pytest.mark.untraced

PROJECTS = {100: "acme/api", 101: "acme/lib", 102: "acme/web"}
GROUPS = {10: "acme", 11: "acme/tools"}
MEMBERS = {"acme": tuple(Member(path, id=number) for number, path in PROJECTS.items())}
IDS: dict[Reference, int | Obstacle] = {
    **{Reference(Level.PROJECT, path): number for number, path in PROJECTS.items()},
    **{Reference(Level.GROUP, path): number for number, path in GROUPS.items()},
    Reference(Level.PROJECT, "acme/gone"): Obstacle(Target(Level.PROJECT, "acme/gone").address, "no such project"),
}

Plain = dict[str, Any]
Texts = Mapping[str, str]


def some(**fields: Any) -> st.SearchStrategy[Plain]:
    """Draw a mapping with some of these keys, in any order."""
    optional = st.fixed_dictionaries({}, optional=fields)
    return optional.flatmap(lambda drawn: st.permutations([*drawn]).map(lambda keys: {key: drawn[key] for key in keys}))


BOOLEANS = st.booleans()
PRIORITIES = st.sampled_from([1, 1, 0])
EVENTS = st.dictionaries(st.sampled_from(["failed_pipeline", "new_issue"]), BOOLEANS | st.none(), min_size=1)
STATES = st.sampled_from(["active", "closed"])
DUES = st.sampled_from([None, "2027-01-29", "2027-03-31"])
ROLES = st.sampled_from(["maintainer", "owner"])
APPROVALS = some(allow_author_approval=BOOLEANS, retain_approvals_on_push=BOOLEANS)
NOTIFICATIONS = st.sampled_from(["watch", "global"]).map(lambda level: {"level": level}) | EVENTS.map(
    lambda events: {"level": "custom", "events": events}
)
TITLES = ["m1", "m2", "{name} m3", "Old"]
MILESTONE = st.none() | some(
    description=st.sampled_from([None, "x", "{path}", "for {{name}}"]), due_date=DUES, state=STATES
)
RENAMED = MILESTONE.map(lambda item: None if item is None else {**item, "renamed_from": "Old {name}"})
SECTIONS: dict[str, st.SearchStrategy[Any]] = {
    "approval_settings": APPROVALS,
    "notification_settings": NOTIFICATIONS,
    "milestones": st.dictionaries(st.sampled_from(TITLES), MILESTONE, max_size=3)
    | RENAMED.map(lambda item: {"New": item}),
    "container_repository_protection_rules": st.dictionaries(
        st.sampled_from(["{path}/prod*", "{path}/x"]),
        st.none() | st.fixed_dictionaries({"minimum_access_level_for_push": ROLES}),
    ),
    "trigger_tokens": st.dictionaries(st.sampled_from(["t1", "t2"]), st.none() | st.just({})),
    "job_token_scope": some(
        enabled=BOOLEANS,
        projects=st.lists(st.sampled_from(["acme/lib", 102, "acme/gone", "acme/web"]), unique=True),
        groups=st.lists(st.sampled_from(["acme", 11]), unique=True),
    ).filter(bool),
    "error_tracking_client_keys": st.integers(0, 2).map(lambda count: {"count": count}),
}
PRUNABLE = [name for name in SECTIONS if KINDS[name].prunable]


@st.composite
def specs(draw: st.DrawFn) -> Plain:
    """Draw the spec of a layer."""
    spec = {
        name: draw(SECTIONS[name]) for name in draw(st.lists(st.sampled_from([*SECTIONS]), unique=True, max_size=3))
    }
    prune = draw(
        st.lists(st.sampled_from([name for name in PRUNABLE if name in spec] or [""]), unique=True, max_size=2)
    )
    return {**({"prune": prune} if prune and "" not in prune else {}), **spec}


@st.composite
def fleets(draw: st.DrawFn) -> tuple[bool, Texts]:
    """Draw manifests, each line of which has a comment of its own, and whether all members of a set have one order."""
    orderly = draw(BOOLEANS)
    names = st.lists(st.sampled_from(["base", "extra"]), unique=True)
    base, extra = draw(specs()), draw(specs())
    locked = draw(st.sets(st.sampled_from([name for name in base if name != "prune"] or [""]), max_size=1)) - {""}
    locks = {"locks": dict.fromkeys(locked, "all")} if locked else {}
    profiles = [document("Profile", {"name": "base", **locks}, base), document("Profile", {"name": "extra"}, extra)]
    selects = st.sampled_from([{"group": "acme"}, {"projects": ["acme/api", "acme/lib"]}])
    sets = [
        {
            **document(
                "ProjectSet",
                {"name": f"set{number}", "priority": number and draw(PRIORITIES), "profiles": draw(names)},
                draw(specs()),
            ),
            "select": draw(selects) if number else {"group": "acme"},
        }
        for number in range(draw(st.integers(1, 2)))
    ]
    own = [
        document(
            "Project",
            {**draw(st.sampled_from([{"path": path}, {"id": number}])), "profiles": [] if orderly else draw(names)},
            draw(specs()),
        )
        for number, path in PROJECTS.items()
        if draw(BOOLEANS)
    ]
    if draw(BOOLEANS):
        return orderly, {"manifests/fleet.yaml": commented([*profiles, *sets, *own])}
    files = {f"manifests/own/{number}.yaml": commented([each]) for number, each in enumerate(own)}
    return orderly, {"manifests/shared/base.yaml": commented(profiles), "manifests/sets.yml": commented(sets), **files}


def document(kind: str, metadata: Plain, spec: Plain) -> Plain:
    return {"apiVersion": "reconciler/v1", "kind": kind, "metadata": metadata, "spec": spec}


def commented(documents: list[Plain]) -> str:
    lines = write_yaml(documents).splitlines()
    return "".join(line + ("" if line == "---" else f"  # {number}") + "\n" for number, line in enumerate(lines))


@st.composite
def answers(draw: st.DrawFn, path: str) -> dict[tuple[str, str], Any]:
    """Draw what the service answers about a project, by section and part."""
    name = path.rpartition("/")[2]
    level = draw(st.sampled_from(["watch", "global", "custom"]))
    events = {event: draw(BOOLEANS) if event == "new_issue" else False for event in EVENT_NAMES}
    titles = draw(
        st.lists(st.sampled_from(["m1", "m2", f"{name} m3", f"Old {name}", "New", "Old", "free"]), unique=True)
    )
    milestones = [
        {
            "id": each,
            "title": title,
            "description": draw(st.sampled_from([None, "x", path, "{name}"])),
            "due_date": draw(DUES),
            "state": draw(STATES),
        }
        for each, title in enumerate(titles, 1)
    ]
    rules = [
        {"id": each, "repository_path_pattern": f"{path}/{end}", "minimum_access_level_for_push": draw(ROLES)}
        for each, end in enumerate(draw(st.lists(st.sampled_from(["prod*", "x", "free"]), unique=True)), 1)
    ]
    tokens = draw(st.lists(st.sampled_from(["t1", "t2", "free"]), unique=True))
    return {
        ("approval_settings", "approval_settings"): {
            field: {"value": draw(BOOLEANS), "locked": False} for field in ("allow_author_approval", "retain_approvals_on_push")
        },
        ("notification_settings", "notification_settings"): {"level": level, "events": events},
        ("milestones", "milestones"): milestones,
        ("container_repository_protection_rules", "container_repository_protection_rules"): rules,
        ("trigger_tokens", "trigger_tokens"): [
            {"id": each, "description": text, "token": "0123456789", "created_at": "2026-01-01T00:00:00Z"}
            for each, text in enumerate(tokens, 1)
        ],
        ("job_token_scope", "enabled"): {"inbound_enabled": draw(BOOLEANS)},
        ("job_token_scope", "projects"): [
            {"id": each, "path_with_namespace": PROJECTS[each]} for each in draw(st.sets(st.sampled_from([*PROJECTS])))
        ],
        ("job_token_scope", "groups"): [
            {"id": each, "web_url": f"https://git/groups/{GROUPS[each]}"} for each in draw(st.sets(st.sampled_from([*GROUPS])))
        ],
        ("error_tracking_client_keys", "keys"): [
            {"id": each, "place": str(each)} for each in range(1, draw(st.integers(1, 4)))
        ],
    }  # fmt: skip


NOTHING: Mapping[tuple[str, str], Any] = {
    ("approval_settings", "approval_settings"): {
        field: {"value": False, "locked": False} for field in ("allow_author_approval", "retain_approvals_on_push")
    },
    ("notification_settings", "notification_settings"): {"level": "watch", "events": dict.fromkeys(EVENT_NAMES, False)},
    ("job_token_scope", "enabled"): {"inbound_enabled": False},
    ("job_token_scope", "projects"): [],
    ("job_token_scope", "groups"): [],
    ("container_repository_protection_rules", "container_repository_protection_rules"): [],
}
"""What the service answers about a project without anything."""

TWO_SETS = {
    "manifests/sets.yml": """\
apiVersion: reconciler/v1  # 0
kind: ProjectSet  # 1
metadata: {name: set0, priority: 0}  # 2
spec:  # 3
  approval_settings: {}  # 4
  job_token_scope:  # 5
    projects:  # 6
      - acme/lib  # 7
      - 102  # 8
  notification_settings:  # 9
    level: watch  # 10
select: {group: acme}  # 11
---
apiVersion: reconciler/v1  # 12
kind: ProjectSet  # 13
metadata: {name: set1, priority: 1}  # 14
spec:  # 15
  approval_settings: {}  # 16
  job_token_scope:  # 17
    enabled: false  # 18
    groups: []  # 19
    projects:  # 20
      - acme/lib  # 21
      - acme/web  # 22
  container_repository_protection_rules: {}  # 23
select: {projects: [acme/api, acme/lib]}  # 24
"""
}
"""Two sets list the same projects, one of them by its number: a seed found that an entry was removed without need."""


@settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)
@example(drawn_fleet=(True, TWO_SETS), drawn=dict.fromkeys(PROJECTS, NOTHING))
@given(drawn_fleet=fleets(), drawn=st.fixed_dictionaries({number: answers(path) for number, path in PROJECTS.items()}))
def test_the_plan_is_empty_afterwards_and_no_line_changes_without_need(
    drawn_fleet: tuple[bool, Texts], drawn: Mapping[int, Mapping[tuple[str, str], Any]]
) -> None:
    orderly, fleet = drawn_fleet
    try:
        manifests = read(fleet)
    except ManifestErrors:
        assume(False)
    found = {
        (target, section, part): answer
        for number, parts in drawn.items()
        for (section, part), answer in parts.items()
        for target in (Target(Level.PROJECT, PROJECTS[number]), Target(Level.PROJECT, number))
    }
    state = live(found, IDS)
    accepted = accepted_by(manifests, state)
    after = {**fleet, **{str(path): text for path, text in accepted.texts.items()}}
    plan = planned(read(after), state)
    left = {(each.address.target, each.address.name) for each in accepted.refused}
    assert {(each.address.target, each.address.name) for each in (*plan.changes, *plan.problems)} == left
    unlocked = [
        problem.reason for problem in accepted.refused if not problem.reason.startswith("locked by profile base")
    ]
    assert {reason.rpartition(", ")[2] for reason in unlocked} <= {"and lists unite", CONTRADICTION}
    assert accepted_by(read(after), state).texts == {}
    assert [*undeclared(manifests, read(after))] == []
    assert [*touched(fleet, after)] == []
    if orderly:
        check_each_hunk(accepted, after, state)


def undeclared(before: Manifests, after: Manifests) -> Iterator[tuple[Target, str, object]]:
    """Yield what a target declares in a section that is not pruned, and none of its layers declared before."""
    for merged in after.targets.values():
        stack, earlier = merged.stack, before.of(merged.desired.target).stack
        for name in stack.sections.keys() - set(stack.prune):
            sections = [
                layer.section(stack.specs[name], earlier.values) for layer in earlier.layers if name in layer.sections
            ]
            known = {key for section in sections for key in section}
            items = [item for section in sections for item in section.values() if isinstance(item, dict)]
            known |= {item["renamed_from"] for item in items if "renamed_from" in item}
            yield from ((stack.target, name, key) for key in stack.sections[name].keys() - known)


def touched(before: Texts, after: Texts) -> Iterator[str]:
    """Yield each document whose text changes and whose value does not."""
    for path, text in before.items():
        for old, new in zip(text.split("---\n"), after[path].split("---\n"), strict=False):
            if old != new and yaml.safe_load(old) == yaml.safe_load(new):
                yield old


def check_each_hunk(accepted: Acceptance, after: Texts, state: LiveState) -> None:
    """See that the plan has more differences without any one of the changes."""
    plan = planned(read(after), state)
    for undone in without_one_hunk(accepted):
        try:
            assert differences(planned(read({**after, **undone}), state)) > differences(plan)
        except ManifestErrors:
            continue


def read(texts: Texts, kinds: Kinds = KINDS) -> Manifests:
    found = read_contents({path: text.encode() for path, text in texts.items()}, kinds)
    paths = {Target(Level.PROJECT, number): path for number, path in PROJECTS.items()}
    return found.with_discovered({group: MEMBERS[group] for group in found.index.groups}, paths)


def planned(manifests: Manifests, state: LiveState, kinds: Kinds = KINDS) -> Plan:
    plan = make_plan(manifests.desired, state, kinds)
    assert not plan.lookups
    return plan


def differences(plan: Plan) -> int:
    return (
        len([*plan.changes])
        + len([*plan.problems])
        + sum(len(each.after) for each in plan.changes if each.action == "update")
    )


def accepted_by(manifests: Manifests, state: LiveState, kinds: Kinds = KINDS) -> Acceptance:
    drift = Drift(manifests, manifests.desired, planned(manifests, state, kinds), state)
    return accept(drift, kinds, ManifestFiles([Path("manifests")]))


def without_one_hunk(accepted: Acceptance) -> Iterator[Texts]:
    """Yield each changed file with one place as it was."""
    for path, before in accepted.before.items():
        old, new = before.splitlines(True), accepted.texts[path].splitlines(True)
        for action, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            if action != "equal":
                yield {str(path): "".join([*new[:k], *old[i:j], *new[m:]])}
