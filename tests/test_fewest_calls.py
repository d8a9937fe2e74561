"""For any desired and live state: the fewest requests, the wanted result, and nothing else touched.

The oracle below knows the service's contract and the rules of counting, and shares no code with the planner.
"""

import copy
import json
import shutil
from collections import Counter
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconciler.document.stored import load_plan, save
from reconciler.model.state import Section
from reconciler.model.targets import Level, Target
from reconciler.sandbox import Sandbox
from tests.building import KINDS, section
from tests.cli_runner import CliRunner
from tests.engine_driver import EngineDriver, failures
from tests.render.samples import saved_plan, tree
from tests.states import a_small_service

pytestmark = pytest.mark.untraced

PROJECTS = {100: "acme/api", 101: "acme/lib", 102: "acme/web", 103: "acme/tools/cli"}
GROUPS = {10: "acme", 11: "acme/tools"}
RULES, SCOPE = "container_repository_protection_rules", "job_token_scope"
KEYS = "error_tracking_client_keys"
PUSH, DELETE = "minimum_access_level_for_push", "minimum_access_level_for_delete"
APPROVALS = [
    "allow_author_approval",
    "allow_committer_approval",
    "allow_overrides_to_approver_list_per_merge_request",
    "retain_approvals_on_push",
    "require_reauthentication_to_approve",
]
EVENTS = ["failed_pipeline", "new_issue", "moved_project"]
DEFAULT_EVENTS = {"failed_pipeline": True, "new_issue": False, "moved_project": True}

Plain = dict[str, Any]


@dataclass
class Expected:
    """What the oracle expects of one run.

    Attributes:
        parts: how many parts are read for the plan.
        writes: how many requests change something.
        changed: which parts are changed, and so read again.
        looks: which parts are read right before as well: records written whole, and lists in which an object is created
            whose name need not be unique.
        needed: references whose number some request needs.
        known: references whose number comes along with what is read.
        asked: the projects whose record is needed: those that may be archived, and would refuse a change then, and
            those whose number the path of a list takes.
        after: the live state afterwards.
    """

    after: dict[int, Plain]
    parts: int = 0
    writes: int = 0
    changed: set[tuple[int, str]] = field(default_factory=set)
    looks: set[tuple[int, str]] = field(default_factory=set)
    needed: set[tuple[str, int]] = field(default_factory=set)
    known: set[tuple[str, int]] = field(default_factory=set)
    asked: set[tuple[str, int]] = field(default_factory=set)

    def write(self, project: int, part: str, requests: int = 1) -> None:
        self.writes += requests
        self.changed.add((project, part))


def expect(live: dict[int, Plain], wanted: dict[int, Plain], dialect: str) -> Expected:
    """Work out what must happen."""
    expected = Expected(copy.deepcopy(live))
    for project, sections in wanted.items():
        if "milestones" in sections:
            expect_milestones(expected, project, live[project]["milestones"], sections)
        if RULES in sections:
            expect_rules(expected, project, live[project][RULES], sections)
        if "trigger_tokens" in sections:
            expect_tokens(expected, project, live[project]["trigger_tokens"], sections)
        if SCOPE in sections:
            expect_scope(expected, project, live[project][SCOPE], sections, dialect)
        for name in ("approval_settings", "notification_settings"):
            if name in sections:
                expect_settings(expected, project, name, live[project][name], sections[name])
        if KEYS in sections:
            expect_keys(expected, project, live[project][KEYS], sections[KEYS]["count"])
        if (project, "milestones") in expected.changed and not sections.keys() & {RULES, "trigger_tokens"}:
            expected.asked.add(("project", project))
    return expected


def expect_items(expected: Expected, project: int, part: str, items: Plain, sections: Plain, creation: Any) -> None:
    after = expected.after[project][part]
    expected.parts += 1
    listed = set(items)
    for name, item in items.items():
        old = None if item is None else item.get("renamed_from")
        if item is None:
            if name in after:
                del after[name]
                expected.write(project, part)
        elif name in after or old in after:
            found = name if name in after else old
            fields = {key: value for key, value in item.items() if key != "renamed_from"}
            if found != name or after[found] | fields != after[found]:
                expected.write(project, part)
            after[name] = after.pop(found) | fields
        else:
            fields = {key: value for key, value in item.items() if key != "renamed_from"}
            after[name], requests = creation(fields)
            expected.write(project, part, requests)
    if part in sections["prune"]:
        for name in set(after) - listed:
            del after[name]
            expected.write(project, part)


