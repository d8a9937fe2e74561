"""Where a difference is written: manifests and live state in, changed lines out."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator

from reconciler.edit.differences import CONTRADICTION, Acceptance
from reconciler.kinds.notification_settings import EVENT_NAMES
from reconciler.model.endpoints import Singleton
from reconciler.model.kind import Kind, Kinds
from reconciler.model.resource import LiveRecord, Resource
from reconciler.model.state import LiveState, Reference
from reconciler.model.targets import Level, Target
from tests.accept.test_any_fleet import IDS, PROJECTS, accepted_by, read
from tests.building import API, KINDS, live

Answers = Mapping[tuple[int, str, str], Any]


def accepted(text: str, answers: Answers, kinds: Kinds = KINDS) -> Acceptance:
    """Accept what the service answers about projects, by ID and section."""
    found = {
        (Target(Level.PROJECT, ref), section, part): answer
        for (number, section, part), answer in answers.items()
        for ref in (number, PROJECTS[number])
    }
    return accepted_by(read({"manifests/fleet.yaml": text}, kinds), live(found, IDS), kinds)


def of(section: str, answers: Mapping[int, Any], part: str = "") -> dict[tuple[int, str, str], Any]:
    """Return the answers about a section of some projects."""
    return {(number, section, part or section): answer for number, answer in answers.items()}


def changed(text: str, answers: Answers) -> str:
    """Return the lines that are removed and added, without the names of files."""
    lines = accepted(text, answers).diff()
    return "".join(line for line in lines if line[0] in "+-" and line[:3] not in {"+++", "---"})


def approvals(**fields: Any) -> Any:
    return {name: {"value": value, "locked": False} for name, value in fields.items()}


def profile(spec: str, name: str = "base") -> str:
    return f"apiVersion: reconciler/v1\nkind: Profile\nmetadata: {{name: {name}}}\nspec:\n{spec}---\n"


def project(path: str, spec: str = "", profiles: str = "base") -> str:
    head = f"apiVersion: reconciler/v1\nkind: Project\nmetadata: {{path: {path}, profiles: [{profiles}]}}\n"
    return head + (f"spec:\n{spec}" if spec else "") + "---\n"


def milestones(*titles: str, **fields: Any) -> Any:
    return [{"id": number, "title": title, "state": "active", **fields} for number, title in enumerate(titles, 1)]


M1 = "  milestones:\n    m1: {state: active}  # one\n    m2: {state: active}\n"
BOTH = project("acme/api") + project("acme/lib")


def test_an_item_that_is_gone_is_removed_or_null_where_others_have_it() -> None:
    one = of("milestones", {100: milestones("m2"), 101: milestones("m1", "m2")})
    assert changed(profile(M1) + BOTH, one) == "+spec:\n+  milestones:\n+    m1: null\n"
    all_ = of("milestones", {100: milestones("m2"), 101: milestones("m2")})
    assert changed(profile(M1) + BOTH, all_) == "-    m1: {state: active}  # one\n"
    own = profile(M1) + project("acme/api", "  milestones:\n    m1: {state: closed}  # own\n") + project("acme/lib")
    assert changed(own, one) == "-    m1: {state: closed}  # own\n+    m1: null  # own\n"
    assert changed(own, all_) == (
        "-    m1: {state: active}  # one\n-spec:\n-  milestones:\n-    m1: {state: closed}  # own\n"
    )


def test_a_null_that_is_live_loses_its_null() -> None:
    null = "  milestones:\n    m1: null  # not here\n"
    live_m1 = of("milestones", {100: milestones("m1", state="closed"), 101: []})
    assert changed(profile(null) + BOTH, live_m1) == "+spec:\n+  milestones:\n+    m1:\n+      state: closed\n"
    both = of("milestones", {100: milestones("m1"), 101: milestones("m1")})
    assert changed(profile(null) + BOTH, both) == "-    m1: null  # not here\n+    m1: {}  # not here\n"
    above = profile("  milestones:\n    m1: {state: active}\n") + project("acme/api", null) + project("acme/lib")
    assert changed(above, both) == "-spec:\n-  milestones:\n-    m1: null  # not here\n"


def test_a_line_of_the_diff_is_a_line_of_the_file() -> None:
    odd = project("acme/api", '  milestones:\n    m1: {state: closed, description: "a\u2028b"}\n', "")
    found = of("milestones", {100: milestones("m1", description="a\u2028b")})
    [line] = [each for each in accepted(odd, found).diff() if each.startswith("+ ")]
    assert line == '+    m1: {state: active, description: "a\u2028b"}\n'


def test_an_item_gets_its_former_name_back() -> None:
    renamed = "  milestones:\n    new:  # from old\n      renamed_from: old  # for now\n      state: active\n      description: x\n"
    both = of("milestones", {100: milestones("old", description="y"), 101: milestones("old", description="x")})
    assert changed(profile(renamed) + BOTH, both) == (
        "-    new:  # from old\n-      renamed_from: old  # for now\n+    old:  # from old\n"
        '+spec:\n+  milestones:\n+    old:\n+      description: "y"\n'
    )
    one = both | of("milestones", {101: milestones("new", description="x")})
    assert changed(profile(renamed) + BOTH, one) == (
        '+spec:\n+  milestones:\n+    new: null\n+    old:\n+      state: active\n+      description: "y"\n'
    )
    twice = one | of("milestones", {100: milestones("old", "new", description="x")})
    assert changed(profile(renamed) + BOTH, twice) == "+spec:\n+  milestones:\n+    new:\n+      renamed_from: []\n"


GONE = Reference(Level.PROJECT, "acme/gone")
SCOPE = "  job_token_scope:\n    projects:\n      - acme/web  # first\n      - 101\n"
WEB, LIB = {"id": 102, "path_with_namespace": "acme/web"}, {"id": 101, "path_with_namespace": "acme/lib"}


def projects(**live_ones: Any) -> dict[tuple[int, str, str], Any]:
    numbers = {"api": 100, "web": 102}
    return of("job_token_scope", {numbers[name]: found for name, found in live_ones.items()}, "projects")


def test_lists_unite_so_that_an_entry_goes_from_all_layers_or_stays() -> None:
    fleet = profile(SCOPE) + project("acme/api") + project("acme/web", SCOPE)
    gone = changed(fleet, projects(api=[WEB], web=[WEB]))
    assert gone == "-      - 101\n-      - 101\n"
    refused = accepted(fleet, projects(api=[WEB, LIB], web=[WEB]))
    assert (refused.texts, [(each.address.name, each.reason) for each in refused.refused]) == (
        {},
        [
            (
                101,
                "profile base (manifests/fleet.yaml:8) lists the allowlisted project 101 for other targets too, "
                "and lists unite: `unmanaged` in its own document lets go of it",
            )
        ],
    )


def test_what_a_pruned_section_lacks_goes_into_the_layer_that_prunes_it() -> None:
    pruned = "  prune: [job_token_scope, milestones]\n  job_token_scope: {projects: []}\n  milestones: {}\n"
    fleet = profile(pruned) + BOTH
    none = of("job_token_scope", {101: []}, "projects") | projects(api=[WEB])
    alike = of("milestones", {100: milestones("m"), 101: milestones("m")})
    assert changed(fleet, none | alike) == (
        "-  milestones: {}\n+  milestones:\n+    m: {}\n+spec:\n+  job_token_scope:\n+    projects:\n+      - acme/web\n"
    )
    rules = "  prune: [container_repository_protection_rules]\n  container_repository_protection_rules: {}\n"
    levels = {"minimum_access_level_for_push": "owner", "minimum_access_level_for_delete": None}
    patterns = {number: f"{PROJECTS[number]}/prod*" for number in (100, 101)}
    both = {n: [{"id": n, "repository_path_pattern": pattern, **levels}] for n, pattern in patterns.items()}
    assert changed(profile(rules) + BOTH, of("container_repository_protection_rules", both)) == (
        "-  container_repository_protection_rules: {}\n+  container_repository_protection_rules:\n"
        '+    "{path}/prod*":\n+      minimum_access_level_for_push: owner\n+      minimum_access_level_for_delete: null\n'
    )
    own = project("acme/api", pruned, "")
    assert changed(own, projects(api=[WEB]) | of("milestones", {100: milestones("{name}")})) == (
        "-  job_token_scope: {projects: []}\n-  milestones: {}\n"
        '+  job_token_scope: {projects: [acme/web]}\n+  milestones:\n+    "{{name}}": {}\n'
    )


def test_lists_of_an_empty_pruned_section_stay_empty() -> None:
    pruned = "  prune: [job_token_scope]\n  job_token_scope: {}\n"
    none = of("job_token_scope", {100: [], 101: []}, "groups")
    one = projects(api=[WEB]) | of("job_token_scope", {101: []}, "projects") | none
    lists = "+  job_token_scope:\n+    groups: []\n+    projects:\n+      - acme/web\n"
    assert changed(profile(pruned) + BOTH, one) == f"+spec:\n{lists}"
    both = one | of("job_token_scope", {101: [WEB]}, "projects")
    assert changed(profile(pruned) + BOTH, both) == f"-  job_token_scope: {{}}\n{lists}"


def test_what_comes_to_light_later_goes_into_the_same_new_document() -> None:
    pruned = (
        "  prune: [job_token_scope]\n  job_token_scope: {projects: [acme/gone]}\n  milestones: {m1: {state: active}}\n"
    )
    members = "select: {projects: [acme/api, acme/lib]}\n"
    text = f"apiVersion: reconciler/v1\nkind: ProjectSet\nmetadata: {{name: all}}\nspec:\n{pruned}{members}"
    found = projects(api=[WEB]) | of("job_token_scope", {101: []}, "projects")
    found |= of("milestones", {100: milestones("m1", state="closed"), 101: milestones("m1")})
    assert changed(text, found) == (
        "+apiVersion: reconciler/v1\n+kind: Project\n+metadata: {path: acme/api}\n+spec:\n+  milestones:\n+    m1:\n"
        "+      state: closed\n+  job_token_scope:\n+    projects:\n+      - acme/web\n"
        "-  job_token_scope: {projects: [acme/gone]}\n+  job_token_scope: {projects: []}\n"
    )


CUSTOM = "  notification_settings:\n    level: custom\n    events: {new_issue: true}\n"


def notified(level: str, **events: bool) -> Any:
    return {"level": level, "events": dict.fromkeys(EVENT_NAMES, False) | events}


def test_events_go_where_their_level_goes() -> None:
    section = "notification_settings"
    one = of(section, {100: notified("watch"), 101: notified("custom", new_issue=True)})
    assert changed(profile(CUSTOM) + BOTH, one) == "+spec:\n+  notification_settings:\n+    level: watch\n"
    both = of(section, {100: notified("watch"), 101: notified("watch")})
    assert changed(profile(CUSTOM) + BOTH, both) == (
        "-    level: custom\n-    events: {new_issue: true}\n+    level: watch\n"
    )
    own = profile("  notification_settings: {level: custom}\n") + project(
        "acme/api", "  notification_settings: {events: {new_issue: true}}\n"
    )
    assert changed(own + project("acme/lib"), both) == (
        "-  notification_settings: {level: custom}\n+  notification_settings: {level: watch}\n"
        "-spec:\n-  notification_settings: {events: {new_issue: true}}\n"
    )
    above = profile(CUSTOM) + project("acme/api", "  notification_settings: {level: watch}\n")
    other = of(section, {100: notified("watch"), 101: notified("custom")})
    assert changed(above + project("acme/lib"), other) == (
        "-    events: {new_issue: true}\n+    events: {new_issue: false}\n"
    )
    assert changed(above, of(section, {100: notified("custom")})) == (
        "-    events: {new_issue: true}\n+    events: {new_issue: false}\n"
        "-  notification_settings: {level: watch}\n+  notification_settings: {level: custom}\n"
    )


def test_a_document_by_id_is_complete_even_before_its_sets_are_known() -> None:
    group = f"apiVersion: reconciler/v1\nkind: ProjectSet\nmetadata: {{name: all}}\nselect: {{group: acme}}\nspec:\n{CUSTOM}---\n"
    own = "apiVersion: reconciler/v1\nkind: Project\nmetadata: {id: 100}\n"
    others = {101: notified("custom", new_issue=True), 102: notified("custom", new_issue=True)}
    assert changed(group + own, of("notification_settings", {100: notified("custom"), **others})) == (
        "+spec:\n+  notification_settings:\n+    events:\n+      new_issue: false\n+    level: custom\n"
    )


def test_sets_of_one_priority_do_not_come_to_disagree() -> None:
    spec = "spec:\n  approval_settings: {allow_author_approval: false}\n  milestones: {m1: {state: active}}\n---\n"
    sets = "".join(
        f"apiVersion: reconciler/v1\nkind: ProjectSet\nmetadata: {{name: {name}}}\nselect: {{projects: [acme/api]}}\n{spec}"
        for name in ("one", "two")
    )
    found = of("approval_settings", {100: approvals(allow_author_approval=True)})
    own = "+apiVersion: reconciler/v1\n+kind: Project\n+metadata: {path: acme/api}\n+spec:\n"
    assert changed(sets, found | of("milestones", {100: milestones("m1")})) == (
        f"{own}+  approval_settings:\n+    allow_author_approval: true\n"
    )
    found = of("approval_settings", {100: approvals(allow_author_approval=False)})
    pruned = sets.replace("spec:\n", "spec:\n  prune: [milestones]\n")
    assert changed(pruned, found | of("milestones", {100: milestones("m1", "m2", state="closed")})) == (
        f"{own}+  milestones:\n+    m1:\n+      state: closed\n+    m2:\n+      state: closed\n"
    )


def reasons(text: str, answers: Answers, kinds: Kinds = KINDS) -> list[tuple[Any, str | None, str]]:
    """See that nothing is accepted, and return what is refused: name, field and reason."""
    done = accepted(text, answers, kinds)
    assert (done.texts, done.accepted) == ({}, 0)
    return [(each.address.name, each.field, each.reason) for each in done.refused]


def test_what_would_contradict_what_stays_is_refused() -> None:
    dates = "  milestones:\n    m1: {start_date: 2027-01-01}\n"
    locked = profile(dates).replace("{name: base}", "{name: base, locks: {milestones: [m1]}}")
    own = project("acme/api", "  milestones:\n    m1: {due_date: 2027-06-01}\n")
    found = of("milestones", {100: milestones("m1", start_date="2026-01-01", due_date="2026-06-01")})
    assert reasons(locked + own, found) == [
        ("m1", "start_date", "locked by profile base (manifests/fleet.yaml:3:45): change it there"),
        ("m1", "due_date", CONTRADICTION),
    ]


def test_a_former_name_under_a_lock_is_refused_by_the_lock() -> None:
    renamed = profile("  milestones:\n    New: {renamed_from: Old}\n")
    locked = renamed.replace("{name: base}", "{name: base, locks: {milestones: all}}") + project("acme/api")
    assert reasons(locked, of("milestones", {100: milestones("Old", "New")})) == [
        ("New", None, "locked by profile base (manifests/fleet.yaml:3:32): change it there")
    ]


def test_what_a_layout_does_not_survive_is_refused() -> None:
    odd = project("acme/api", "  milestones:\n    ? m1\n    # see: above\n    : null\n    m2: {}\n", "")
    assert reasons(odd, of("milestones", {100: milestones("m1", "m2", state="closed")})) == [
        ("m1", None, "declared at manifests/fleet.yaml:6, whose layout would be lost; change it there")
    ]


class Blanked(Resource):
    """A record of somebody else's kind, whose decoding forgets to strip what its model strips."""

    text: Annotated[str, AfterValidator(str.strip)] = ""


