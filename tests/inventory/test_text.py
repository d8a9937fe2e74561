"""The list as text: written sorted, read back, and every malformed line of it."""

from dataclasses import replace
from datetime import date

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconciler.errors import InventoryUnreadable
from reconciler.memory.inventory import (
    DIGEST,
    MAX_ID,
    PATH,
    Inventory,
    ObjectLine,
    TargetLine,
    UnknownLine,
    inventory_text,
    read_inventory,
    target_name,
    target_names,
)
from reconciler.model.targets import Level, Target

SERVICE = "https://gitlab.example.com"
FIRST, SECOND, THIRD = "a" * 40, "b" * 40, "c" * 40
KNOWN = ("milestones", "job_token_scope")

HEADER = f'{{"format": "reconciler.inventory/v1", "service": "{SERVICE}", "commits": {{"3": "{FIRST}", "5": "{SECOND}"}}, "applied": "{SECOND}"}}\n'

TEXT = (
    HEADER
    + """\
{"target": "instance", "path": ""}
{"target": "user", "path": "", "digest": "1:77"}
{"target": "group 7", "path": "acme"}
{"target": "group 7", "section": "milestones", "name": "2026.12", "id": 30, "at": 3}
{"target": "project 7", "path": "acme/payments/api", "digest": "1:9f86d0", "again": "2027-03-02"}
{"target": "project 7", "section": "job_token_scope", "part": "groups", "name": 12, "id": 12, "at": 3}
{"target": "project 7", "section": "job_token_scope", "part": "groups", "name": "acme/other", "id": 9}
{"target": "project 7", "section": "labels", "name": "ärger", "id": 1, "colour": "red", "at": 5}
{"target": "project 7", "section": "milestones", "name": "2026.12", "id": 31, "at": 5}
{"target": "project 7", "section": "milestones", "name": "2026.12", "id": 32, "at": 5}
{"target": "project 10", "path": "acme/web"}
"""
)


def test_a_list_is_read_and_written_as_it_was() -> None:
    inventory, warnings = read_inventory(TEXT, KNOWN)
    assert warnings == ()
    assert inventory_text(inventory) == TEXT
    assert inventory.targets["project 7"] == TargetLine("project 7", "acme/payments/api", "1:9f86d0", date(2027, 3, 2))
    assert inventory.objects["project 7", "milestones", "milestones", 31].at == SECOND
    assert [line.at for line in inventory.unknown] == [SECOND]
    named = target_names(inventory)
    assert named(Target(Level.PROJECT, "Acme/Payments/API"), None) == "project 7"
    assert named(Target(Level.PROJECT, "Acme/Payments/API"), 8) == "project 8"
    assert named(Target(Level.PROJECT, "acme"), None) == ""
    assert [named(Target(Level.USER), None), named(Target(Level.GROUP, 5), None)] == ["user", "group 5"]
    assert inventory.is_about("HTTPS://gitlab.example.com/")
    assert not inventory.is_about("https://gitlab.example.org")


def test_a_commit_keeps_its_number_and_a_new_one_gets_the_next() -> None:
    """So that only lines change whose objects did."""
    inventory, _ = read_inventory(TEXT, KNOWN)
    new = ObjectLine("project 10", "milestones", "milestones", "a", 40, THIRD)
    first = {key: line for key, line in inventory.objects.items() if line.at != FIRST}
    changed = replace(inventory, applied=THIRD, objects={**first, new.key: new})
    header, *lines = inventory_text(changed).splitlines()
    assert (
        header
        == f'{{"format": "reconciler.inventory/v1", "service": "{SERVICE}", "commits": {{"5": "{SECOND}", "6": "{THIRD}"}}, "applied": "{THIRD}"}}'
    )
    assert lines[-1] == '{"target": "project 10", "section": "milestones", "name": "a", "id": 40, "at": 6}'
    assert [line for line in TEXT.splitlines()[1:] if '"at": 3' not in line] == lines[:-1]


@pytest.mark.parametrize(
    "line",
    [
        "no JSON",
        "[" * 100_000,
        "[]",
        "{}",
        '{"target": "project"}',
        '{"target": "project 07", "path": "a"}',
        '{"target": "planet 7", "path": "a"}',
        '{"target": 7, "path": "a"}',
        '{"target": "project 7"}',
        '{"target": "project 7", "path": "a", "digest": 1}',
        '{"target": "project 7", "path": "a", "again": "soon"}',
        '{"target": "project 7", "path": "a", "again": 5}',
        '{"target": "project 7", "section": "milestones", "name": "a"}',
        '{"target": "project 7", "section": "milestones", "name": "a", "id": true}',
        '{"target": "project 7", "section": "milestones", "name": true, "id": 1}',
        '{"target": "project 7", "section": "milestones", "name": null, "id": 1}',
        '{"target": "project 7", "section": 5, "name": "a", "id": 1}',
        '{"target": "project 7", "section": "milestones", "part": 5, "name": "a", "id": 1}',
        '{"target": "project 7", "section": "milestones", "name": "a", "id": 1, "at": 4}',
        '{"target": "project 7", "section": "milestones", "name": "a", "id": 1, "at": "3"}',
        f'{{"target": "project {"7" * 5000}", "path": "a"}}',
        f'{{"target": "project 7", "section": "milestones", "name": "a", "id": {"7" * 5000}}}',
        '{"target": "project 7", "section": "milestones", "name": "a", "id": 9223372036854775808}',
        '{"target": "project 7", "section": "milestones", "name": "a", "id": 0}',
        f'{{"target": "project 7", "section": "milestones", "name": "{"a" * 2001}", "id": 1}}',
        f'{{"target": "project 7", "section": "hooks", "url": "{"a" * 20_000}"}}',
        f'{{"target": "project 7", "section": "hooks", "url": {"[" * 50}{"]" * 50}}}',
        '{"target": "project 7", "section": "../hooks", "url": "a"}',
        '{"target": "project 7", "path": "a\\u001b]0;x"}',
        '{"target": "project 7", "path": "a", "digest": "javascript:x"}',
    ],
    ids=lambda line: line[:90],
)
def test_a_malformed_line_is_left_out_with_a_warning(line: str) -> None:
    inventory, warnings = read_inventory(f"{TEXT}{line}\n", KNOWN)
    assert warnings == (f"line {len(TEXT.splitlines()) + 1} of the inventory is malformed and is ignored",)
    assert inventory_text(inventory) == TEXT