def expect_milestones(expected: Expected, project: int, live: Plain, sections: Plain) -> None:
    def creation(fields: Plain) -> tuple[Plain, int]:
        whole = {"description": None, "start_date": None, "due_date": None, "state": "active"} | fields
        return whole, 2 if whole["state"] == "closed" else 1

    if live:
        expected.known.add(("project", project))
    expect_items(expected, project, "milestones", sections["milestones"], sections, creation)


def expect_rules(expected: Expected, project: int, live: Plain, sections: Plain) -> None:
    if live:
        expected.known.add(("project", project))
    expect_items(
        expected, project, RULES, sections[RULES], sections, lambda fields: ({PUSH: None, DELETE: None} | fields, 1)
    )


def expect_tokens(expected: Expected, project: int, live: Plain, sections: Plain) -> None:
    def creation(fields: Plain) -> tuple[Plain, int]:
        expected.looks.add((project, "trigger_tokens"))
        return fields, 1

    del live
    expect_items(expected, project, "trigger_tokens", sections["trigger_tokens"], sections, creation)


def expect_scope(expected: Expected, project: int, live: Plain, sections: Plain, dialect: str) -> None:
    wanted, after = sections[SCOPE], expected.after[project][SCOPE]
    if not wanted and SCOPE in sections["prune"]:
        wanted = {"projects": [], "groups": []}
    if "enabled" in wanted:
        expected.parts += 1
        if wanted["enabled"] != live["enabled"]:
            expected.write(project, "enabled")
            after["enabled"] = wanted["enabled"]
    for part, sort, paths in (("projects", "project", PROJECTS), ("groups", "group", GROUPS)):
        if part not in wanted:
            continue
        expected.parts += 1
        expected.known |= {(sort, number) for number in live[part]}
        if part == "projects" and dialect == "deployed":
            expected.known.add(("project", project))
        numbers = {path: number for number, path in paths.items()}
        entries = {numbers.get(str(entry).lower(), entry): isinstance(entry, str) for entry in wanted[part]}
        if part == "projects" and entries.pop(project, True) is False:
            # Whether a number is the project's own can only be told once that is known.
            expected.needed.add(("project", project))
        added = set(entries) - live[part]
        removed = live[part] - set(entries) if SCOPE in sections["prune"] else set()
        expected.needed |= {(sort, number) for number in added if entries[number]}
        if added | removed:
            expected.write(project, part, len(added | removed))
            expected.needed.add(("project", project))
            after[part] = live[part] - removed | added


def expect_keys(expected: Expected, project: int, live: int, wanted: int) -> None:
    expected.parts += 1
    expected.asked.add(("project", project))
    if wanted > live:
        expected.write(project, KEYS, wanted - live)
        expected.looks.add((project, KEYS))
        expected.after[project][KEYS] = wanted


def expect_settings(expected: Expected, project: int, name: str, live: Plain, wanted: Plain) -> None:
    after = expected.after[project][name]
    expected.parts += 1
    for key, value in wanted.items():
        if isinstance(value, dict):
            shown = live["level"] == "custom"
            values = {event: DEFAULT_EVENTS[event] if on is None else on for event, on in value.items()}
            if any(not shown or live[key][event] != on for event, on in values.items()):
                expected.changed.add((project, name))
            after[key] |= values
        elif live[key] != value:
            expected.changed.add((project, name))
            after[key] = value
    if (project, name) in expected.changed:
        expected.writes += 1
        expected.looks |= {(project, name)} if name == "approval_settings" else set()


def optional(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Plain]:
    return st.fixed_dictionaries({}, optional=fields)


STARTS = st.sampled_from([None, "2026-01-01", "2026-01-02"])
DUES = st.sampled_from([None, "2026-02-01", "2026-02-02"])
TEXTS = st.sampled_from([None, "a", "b"])
STATES = st.sampled_from(["active", "closed"])
MILESTONE = {"description": TEXTS, "start_date": STARTS, "due_date": DUES, "state": STATES}
PUSHES, DELETES = st.sampled_from(["maintainer", "owner"]), st.sampled_from([None, "owner", "admin"])
LEVELS = st.sampled_from(["global", "watch", "custom"])
NAMES = ["a", "b", "c", "d"]