def test_a_value_that_does_not_survive_being_declared_ends_the_attempt() -> None:
    part = Singleton(
        "odd",
        "odd",
        "odd",
        Blanked,
        decode=lambda _target, answer: LiveRecord(Blanked.model_construct({"text"}, **answer)),
    )
    kinds = {"odd": Kind("odd", "Odd.", {Level.PROJECT: Blanked}, (part,))}
    state = LiveState({(API, "odd", "odd"): part.read(API, {"text": " x "})}, IDS)
    manifests = read({"manifests/api.yaml": project("acme/api", "  odd: {text: y}\n", "")}, kinds)
    done = accepted_by(manifests, state, kinds)
    assert [(each.field, each.reason) for each in done.refused] == [("text", CONTRADICTION)]


def test_a_count_that_nobody_declares_is_declared() -> None:
    pruned = "  prune: [error_tracking_client_keys]\n  error_tracking_client_keys: {}\n"
    keys = [{"id": 1, "place": "1"}, {"id": 2, "place": "2"}]
    found = of("error_tracking_client_keys", {100: keys, 101: keys}, "keys")
    assert changed(profile(pruned) + BOTH, found) == (
        "-  error_tracking_client_keys: {}\n+  error_tracking_client_keys:\n+    count: 2\n"
    )
    found |= of("error_tracking_client_keys", {101: keys[:1]}, "keys")
    assert changed(profile(pruned) + BOTH, found) == "+spec:\n+  error_tracking_client_keys:\n+    count: 2\n"


