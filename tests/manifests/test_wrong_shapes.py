"""A value of a wrong shape, wherever it stands, never hides the errors of other files."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from reconciler.errors import ManifestErrors
from reconciler.manifests import read_contents
from tests.manifests.conftest import KINDS, Folder

EXAMPLES = Path(__file__).parents[2] / "examples"
SHAPES: tuple[Any, ...] = (
    *(None, False, 2.5, "", "{path}"),
    *([], [None], [[]], [{}], [1, "{name}"]),
    *({}, {"text": None}, {"text": False}, {"{path}": [1]}),
)
WITHIN: tuple[Any, ...] = (None, "{path}", [None], {"{path}": [1]})
"""One of each sort, for what is in a section: what scalars have in common is proved by sections that are one."""
OTHER = b"apiVersion: reconciler/v1\nkind: Project\nmetadata: {path: acme/other}\nspec:\n  milestonez: {}\n"


def test_a_group_with_settings_of_a_wrong_shape_hides_no_other_error(folder: Folder) -> None:
    folder.write(
        group_yaml="apiVersion: reconciler/v1\nkind: Group\nmetadata: {path: acme}\nspec: {approval_settings: false}",
        project_yaml="apiVersion: reconciler/v1\nkind: Project\nmetadata: {path: acme/api}\n"
        "spec: {approval_settings: {allow_author_approval: true, allow_committer_approval: 1}}",
        other_yaml=OTHER.decode(),
    )
    assert [line for line in folder.faults().splitlines() if not line.startswith(" ")] == [
        "group.yaml:4:27: must be a mapping such as `{allow_author_approval: false}`, not `false`",
        "other.yaml:5:3: unknown section `milestonez`; did you mean `milestones`?",
        "project.yaml:4:83: must be true or false, not `1`",
    ]


def test_a_lock_on_a_section_of_a_wrong_shape_hides_no_other_error(folder: Folder) -> None:
    folder.write(
        base_yaml="apiVersion: reconciler/v1\nkind: Profile\nmetadata: {name: base, locks: {milestones: all}}\n"
        "spec: {milestones: false}",
        project_yaml="apiVersion: reconciler/v1\nkind: Project\nmetadata: {path: acme/api, profiles: [base]}\n"
        "spec: {milestones: {a: {}}}",
        other_yaml=OTHER.decode(),
    )
    assert [line for line in folder.faults().splitlines() if not line.startswith(" ")] == [
        "base.yaml:4:20: must be a mapping, not `false`",
        "other.yaml:5:3: unknown section `milestonez`; did you mean `milestones`?",
    ]


def _right(name: str) -> dict[str, Any]:
    """Return by kind of document the section of the kind's example."""
    documents = YAML(typ="safe").load_all((EXAMPLES / f"{name}.yaml").read_text())
    return {each["kind"]: each["spec"][name] for each in documents if name in each.get("spec", {})}


def _world(name: str) -> list[dict[str, Any]]:
    """Return documents of all kinds, above and below each other, that hold a section wherever it may be, and lock it."""
    right = _right(name)
    project = right.get("Project", next(iter(right.values())))
    metadata: dict[str, dict[str, Any]] = {
        "Instance": {},
        "User": {},
        "Group": {"path": "acme"},
        "Project": {"path": "acme/payments/api"},
    }
    exception = {"section": name, "until": "2999-01-01", "reason": "A test"}
    locks = {"locks": {name: "all"}}
    documents = []
    for kind, section in right.items():
        own = {"profiles": ["low", "high"], "exceptions": [exception]} | metadata[kind]
        documents.append({"kind": kind, "metadata": own, "spec": {name: section}})
    for profile, held in (("low", locks), ("high", {})):
        documents.append({"kind": "Profile", "metadata": {"name": profile, **held}, "spec": {name: project}})
    for number in range(2) if "Project" in right else ():
        select = {"projects": ["acme/payments/api", "acme/payments/web"]}
        held = locks if number else {}
        documents.append(
            {
                "kind": "ProjectSet",
                "metadata": {"name": f"s{number}", **held},
                "select": select,
                "spec": {name: project},
            }
        )
    return [{"apiVersion": "reconciler/v1", **each} for each in documents]


def _written(document: Any) -> bytes:
    return json.dumps(document, default=str).encode()


def _altered(value: Any, shapes: tuple[Any, ...] = SHAPES, depth: int = 2) -> Iterator[Any]:
    """Yield a section in each shape, with each of its fields, or those of its first item, in one shape of each sort."""
    yield from shapes
    for key in value if isinstance(value, dict) and depth else ():
        yield from ({**value, key: other} for other in _altered(value[key], WITHIN, depth - 1))
        if isinstance(value[key], dict):
            break


@pytest.mark.untraced
@pytest.mark.parametrize("name", list(KINDS))
def test_no_shape_of_a_section_hides_the_error_of_another_file(name: str) -> None:
    world = _world(name)
    kinds = [document["kind"] for document in world]
    for number, document in enumerate(world):
        depth = 2 if document["kind"] not in kinds[:number] else 0  # the second of a kind differs in its locks alone
        for section in _altered(document["spec"][name], depth=depth):
            documents = [*world[:number], {**document, "spec": {name: section}}, *world[number + 1 :]]
            contents = {f"{place}.yaml": _written(each) for place, each in enumerate(documents)}
            with pytest.raises(ManifestErrors) as caught:
                read_contents({**contents, "other.yaml": OTHER}, KINDS)
            assert "other.yaml:5:3: unknown section `milestonez`; did you mean" in str(caught.value), section