def lives(project: int) -> st.SearchStrategy[Plain]:
    events = st.fixed_dictionaries({event: st.booleans() for event in EVENTS})
    pattern = PROJECTS[project] + "/"
    return st.fixed_dictionaries(
        {
            "milestones": st.dictionaries(st.sampled_from(NAMES), st.fixed_dictionaries(MILESTONE)),
            RULES: st.dictionaries(
                st.sampled_from(NAMES).map(lambda name: pattern + name),
                st.fixed_dictionaries({PUSH: PUSHES, DELETE: DELETES}),
            ),
            "trigger_tokens": st.dictionaries(st.sampled_from(NAMES), st.just({})),
            KEYS: st.integers(0, 2),
            SCOPE: st.fixed_dictionaries(
                {
                    "enabled": st.booleans(),
                    "projects": st.sets(st.sampled_from(sorted(set(PROJECTS) - {project}))),
                    "groups": st.sets(st.sampled_from(sorted(GROUPS))),
                }
            ),
            "approval_settings": st.fixed_dictionaries({name: st.booleans() for name in APPROVALS}),
            "notification_settings": st.fixed_dictionaries({"level": LEVELS, "events": events}),
        }
    )


def entries(paths: dict[int, str]) -> st.SearchStrategy[list[Any]]:
    entry = st.sampled_from(sorted(paths)).flatmap(
        lambda number: st.sampled_from([number, paths[number], paths[number].upper()])
    )
    return st.lists(
        entry,
        max_size=4,
        unique_by=lambda each: {path: number for number, path in paths.items()}.get(str(each).lower(), each),
    )


def sections_of(project: int) -> st.SearchStrategy[Plain]:
    pattern = PROJECTS[project] + "/"
    notifications = st.one_of(
        st.fixed_dictionaries({"level": LEVELS}),
        st.fixed_dictionaries(
            {
                "level": st.just("custom"),
                "events": st.dictionaries(st.sampled_from(EVENTS), st.sampled_from([True, False, None])),
            }
        ),
    )
    names = st.sampled_from([*NAMES, "new"])
    return st.fixed_dictionaries(
        {"prune": st.sets(st.sampled_from(["milestones", RULES, "trigger_tokens", SCOPE]))},
        optional={
            "milestones": st.dictionaries(names, st.none() | optional(**MILESTONE)),
            RULES: st.dictionaries(
                names.map(lambda name: pattern + name),
                st.none() | st.fixed_dictionaries({PUSH: PUSHES}, optional={DELETE: DELETES}),
            ),
            "trigger_tokens": st.dictionaries(names, st.none() | st.just({})),
            KEYS: st.fixed_dictionaries({"count": st.integers(0, 3)}),
            SCOPE: optional(enabled=st.booleans(), projects=entries(PROJECTS), groups=entries(GROUPS)),
            "approval_settings": optional(**{name: st.booleans() for name in APPROVALS}),
            "notification_settings": notifications,
        },
    ).map(with_renames)


def with_renames(sections: Plain) -> Plain:
    """Let the item `new` have been `d`, or `c`, wherever those are not declared themselves."""
    for name in ("milestones", RULES, "trigger_tokens"):
        for key, item in sections.get(name, {}).items():
            old = key.removesuffix("new") + "d"
            if item is not None and key.endswith("new") and old not in sections[name]:
                sections[name] = sections[name] | {key: item | {"renamed_from": old}}
    sections["prune"] &= set(sections)
    return sections


STATES_OF_ALL = st.fixed_dictionaries({project: lives(project) for project in (100, 102)})
WANTED_OF_ALL = st.fixed_dictionaries({}, optional={project: sections_of(project) for project in (100, 102)})