def test_what_no_manifest_can_declare_or_nobody_shows_is_left() -> None:
    odd = {"allow_author_approval": {"value": "sometimes", "locked": False}}
    settings = project("acme/api", "  approval_settings: {allow_author_approval: true}\n", "")
    assert reasons(settings, of("approval_settings", {100: odd})) == [
        (None, "allow_author_approval", "no manifest can declare its value")
    ]
    text = "apiVersion: reconciler/v1\nkind: Instance\nspec:\n  service_accounts:\n    bot: {name: Bot, email: b@example.com}\n"
    instance, section = Target(Level.INSTANCE), "service_accounts"
    state = live({(instance, section, section): [{"id": 1, "username": "bot", "name": "Robot"}]})
    done = accepted_by(read({"manifests/instance.yaml": text}), state)
    assert [*done.texts.values()] == [text.replace("Bot", "Robot")]


def test_nothing_is_asked_for_what_comes_to_light_later() -> None:
    pruned = "  prune: [job_token_scope]\n  job_token_scope: {projects: [acme/gone]}\n"
    found = live({(API, "job_token_scope", "projects"): [WEB]}, {GONE: IDS[GONE]})
    done = accepted_by(read({"manifests/api.yaml": project("acme/api", pruned, "")}), found)
    assert (done.refused, [*done.texts.values()]) == (
        (),
        [project("acme/api", pruned.replace("acme/gone", "acme/web"), "")],
    )