def test_many_malformed_lines_are_one_warning() -> None:
    _, warnings = read_inventory(TEXT + "x\n" * 1200, KNOWN)
    line = len(TEXT.splitlines()) + 1
    assert warnings == (f"1,200 lines of the inventory are malformed and are ignored; the first is line {line}",)


@pytest.mark.parametrize(
    "header",
    [
        "",
        "\n",
        "[]",
        '{"format": "reconciler.inventory/v1"}',
        '{"format": "reconciler.inventory/v1", "service": "x", "commits": {"0": "HEAD"}}',
        '{"format": "reconciler.inventory/v1", "service": "x", "commits": {"0": 7}}',
        '{"format": "reconciler.inventory/v1", "service": "x", "commits": {}, "applied": "--all"}',
        '{"format": "reconciler.inventory/v1", "service": "http://[", "commits": {}}',
        '{"format": "reconciler.inventory/v1", "service": "ssh://gitlab.example.com", "commits": {}}',
        '{"format": "reconciler.inventory/v1\\n2", "service": "https://gitlab.example.com", "commits": {}}',
    ],
)
def test_a_list_with_a_malformed_header_cannot_be_read(header: str) -> None:
    with pytest.raises(InventoryUnreadable) as raised:
        read_inventory(header, KNOWN)
    assert str(raised.value) == (
        "the inventory cannot be read: its first line is malformed; restore inventory.jsonl from the branch's history, "
        "or delete the branch"
    )


def test_a_list_of_a_later_format_says_so() -> None:
    with pytest.raises(InventoryUnreadable) as raised:
        read_inventory('{"format": "reconciler.inventory/v2"}', KNOWN)
    assert str(raised.value) == (
        "the inventory cannot be read: its format is 'reconciler.inventory/v2', and this version reads "
        "reconciler.inventory/v1; use a newer version of reconciler"
    )


def test_targets_are_named_by_level_and_id() -> None:
    assert target_name(Level.PROJECT, 7) == "project 7"
    assert target_name(Level.INSTANCE, None) == "instance"


commits = st.sampled_from(["", FIRST, SECOND, THIRD])
names = st.sampled_from(["instance", "user", "group 1", "project 1", "project 10", "project 9"])
texts = st.text(st.characters(codec="utf-8"), max_size=5)
paths = st.from_regex(PATH, fullmatch=True)
digests = st.from_regex(DIGEST, fullmatch=True)
ids = st.integers(1, MAX_ID)
object_lines = st.builds(
    ObjectLine,
    names,
    st.just("milestones"),
    st.sampled_from(["milestones", "x"]),
    texts | ids,
    ids,
    commits,
)
inventories = st.builds(
    lambda applied, targets, objects: Inventory(
        SERVICE, applied, {line.target: line for line in targets}, {line.key: line for line in objects}
    ),
    commits,
    st.lists(st.builds(TargetLine, names, paths, digests, st.none() | st.dates())),
    st.lists(object_lines),
)


@pytest.mark.untraced
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(inventories)
def test_any_list_comes_back_as_it_was_written(inventory: Inventory) -> None:
    text = inventory_text(inventory)
    again, warnings = read_inventory(text, KNOWN)
    assert (again, warnings) == (inventory, ())
    assert inventory_text(again) == text


@pytest.mark.untraced
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text() | st.lists(texts).map(lambda lines: HEADER + "\n".join(lines)))
def test_any_text_is_a_list_or_cannot_be_read(text: str) -> None:
    try:
        inventory, _ = read_inventory(text, KNOWN)
    except InventoryUnreadable:
        return
    assert read_inventory(inventory_text(inventory), KNOWN)[0] == inventory


def test_an_unknown_section_is_kept_even_without_a_name() -> None:
    line = '{"target": "project 7", "section": "hooks", "url": "https://example.com"}\n'
    inventory, _ = read_inventory(HEADER.replace(FIRST, THIRD) + line, KNOWN)
    assert [type(each) for each in inventory.unknown] == [UnknownLine]
    assert inventory_text(inventory).splitlines()[1:] == [line.strip()]


def test_a_name_that_is_no_valid_text_is_escaped() -> None:
    line = ObjectLine("project 7", "milestones", "milestones", "half \ud83d ä", 1)
    text = inventory_text(Inventory(SERVICE, objects={line.key: line}))
    assert text.encode().decode().endswith('"name": "half \\ud83d \\u00e4", "id": 1}\n')
    assert read_inventory(text, KNOWN)[0].objects == {line.key: line}