def service(live: dict[int, Plain], dialect: str) -> Plain:
    """Write live state the way the sandbox reads it."""
    state = a_small_service(dialect)
    for project in state["projects"]:
        if project["id"] not in live:
            continue
        found = live[project["id"]]
        target = found[SCOPE]
        project |= {
            "milestones": [{"title": title} | fields for title, fields in found["milestones"].items()],
            RULES: [{"repository_path_pattern": pattern} | fields for pattern, fields in found[RULES].items()],
            "trigger_tokens": [{"description": name, "owner": "ada"} for name in found["trigger_tokens"]],
            KEYS: [{"id": 10 * project["id"] + number} for number in range(found[KEYS])],
            SCOPE: {
                "inbound_enabled": target["enabled"],
                "project_allowlist": sorted(target["projects"]),
                "group_allowlist": sorted(target["groups"]),
            },
            "merge_request_approval_settings": found["approval_settings"] | {"selective_code_owner_removals": False},
            "notification_settings": {"ada": found["notification_settings"]},
        }
    return state


def found_in(state: Plain) -> dict[int, Plain]:
    """Read the sandbox's state back into the form of the oracle."""
    projects = {project["id"]: project for project in state["projects"]}
    return {
        number: {
            "milestones": {
                each["title"]: {name: each.get(name) for name in MILESTONE} for each in projects[number]["milestones"]
            },
            RULES: {
                each["repository_path_pattern"]: {PUSH: each[PUSH], DELETE: each[DELETE]}
                for each in projects[number][RULES]
            },
            "trigger_tokens": {each["description"]: {} for each in projects[number]["trigger_tokens"]},
            KEYS: len(projects[number][KEYS]),
            SCOPE: {
                "enabled": projects[number][SCOPE]["inbound_enabled"],
                "projects": set(projects[number][SCOPE]["project_allowlist"]),
                "groups": set(projects[number][SCOPE]["group_allowlist"]),
            },
            "approval_settings": {
                name: projects[number]["merge_request_approval_settings"][name] for name in APPROVALS
            },
            "notification_settings": {
                "level": projects[number]["notification_settings"]["ada"]["level"],
                "events": {
                    event: projects[number]["notification_settings"]["ada"]["events"].get(event, DEFAULT_EVENTS[event])
                    for event in EVENTS
                },
            },
        }
        for number in (100, 102)
    }


def declared(wanted: dict[int, Plain]) -> list[Section]:
    return [
        section(name, value, Target(Level.PROJECT, PROJECTS[project]), prune=name in sections["prune"])
        for project, sections in wanted.items()
        for name, value in sections.items()
        if name != "prune"
    ]


def without_both_names(live: dict[int, Plain], wanted: dict[int, Plain]) -> None:
    """Take renames away whose both names are live: those are problems, which have tests of their own."""
    for project, sections in wanted.items():
        for name in ("milestones", RULES, "trigger_tokens"):
            for key, item in sections.get(name, {}).items():
                if item and key in live[project][name] and item.get("renamed_from") in live[project][name]:
                    del item["renamed_from"]


thorough = settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)


@thorough
@given(live=STATES_OF_ALL, wanted=WANTED_OF_ALL)
def test_plan_and_apply_make_the_fewest_requests_and_touch_nothing_else(
    sandbox: Sandbox, dialect: str, live: dict[int, Plain], wanted: dict[int, Plain]
) -> None:
    wanted = copy.deepcopy(wanted)
    without_both_names(live, wanted)
    expected = expect(live, wanted, dialect)
    with EngineDriver(sandbox, service(live, dialect)) as engine:
        sections = declared(wanted)
        plan = engine.plan(*sections)
        assert list(plan.problems) == []
        assert len(engine.requests()) == expected.parts + len(expected.needed - expected.known | expected.asked)
        assert plan.cost == expected.writes
        outcomes = engine.apply(plan)
        assert failures(outcomes) == []
        assert len(engine.writes()) == expected.writes
        assert len(engine.requests()) == expected.writes + len(expected.changed) + len(expected.looks)
        assert all(entry["changed"] for entry in sandbox.log() if entry["method"] != "GET")
        assert found_in(sandbox.state()) == expected.after
        second = engine.plan(*sections)
        assert (list(second.changes), list(second.problems)) == ([], [])