def test_events_above_a_level_that_changes_go_too() -> None:
    level, events = (
        "  notification_settings: {level: custom}\n",
        "  notification_settings: {events: {new_issue: true}}\n",
    )
    fleet = profile(level) + profile(events, "more") + project("acme/api", profiles="base, more")
    assert changed(fleet, of("notification_settings", {100: notified("watch")})) == (
        f"-{level}+{level.replace('custom', 'watch')}-spec:\n-{events}"
    )


def test_what_cannot_be_written_to_the_service_can_be_declared() -> None:
    locked = {"allow_author_approval": {"value": True, "locked": True, "inherited_from": "group"}}
    settings = "  approval_settings: {allow_author_approval: false}\n"
    assert changed(project("acme/api", settings, ""), of("approval_settings", {100: locked})) == (
        f"-{settings}+{settings.replace('false', 'true')}"
    )
    item = "  milestones:\n    m: {state: closed}\n"
    stateless = of("milestones", {100: [{"id": 1, "title": "m"}]})
    assert changed(project("acme/api", item, ""), stateless) == "-    m: {state: closed}\n+    m: {}\n"
    renamed = "  milestones:\n    new: {state: closed, renamed_from: m}\n"
    both = stateless | of("milestones", {101: milestones("new", state="closed")})
    assert changed(profile(renamed) + BOTH, both) == "+spec:\n+  milestones:\n+    new: null\n+    m: {}\n"
    twins = [{"id": each, "description": "t", "token": "0123456789"} for each in (1, 2)]
    assert reasons(project("acme/api", "  trigger_tokens: {t: {}}\n", ""), of("trigger_tokens", {100: twins})) == [
        ("t", None, "2 objects have this name (IDs 1, 2); expected one")
    ]


