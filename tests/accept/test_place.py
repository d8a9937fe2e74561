"""Where a value is written so that a target has it: layers, what their targets need, and the place."""

from collections.abc import Mapping

import pytest

from reconciler.edit.edits import Add, Drop, Put, Rename
from reconciler.edit.place import UNITED, Delta, Membership, Spots, place
from reconciler.manifests import Manifests, Member, read_contents
from reconciler.manifests.layers import Layer
from reconciler.manifests.sources import Steps
from reconciler.model.targets import Level, Target
from tests.building import KINDS

API, LIB = Target(Level.PROJECT, "acme/api"), Target(Level.PROJECT, "acme/lib")

BASE = """
apiVersion: reconciler/v1
kind: Profile
metadata: {name: base%s}
spec:
  %s
"""
PROJECT = """---
apiVersion: reconciler/v1
kind: Project
metadata: {path: %s, profiles: [base]}
spec:
  %s
"""


def read(*documents: str) -> Manifests:
    return read_contents({"fleet.yaml": "---\n".join(documents).encode()}, KINDS)


def base(spec: str, locks: str = "") -> str:
    return BASE % (locks, spec)


def own(target: Target, spec: str = "{}") -> str:
    return PROJECT % (target.ref, spec)


def written(spots: Spots) -> list[str]:
    """Return each place with the change there, a line each."""

    def named(layer: Layer, at: Steps) -> str:
        return f"{layer.title or 'own'}: {'.'.join(map(str, at))}"

    if isinstance(spots, str):
        return [spots]
    return [f"{'own, beside ' if spot.in_own else ''}{named(spot.layer, spot.steps)} = {spot.change}" for spot in spots]


def placed(
    documents: tuple[str, ...], delta: Delta, steps: Steps, others: Mapping[Target, Mapping[Steps, Delta]] | None = None
) -> list[str]:
    """Place a delta of `acme/api`, and the further ones that are given."""
    manifests = read("".join(documents))
    deltas = {API: {steps: delta}, **(others or {})}
    deltas[API] = {steps: delta, **deltas[API]}
    known = {(stack.target, section) for stack in manifests.stacks for section in stack.sections}
    members = Membership.of(manifests.stacks, deltas, known)
    return written(place(delta, steps, manifests.of(API).stack, members))


SETTING = ("approval_settings", "allow_author_approval")
SHARED = base("approval_settings: {allow_author_approval: false}")
TRUE, FALSE = Put(value=True), Put(value=False)
SHARED_TRUE = "profile base: approval_settings.allow_author_approval = Put(value=True)"
OWN_TRUE = f"own, beside {SHARED_TRUE}"
M1 = ("milestones", "m1")
MILESTONE = base("milestones: {m1: {description: x}}")
LIST = ("job_token_scope", "groups", "acme")
GROUPS = base("job_token_scope: {groups: [acme, acme/tools]}")
PRUNED = base("{prune: [milestones], milestones: {}}")
RULES = base("{prune: [container_repository_protection_rules], container_repository_protection_rules: {}}")
RULE = ("container_repository_protection_rules", "acme/api/x")
RENAMED = base("milestones: {new: {renamed_from: old, description: x}}")