@settings(thorough, max_examples=15)
@given(live=STATES_OF_ALL, wanted=WANTED_OF_ALL)
def test_a_saved_plan_does_what_it_shows_whatever_that_is(
    sandbox: Sandbox, dialect: str, live: dict[int, Plain], wanted: dict[int, Plain]
) -> None:
    wanted = copy.deepcopy(wanted)
    without_both_names(live, wanted)
    expected = expect(live, wanted, dialect)
    with EngineDriver(sandbox, service(live, dialect)) as engine:
        saved = load_plan(save(saved_plan(engine.plan(*declared(wanted)))), KINDS)
        assert failures(engine.apply(tree(saved), recheck=True)) == []
        assert found_in(sandbox.state()) == expected.after


@settings(thorough, max_examples=15)
@given(live=STATES_OF_ALL, wanted=WANTED_OF_ALL, data=st.data())
def test_applying_in_two_halves_equals_applying_at_once(
    sandbox: Sandbox, dialect: str, live: dict[int, Plain], wanted: dict[int, Plain], data: st.DataObject
) -> None:
    wanted = copy.deepcopy(wanted)
    without_both_names(live, wanted)
    expected = expect(live, wanted, dialect)
    with EngineDriver(sandbox, service(live, dialect)) as engine:
        sections = declared(wanted)
        first = [each for each in sections if data.draw(st.booleans())]
        writes = 0
        for half in (first, [each for each in sections if each not in first]):
            assert failures(engine.apply(engine.plan(*half))) == []
            writes += len(engine.writes())
        assert writes == expected.writes
        assert found_in(sandbox.state()) == expected.after


SETS = {
    "approval_settings: {allow_author_approval: false}": "merge_request_approval_setting",
    "milestones: {a: {}}": "milestones",
}
"""What a set declares, and what is read of it."""