def a_set(name: str, priority: int, spec: str, *, select: str = "{group: acme}", profiles: str = "") -> str:
    metadata = f"{{name: {name}, priority: {priority}, profiles: [{profiles}]}}"
    return f"apiVersion: reconciler/v1\nkind: ProjectSet\nmetadata: {metadata}\nselect: {select}\nspec:\n{spec}---\n"


def test_an_item_whose_null_beneath_goes_stays_where_it_is_and_gets_a_null_above() -> None:
    """Hypothesis found it: the set's line need not go, for without it the profile's would count."""
    two = "{projects: [acme/api, acme/lib]}"
    text = profile("  trigger_tokens:\n    t: null  # profile\n")
    text += a_set("all", 0, "  trigger_tokens:\n    t: {}  # set\n", profiles="base")
    text += a_set("two", 1, "  milestones: {}\n", profiles="base", select=two)
    token = [{"id": 1, "description": "t", "token": "0123456789", "created_at": "2026-01-01T00:00:00Z"}]
    empty = of("milestones", {number: [] for number in PROJECTS})
    answers = of("trigger_tokens", {100: token, 101: token, 102: []}) | empty
    own = "+apiVersion: reconciler/v1\n+kind: Project\n+metadata: {path: acme/web}\n+spec:\n+  trigger_tokens:\n+    t: null\n"
    assert changed(text, answers) == f"{own}-    t: null  # profile\n+    t: {{}}  # profile\n"
    gone = of("trigger_tokens", {number: [] for number in PROJECTS}) | empty
    assert changed(text, gone) == "-  trigger_tokens:\n-    t: {}  # set\n+  trigger_tokens: {}\n"