Others = Mapping[Target, Mapping[Steps, Delta]]
CASES: Mapping[str, tuple[tuple[str, ...], tuple[Delta, Steps], Others, list[str]]] = {
    "a field of the own document": (
        (SHARED, own(API, "approval_settings: {allow_author_approval: false}")),
        (TRUE, SETTING),
        {},
        ["own: approval_settings.allow_author_approval = Put(value=True)"],
    ),
    "a field of a profile whose targets have the same value": (
        (SHARED, own(API), own(LIB)),
        (TRUE, SETTING),
        {LIB: {SETTING: TRUE}},
        ["profile base: approval_settings.allow_author_approval = Put(value=True)"],
    ),
    "a field of a profile that another target needs as it is": (
        (SHARED, own(API), own(LIB)),
        (TRUE, SETTING),
        {},
        ["own, beside profile base: approval_settings.allow_author_approval = Put(value=True)"],
    ),
    "a field of a profile that another target overrides": (
        (SHARED, own(API), own(LIB, "approval_settings: {allow_author_approval: true}")),
        (TRUE, SETTING),
        {},
        ["profile base: approval_settings.allow_author_approval = Put(value=True)"],
    ),
    "a field under a lock": (
        (base("approval_settings: {allow_author_approval: false}", ", locks: {approval_settings: all}"), own(API)),
        (TRUE, SETTING),
        {},
        ["locked by profile base (fleet.yaml:4:32): change it there"],
    ),
    "a field that nobody declares yet": (
        (base("approval_settings: {}"), own(API), own(LIB)),
        (TRUE, SETTING),
        {LIB: {SETTING: TRUE}},
        ["profile base: approval_settings.allow_author_approval = Put(value=True)"],
    ),
    "a field that only one of two targets shall have": (
        (base("approval_settings: {}"), own(API), own(LIB)),
        (TRUE, SETTING),
        {},
        ["own, beside profile base: approval_settings.allow_author_approval = Put(value=True)"],
    ),
    "a field that another target leaves alone": (
        (base("approval_settings: {}"), own(API), own(LIB, "unmanaged: [approval_settings]")),
        (TRUE, SETTING),
        {},
        ["profile base: approval_settings.allow_author_approval = Put(value=True)"],
    ),
    "a field that goes": (
        (MILESTONE, own(API)),
        (Drop(), (*M1, "description")),
        {},
        ["profile base: milestones.m1.description = Drop()"],
    ),
    "a field that goes from all layers": (
        (MILESTONE, own(API, "milestones: {m1: {description: y}}")),
        (Drop(), (*M1, "description")),
        {},
        ["own: milestones.m1.description = Drop()", "profile base: milestones.m1.description = Drop()"],
    ),
    "a field that others keep": (
        (MILESTONE, own(API), own(LIB)),
        (Drop(), (*M1, "description")),
        {},
        ["profile base (fleet.yaml:6) declares it for other targets too"],
    ),
    "former names that others keep": (
        (RENAMED, own(API), own(LIB)),
        (Drop(), ("milestones", "new", "renamed_from")),
        {},
        ["own, beside profile base: milestones.new.renamed_from = Put(value=[])"],
    ),
    "an item that goes from all layers": (
        (MILESTONE, own(API, "milestones: {m1: {state: closed}}")),
        (Drop(), M1),
        {},
        ["profile base: milestones.m1 = Drop()", "own: milestones.m1 = Drop()"],
    ),
    "an item that others keep": (
        (MILESTONE, own(API), own(LIB)),
        (Drop(), M1),
        {},
        ["own, beside profile base: milestones.m1 = Put(value=None)"],
    ),
    "an item above a null": (
        (base("milestones: {m1: null}"), own(API, "milestones: {m1: {state: closed}}")),
        (Drop(), M1),
        {},
        ["own: milestones.m1 = Drop()"],
    ),
    "a null above an item": (
        (MILESTONE, own(API, "milestones: {m1: null}")),
        (Put({"state": "closed"}), M1),
        {},
        ["own: milestones.m1 = Drop()"],
    ),
    "a null of a profile": (
        (base("milestones: {m1: null}"), own(API)),
        (Put({"state": "closed"}), M1),
        {},
        ["profile base: milestones.m1 = Put(value={'state': 'closed'})"],
    ),
    "a null that others keep": (
        (base("milestones: {m1: null}"), own(API), own(LIB)),
        (Put({"state": "closed"}), M1),
        {},
        ["own, beside profile base: milestones.m1 = Put(value={'state': 'closed'})"],
    ),
    "a former name, in all layers": (
        (RENAMED, own(API, "milestones: {new: {state: closed}}")),
        (Rename("old"), ("milestones", "new")),
        {},
        ["profile base: milestones.new = Rename(name='old')", "own: milestones.new = Rename(name='old')"],
    ),
    "a former name of an item that others have by the new one": (
        (RENAMED, own(API), own(LIB)),
        (Rename("old"), ("milestones", "new")),
        {API: {("milestones", "new", "state"): Put("closed"), ("milestones", "new", "description"): Drop()}},
        [
            "own, beside profile base: milestones.new = Put(value=None)",
            "own, beside profile base: milestones.old = Put(value={'state': 'closed'})",
        ],
    ),
    "a field of an item that gets its former name back": (
        (RENAMED, own(API), own(LIB)),
        (Put("y"), ("milestones", "new", "description")),
        {API: {("milestones", "new"): Rename("old")}, LIB: {("milestones", "new"): Rename("old")}},
        ["own, beside profile base: milestones.old.description = Put(value='y')"],
    ),
    "an entry that goes from all lists": (
        (GROUPS, own(API, "job_token_scope: {groups: [acme]}")),
        (Drop(("acme",)), LIST),
        {},
        ["profile base: job_token_scope.groups.0 = Drop()", "own: job_token_scope.groups.0 = Drop()"],
    ),
    "an entry that others keep": (
        (GROUPS, own(API, "job_token_scope: {groups: [acme]}"), own(LIB)),
        (Drop(("acme",)), LIST),
        {},
        ["profile base (fleet.yaml:6) lists the allowlisted group acme for other targets too, " + UNITED],
    ),
    "an entry of a list that another target leaves alone": (
        (GROUPS, own(API), own(LIB, "unmanaged: [job_token_scope]")),
        (Drop(("acme",)), LIST),
        {},
        ["profile base: job_token_scope.groups.0 = Drop()"],
    ),
    "an entry of a list that another target lets go of": (
        (GROUPS, own(API), own(LIB, "unmanaged: [{job_token_scope: {groups: [acme]}}]")),
        (Drop(("acme",)), LIST),
        {},
        ["profile base: job_token_scope.groups.0 = Drop()"],
    ),
    "a new item that another target lets go of": (
        (PRUNED, own(API), own(LIB, "unmanaged: [{milestones: [m1]}]")),
        (Put({}), M1),
        {},
        ["profile base: milestones.m1 = Put(value={})"],
    ),
    "a new item of all targets": (
        (PRUNED, own(API), own(LIB)),
        (Put({"state": "closed"}), M1),
        {LIB: {M1: Put({"state": "closed"})}},
        ["profile base: milestones.m1 = Put(value={'state': 'closed'})"],
    ),
    "a new item of one target": (
        (PRUNED, own(API), own(LIB)),
        (Put({"state": "closed"}), M1),
        {},
        ["own, beside profile base: milestones.m1 = Put(value={'state': 'closed'})"],
    ),
    "a new item of all targets, of which one prunes by itself": (
        (PRUNED, own(API, "{prune: [milestones], milestones: {}}"), own(LIB)),
        (Put({}), M1),
        {LIB: {M1: Put({})}},
        ["profile base: milestones.m1 = Put(value={})"],
    ),
    "a new item of the one target, which prunes by itself": (
        (PRUNED, own(API, "{prune: [milestones], milestones: {}}")),
        (Put({}), M1),
        {},
        ["own, beside own: milestones.m1 = Put(value={})"],
    ),
    "a new rule of each target": (
        (RULES, own(API), own(LIB)),
        (Put({}), RULE),
        {LIB: {(RULE[0], "acme/lib/x"): Put({})}},
        ["profile base: container_repository_protection_rules.{path}/x = Put(value={})"],
    ),
    "a new rule that names one target for all": (
        (RULES, own(API), own(LIB)),
        (Put({}), RULE),
        {LIB: {RULE: Put({})}},
        ["profile base: container_repository_protection_rules.acme/api/x = Put(value={})"],
    ),
    "a new entry of all targets": (
        (base("{prune: [job_token_scope], job_token_scope: {groups: []}}"), own(API), own(LIB)),
        (Add("acme"), LIST),
        {LIB: {LIST: Add("acme")}},
        ["profile base: job_token_scope.groups = Add(value='acme')"],
    ),
    "a new entry of one target": (
        (base("{prune: [job_token_scope], job_token_scope: {groups: []}}"), own(API), own(LIB)),
        (Add("acme"), LIST),
        {},
        ["own, beside profile base: job_token_scope.groups = Add(value='acme')"],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_each_value_has_its_place(case: str) -> None:
    documents, (delta, steps), others, places = CASES[case]
    assert placed(documents, delta, steps, others) == places


def test_a_target_that_was_not_read_agrees_to_nothing_and_one_without_the_section_to_anything() -> None:
    manifests = read(SHARED + own(API) + own(LIB))
    stack = manifests.of(API).stack
    deltas: Mapping[Target, Mapping[Steps, Delta]] = {API: {SETTING: TRUE}, LIB: {SETTING: TRUE}}
    api, lib = (API, "approval_settings"), (LIB, "approval_settings")
    unread = Membership.of(manifests.stacks, deltas, {api})
    assert written(place(TRUE, SETTING, stack, unread)) == [OWN_TRUE]
    unable = Membership.of(manifests.stacks, {API: {SETTING: TRUE}}, {api}, {lib})
    assert written(place(TRUE, SETTING, stack, unable)) == [SHARED_TRUE]
    unlisted = Membership.of(manifests.stacks, deltas, {api, lib}, fixed=stack.layers)
    assert written(place(TRUE, SETTING, stack, unlisted)) == [OWN_TRUE]


def test_what_is_within_a_locked_item_that_goes_is_held_with_it() -> None:
    documents = base("milestones: {m1: {description: x}}", ", locks: {milestones: all}") + own(API)
    manifests = read(documents)
    deltas: Mapping[Target, Mapping[Steps, Delta]] = {API: {M1: Rename("m0"), (*M1, "state"): Put("closed")}}
    members = Membership.of(manifests.stacks, deltas, {(API, "milestones")})
    assert (dict(members.deltas), {*members.prevented[API]}) == ({API: {}}, {M1, (*M1, "state")})


def test_members_of_a_set_agree_like_those_of_a_profile() -> None:
    text = (
        "apiVersion: reconciler/v1\nkind: ProjectSet\nmetadata: {name: all}\nselect: {group: acme}\n"
        "spec: {approval_settings: {allow_author_approval: false}}\n"
    )
    manifests = read(text).with_discovered({"acme": (Member("acme/api", id=1), Member("acme/lib", id=2))})
    known = {(target, "approval_settings") for target in (API, LIB)}
    members = Membership.of(manifests.stacks, {API: {SETTING: TRUE}, LIB: {SETTING: TRUE}}, known)
    stack = manifests.of(API).stack
    assert written(place(TRUE, SETTING, stack, members)) == [
        "set all: approval_settings.allow_author_approval = Put(value=True)"
    ]
    assert members.delta(stack, SETTING) == TRUE
