"""Which files may matter to changed ones, by their bytes."""

import pytest

from reconciler.manifests.mentions import MANY, may_concern_others, may_declare, names_of
from reconciler.model.targets import Level, Target

PROJECT = Target(Level.PROJECT, "acme/API")
GROUP, SUBGROUP = Target(Level.GROUP, "acme"), Target(Level.GROUP, "acme/tools")


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.yaml", b"kind: Project\nmetadata: {path: a/b}", False),
        ("a.yaml", b"kind: Project\nspec: {milestones: {valid: {}, kid: {}, idle: {}, _id_: {}}}", False),
        ("a.yaml", b"kind: Project\nmetadata: {id: 7}", True),
        ("a.yaml", b"kind: Project\nmetadata:\n  ? id\n  : 7", True),
        ("a.yaml", b"kind: Profile", True),
        ("a.yaml", b"kind: ProjectSet", True),
        ("a.yaml", b'kind: "Pro\\x66ile"', True),
        ("a.yaml.j2", b"", True),
    ],
)
def test_a_file_may_concern_targets_that_it_does_not_mention(name: str, content: bytes, expected: bool) -> None:
    assert may_concern_others(name, content) is expected


@pytest.mark.parametrize(
    ("target", "content", "expected"),
    [
        (PROJECT, b"path: Acme/api", True),
        (PROJECT, b"path: acme/api/below", True),
        (PROJECT, b"path: acme/web", False),
        (GROUP, b"kind: Group\nmetadata: {path: ACME}", True),
        (GROUP, b"kind: Group\nmetadata: {path: acme/tools}", False),
        (GROUP, b"kind: Project\nspec: {job_token_scope: {groups: [acme]}}", False),
        (SUBGROUP, b"kind: Project\nmetadata: {path: acme/tools}", True),
        (SUBGROUP, b"kind: Project\nmetadata: {path: acme/tools/cli}", False),
        (Target(Level.USER), b"kind: User", True),
        (Target(Level.USER), b"kind: Project", False),
    ],
)
def test_a_file_mentions_a_target_or_does_not(target: Target, content: bytes, expected: bool) -> None:
    assert names_of([target], []).are_in(content) is expected


def test_names_that_are_too_many_or_may_be_spelt_otherwise_are_not_searched() -> None:
    many = [Target(Level.PROJECT, f"acme/{number}") for number in range(MANY + 1)]
    assert names_of(many[:-1], []).can_be_searched
    assert not names_of(many, []).can_be_searched
    assert not names_of([Target(Level.PROJECT, "acme/o'clock")], []).can_be_searched
    assert may_declare("a.yaml", b"kind: Project", [str(each.ref) for each in many])
    assert not may_declare("a.yaml", b"kind: Project", ["acme/1"])