def test_the_path_and_the_id_of_one_project_go_together_or_stay() -> None:
    """Hypothesis found it: without the path, the ID that another set lists still allows the project."""
    text = a_set("all", 0, "  job_token_scope:\n    projects:\n      - 102  # ID\n")
    text += a_set(
        "two",
        1,
        "  job_token_scope:\n    projects:\n      - acme/web  # path\n      - 102  # too\n",
        select="{projects: [acme/api, acme/lib]}",
    )
    part = "projects"
    none = of("job_token_scope", {number: [] for number in PROJECTS}, part)
    assert changed(text, none) == ""
    assert {each.address.name for each in accepted(text, none).refused} == {"acme/web"}
    both = text.replace("{group: acme}", "{projects: [acme/api, acme/lib]}")
    assert [line for line in changed(both, none).splitlines() if "#" in line] == [
        "-      - 102  # ID",
        "-      - acme/web  # path",
        "-      - 102  # too",
    ]


def test_what_stays_hidden_beneath_a_level_stays_as_it_is() -> None:
    """Hypothesis found it: by itself, the project would change the set's level, and uncover the profile's events."""
    text = profile(CUSTOM) + a_set("all", 0, "  notification_settings: {level: watch}\n", profiles="base")
    one = of("notification_settings", {100: notified("custom"), 101: notified("watch"), 102: notified("watch")})
    own = "+apiVersion: reconciler/v1\n+kind: Project\n+metadata: {path: acme/api}\n+spec:\n"
    assert changed(text, one) == f"{own}+  notification_settings:\n+    level: custom\n"


def test_former_names_in_all_layers_go_from_the_own_document_by_an_empty_list() -> None:
    """Hypothesis found it: without the project's line, the set's would still name a milestone that is there."""
    item = "  milestones:\n    New: {renamed_from: Old}\n"
    text = a_set("all", 0, item) + project("acme/api", f"  prune: [milestones]\n{item}", "")
    both = of("milestones", {100: milestones("Old", "New"), 101: milestones("New"), 102: milestones("New")})
    assert changed(text, both) == ("-    New: {renamed_from: Old}\n+    New: {renamed_from: []}\n+    Old: {}\n")