@settings(thorough, max_examples=4)
@given(
    fleet=st.fixed_dictionaries({"acme": st.integers(0, 3), "acme/tools": st.sampled_from([0, 97, 100, 101, 205])}),
    chosen=st.dictionaries(st.sampled_from(["acme", "acme/tools"]), st.sampled_from(sorted(SETS)), min_size=1),
    archived=st.sets(st.integers(0, 9), max_size=3),
    concurrency=st.sampled_from(["5", "auto"]),
)
def test_a_plan_lists_each_group_once_and_reads_what_it_finds_once(
    cli_runner: CliRunner, fleet: dict[str, int], chosen: dict[str, str], archived: set[int], concurrency: str
) -> None:
    """A request for each hundred projects, and one for each declared section of each project."""
    paths = [f"{group}/p{number}" for group, count in fleet.items() for number in range(count)]
    state = a_small_service("deployed")
    state["projects"] = [
        {"id": 1000 + number, "path": path, "archived": number in archived} for number, path in enumerate(paths)
    ]
    cli_runner.sandbox.replace_state(state)
    shutil.rmtree(cli_runner.folder / "manifests", ignore_errors=True)
    expected = Counter[str]()
    for group, declared in chosen.items():
        head = f"apiVersion: reconciler/v1\nkind: ProjectSet\nmetadata: {{name: {group.replace('/', '-')}}}\n"
        cli_runner.write(f"manifests/{group}.yaml", f"{head}select: {{group: {group}}}\nspec: {{{declared}}}\n")
        below = [path for number, path in enumerate(paths) if path.startswith(f"{group}/") and number not in archived]
        expected[f"{Target(Level.GROUP, group).url}projects"] = max(-(-len(below) // 100), 1)
        expected |= Counter(f"{Target(Level.PROJECT, path).url}{SETS[declared]}" for path in below)
    plans = []
    for number in ("1", concurrency):
        cli_runner.sandbox.clear_log()
        plans.append(cli_runner(f"plan --group-by target --concurrency {number}"))
        asked = (entry["target"].removeprefix("/api/v4/").partition("?")[0] for entry in cli_runner.sandbox.log())
        assert Counter(asked) == expected
    assert plans[0] == plans[1]


TREE = {
    "acme": "groups",
    "acme/tools": "groups",
    "acme/tools/deep": "groups",
    "acme/tools/deep/api": "projects",
    "acme/tools/cli": "projects",
}
"""By path, what the manifests create, and what each is among requests."""
OUTSIDE = "other/web"
"""A project that they create in a group that they do not create."""


def looks(there: set[str]) -> Counter[str]:
    """The requests of a plan of `TREE` and `OUTSIDE`, each with one section, where some of it exists already."""
    expected = Counter[str]()
    for path, level in {**TREE, OUTSIDE: "projects"}.items():
        parent = path.rpartition("/")[0]
        known = parent in TREE
        if not parent or parent in there or not known:
            expected[f"{level}/{path}?with_projects=false" if level == "groups" else f"{level}/{path}"] += 1
        if path not in there and parent and not known:
            expected[f"groups/{parent}?with_projects=false"] += 1
            expected[f"namespaces/{parent}"] += parent not in there
        if path not in there and parent in there:  # the path may be that of a project, or of a group
            expected[f"projects/{path}" if level == "groups" else f"groups/{path}?with_projects=false"] += 1
        if path in there:
            expected[f"{level}/{path}/notification_settings"] += 1
    if "acme/tools" in there:  # a set names it, and the list tells which projects are there
        expected["groups/acme/tools/projects?include_subgroups=true"] += 1
        for path in ("acme/tools/deep/api", "acme/tools/cli"):
            expected[f"projects/{path}"] -= path in there
    return +expected


@pytest.mark.parametrize(
    "there",
    [
        set(),
        {"other"},
        {"acme", "other"},
        {"acme", "acme/tools", "acme/tools/cli", "other", OUTSIDE},
        {"acme", "acme/tools", "acme/tools/deep"},
        {*TREE, "other", OUTSIDE},
    ],
    ids=["empty service", "another group", "parent there", "project there", "projects missing", "all there"],
)
def test_nothing_is_asked_about_what_is_below_a_missing_group(
    cli_runner: CliRunner, dialect: str, there: set[str]
) -> None:
    state = a_small_service(dialect)
    owner = [{"user": "ada", "role": "owner"}]
    groups = [path for path in ("acme", "acme/tools", "acme/tools/deep", "other") if path in there]
    state["groups"] = [{"path": path, **({} if "/" in path else {"members": owner})} for path in groups]
    state["projects"] = [{"path": path} for path in ("acme/tools/deep/api", "acme/tools/cli", OUTSIDE) if path in there]
    cli_runner.sandbox.replace_state(state)
    documents = [
        f"apiVersion: reconciler/v1\nkind: {level.removesuffix('s').capitalize()}\nmetadata: {{path: {path}}}\n"
        "create: {}\nspec: {notification_settings: {level: watch}}\n"
        for path, level in {**TREE, OUTSIDE: "projects"}.items()
    ]
    documents.append(
        "apiVersion: reconciler/v1\nkind: ProjectSet\nmetadata: {name: set}\nselect: {group: acme/tools}\n"
        "spec: {notification_settings: {level: watch}}\n"
    )
    cli_runner.write("manifests/all.yaml", "---\n".join(documents))
    done = cli_runner("plan --concurrency 1 --format json")
    asked = [unquote(entry["target"].removeprefix("/api/v4/").partition("&")[0]) for entry in cli_runner.sandbox.log()]
    assert Counter(asked) == looks(there)
    plan = json.loads(done.out)
    missing = {*TREE, OUTSIDE} - there - ({OUTSIDE} if "other" not in there else set())
    assert (done.code, plan["summary"]["create"], plan["summary"]["update"]) == (
        0 if "other" in there else 3,
        len(missing),
        len({*TREE, OUTSIDE} & there | missing),
    )


PLACES = {"acme": GROUPS[10], "tools": GROUPS[11], "api": PROJECTS[100], "web": PROJECTS[102], "cli": PROJECTS[103]}
"""A group, a group below it, two projects of the one and one of the other."""

HELD = st.fixed_dictionaries({place: st.sets(st.sampled_from(NAMES)) for place in PLACES})
OF_GROUP = st.dictionaries(
    st.sampled_from(NAMES), optional(promote=st.booleans(), due_date=DUES, state=STATES) | st.none(), min_size=1
)


@settings(thorough, max_examples=15)
@given(held=HELD, wanted=OF_GROUP, closed=st.booleans(), prune=st.booleans())
def test_a_group_gets_its_milestones_with_the_fewest_requests_and_no_title_twice(
    sandbox: Sandbox, dialect: str, held: dict[str, set[str]], wanted: Plain, *, closed: bool, prune: bool
) -> None:
    state = a_small_service(dialect)
    live = {"title": "", "due_date": "2026-02-01", "state": "closed" if closed else "active"}
    for place in (*state["groups"], *state["projects"]):
        titles = next((held[name] for name, path in PLACES.items() if path == place["path"]), set[str]())
        place["milestones"] = [live | {"title": title} for title in sorted(titles)]
    direct, deep = held["api"] | held["web"], held["tools"] | held["cli"]
    after, problems, writes, looks = {place: {*titles} for place, titles in held.items()}, set(), 0, 0
    for title, item in wanted.items():
        if item is None or title in held["acme"]:
            differs = item is not None and any(live[name] != item[name] for name in item.keys() - {"promote"})
            writes += differs or (item is None and title in held["acme"])
            after["acme"] -= {title} if item is None else set()
        elif title in deep or (title in direct and not item.get("promote")):
            problems.add(title)
        else:
            after["acme"].add(title)
            after["api"].discard(title)
            after["web"].discard(title)
            fields = (live if title in direct else {"due_date": None, "state": "active"}) | item
            second = fields["state"] == "closed" or (title in direct and fields["due_date"] != live["due_date"])
            writes += 1 + second
            looks += title in direct and second and dialect == "deployed"
    if prune:
        writes += len(after["acme"] - wanted.keys())
        after["acme"] &= wanted.keys()
    with EngineDriver(sandbox, state) as engine:
        declared = section("milestones", wanted, Target(Level.GROUP, "acme"), prune=prune)
        plan = engine.plan(declared)
        assert len(engine.requests()) == 1
        assert {each.address.name for each in plan.problems} == problems
        assert plan.cost == writes
        assert failures(engine.apply(plan)) == []
        assert len(engine.writes()) == writes
        assert len(engine.requests()) == writes + looks + bool(writes)
        now = {
            place["path"]: place["milestones"] for place in (*sandbox.state()["groups"], *sandbox.state()["projects"])
        }
        assert {place: {each["title"] for each in now[path]} for place, path in PLACES.items()} == after
        second_plan = engine.plan(declared)
        assert list(second_plan.changes) == []
        assert {each.address.name for each in second_plan.problems} == problems


BRANCHES, TAGS, APPROVERS = "protected_branches", "protected_tags", "approval_rules"
LEVELS_OF = {"developer": 30, "maintainer": 40}
ROLES = st.lists(st.sampled_from(sorted(LEVELS_OF)), unique=True, max_size=2)
PEOPLE = st.lists(st.sampled_from(["bob", "eve"]), unique=True, min_size=1)
PROTECTIONS: dict[str, tuple[Plain, str]] = {
    BRANCHES: ({"allowed_to_push": ROLES, "allow_force_push": st.booleans()}, ""),
    TAGS: ({"allowed_to_create": ROLES}, "allowed_to_create"),
    "container_tag_protection_rules": ({PUSH: PUSHES, DELETE: PUSHES}, PUSH),
    "package_protection_rules": ({PUSH: PUSHES}, PUSH),
    APPROVERS: (
        {
            "approvals_required": st.integers(0, 2),
            "users": PEOPLE,
            "branches": st.sampled_from(["any", "protected", ["main"]]),
        },
        "users",
    ),
}
"""By section, the fields of its rules, and one that a manifest always has."""


CLOSED_IF_ARCHIVED = {"container_tag_protection_rules", "package_protection_rules"}
"""Sections of which an archived project shows nothing."""


def protections(*, are_wanted: bool) -> st.SearchStrategy[Plain]:
    """Rules of each section, or of some: a wanted one may leave fields out, or be none."""

    def rules(name: str) -> st.SearchStrategy[Plain]:
        fields, always = PROTECTIONS[name]
        if not are_wanted:
            return st.dictionaries(st.sampled_from(NAMES), st.fixed_dictionaries(fields))
        kept = {field: fields[field] for field in fields if field in (always, DELETE, "approvals_required")}
        optional = {field: fields[field] for field in fields if field not in kept}
        return st.dictionaries(st.sampled_from(NAMES), st.none() | st.fixed_dictionaries(kept, optional=optional))

    each = {name: rules(name) for name in PROTECTIONS}
    return st.fixed_dictionaries({}, optional=each) if are_wanted else st.fixed_dictionaries(each)


def rule_of_state(section_name: str, name: str, number: int, fields: Plain) -> Plain:
    """Write a rule the way the sandbox reads it."""

    def levels(roles: list[str]) -> list[Plain]:
        return [{"id": 100 * number + LEVELS_OF[role], "access_level": LEVELS_OF[role]} for role in roles]

    match section_name:
        case "protected_branches":
            pushes, force = levels(fields["allowed_to_push"]), fields["allow_force_push"]
            return {"id": number, "name": name, "push_access_levels": pushes, "allow_force_push": force}
        case "protected_tags":
            return {"id": number, "name": name, "create_access_levels": levels(fields["allowed_to_create"])}
        case "container_tag_protection_rules":
            return {"id": number, "tag_name_pattern": name} | fields
        case "package_protection_rules":
            return {"id": number, "package_name_pattern": name, "package_type": "npm"} | fields
    branches = {"any": {}, "protected": {"applies_to_all_protected_branches": True}}
    chosen = branches.get(str(fields["branches"]), {"protected_branch_ids": [1]})
    return {"id": number, "name": name, **chosen} | {key: fields[key] for key in ("approvals_required", "users")}


def canonical(fields: Plain) -> Plain:
    return {name: sorted(value) if isinstance(value, list) else value for name, value in fields.items()}


@settings(thorough, max_examples=12)
@given(live=protections(are_wanted=False), wanted=protections(are_wanted=True), prune=st.booleans())
def test_rules_of_protection_cost_the_fewest_requests(
    sandbox: Sandbox, dialect: str, live: Plain, wanted: Plain, *, prune: bool
) -> None:
    """One list for each section; for names that a rule has not yet, one of the members and one of the branches."""
    state = a_small_service(dialect)
    state["users"].append({"id": 4, "username": "eve"})
    (project,) = (each for each in state["projects"] if each["id"] == 100)
    project["members"] = [{"user": name, "role": "developer"} for name in ("bob", "eve")]
    for name, rules in live.items():
        numbered = enumerate(rules.items(), 2)
        project[name] = [rule_of_state(name, rule, number, fields) for number, (rule, fields) in numbered]
    project[BRANCHES].append({"id": 1, "name": "main"})
    writes, changed, looks, needed = 0, set(), set(), {"users": False, "branches": False}
    for name, rules in wanted.items():
        for rule, item in rules.items():
            old, fields = live[name].get(rule), canonical(item or {})
            sent = fields if old is None else {key: fields[key] for key in fields if canonical(old)[key] != fields[key]}
            if item is None or (old is not None and not sent):
                cost = int(item is None and old is not None)
            else:
                cost = 4 if name == TAGS and old is not None else 1
                looks |= {name} if old is None and name in (BRANCHES, APPROVERS) else set()
                known = old["users"] if old is not None and name == APPROVERS else ()
                needed["users"] |= not set(known).issuperset(sent.get("users", ()))
                shows_all = old is not None and old.get("branches") == "protected"  # with their IDs
                needed["branches"] |= sent.get("branches") == ["main"] and BRANCHES not in wanted and not shows_all
            writes += cost
            changed |= {name} if cost else set()
        gone = live[name].keys() - rules.keys() if prune else set()
        writes += len(gone)
        changed |= {name} if gone else set()
    declared = [
        section(
            name,
            {f"npm:{rule}" if name == "package_protection_rules" else rule: item for rule, item in rules.items()}
            | ({"main": {}} if name == BRANCHES else {}),
            Target(Level.PROJECT, PROJECTS[100]),
            prune=prune,
        )
        for name, rules in wanted.items()
    ]
    with EngineDriver(sandbox, state) as engine:
        plan = engine.plan(*declared)
        assert list(plan.problems) == []
        may_be_archived = BRANCHES in changed and not wanted.keys() & CLOSED_IF_ARCHIVED
        assert len(engine.requests()) == len(wanted) + sum(needed.values()) + may_be_archived
        assert plan.cost == writes
        assert failures(engine.apply(plan)) == []
        assert len(engine.writes()) == writes
        assert len(engine.requests()) == writes + len(changed) + len(looks)
        second = engine.plan(*declared)
        assert (list(second.changes), list(second.problems)) == ([], [])
