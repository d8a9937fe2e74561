"""Exports over manifests that people wrote change what differs, and nothing else."""

from pathlib import Path
from typing import Any

import pytest

from tests.cli_runner import CliRunner
from tests.states import a_small_service

HEAD = "apiVersion: reconciler/v1\nkind: Project\nmetadata: {path: acme/api}\nspec:\n"
PROFILE = "apiVersion: reconciler/v1\nkind: Profile\nmetadata: {name: p}\n"
BELOW_PROFILE = HEAD.replace("{path: acme/api}", "{path: acme/api, profiles: [p]}")


def brought_up_to_date(cli_runner: CliRunner, text: str, **live: Any) -> str:
    """Export over a file, check that it plans empty and that a second export changes nothing, and return its text."""
    cli_runner.service(**live)
    file = cli_runner.write("out/x.yaml", "")
    file.write_bytes(text.encode())
    done = cli_runner("export --project acme/api -o out")
    assert (done.code, done.out) == (0, "out/x.yaml\n")
    assert done.err.splitlines()[-1] == "1 target exported; 1 file written."
    assert cli_runner("drift out").code == 0
    assert cli_runner("export --project acme/api -o out").out == ""
    return file.read_bytes().decode()


@pytest.mark.untraced
def test_comments_stay_where_they_are_when_what_is_around_them_comes_and_goes(cli_runner: CliRunner) -> None:
    before = f"""{HEAD}\
  milestones:
    # the next one
    soon: {{due_date: 2026-01-01}}   # when?
    # before gone
    gone:
      due_date: 2026-05-05   # beside what goes
      # after the field of gone
    # between

    kept:
      description: |
        old text
        of two lines
      # about the state
      state: closed
    # at the end of milestones
  # at the end of the spec
"""
    live = [{"title": "soon", "due_date": "2026-12-31"}, {"title": "new", "description": "a\nb"}, {"title": "kept"}]
    assert brought_up_to_date(cli_runner, before, milestones=live) == (
        f"""{HEAD}\
  milestones:
    # the next one
    soon: {{due_date: 2026-12-31}}   # when?
    # before gone
      # after the field of gone
    # between

    kept:
      description: null
      # about the state
      state: active
    new:
      description: |-
        a
        b
      start_date: null
      due_date: null
      state: active
    # at the end of milestones
  # at the end of the spec
"""
    )


def test_what_stands_for_two_values_is_changed_where_it_differs_and_nowhere_else(cli_runner: CliRunner) -> None:
    before = f"{HEAD}  milestones:\n    a: &m {{due_date: 2026-01-01}}\n    b: *m\n"
    live = [{"title": "a", "due_date": "2026-12-31"}, {"title": "b", "due_date": "2026-01-01"}]
    assert brought_up_to_date(cli_runner, before, milestones=live) == (
        f"{HEAD}  milestones:\n    a:\n      due_date: 2026-12-31\n    b: {{due_date: 2026-01-01}}\n"
    )


@pytest.mark.untraced
def test_what_must_not_exist_and_what_is_pruned_stays_so(cli_runner: CliRunner) -> None:
    before = f"""{HEAD}\
  milestones:
    a: {{due_date: "2026-12-31", state: closed}}
    b: null
    c:
    d: null   # is back
  trigger_tokens:
    x: {{}}
  prune: [trigger_tokens]
"""
    live = [{"title": "a", "due_date": "2026-12-31"}, {"title": "d"}]
    assert brought_up_to_date(cli_runner, before, milestones=live) == (
        f"""{HEAD}\
  milestones:
    a: {{due_date: "2026-12-31", state: active}}
    b: null
    c:
    d:   # is back
      description: null
      start_date: null
      due_date: null
      state: active
  trigger_tokens: {{}}
  prune: [trigger_tokens]
"""
    )


@pytest.mark.untraced
def test_lists_lose_what_is_gone_and_get_what_is_new_at_their_end(cli_runner: CliRunner) -> None:
    before = f"""{HEAD}\
  job_token_scope:
    enabled: true
    projects:
      # first
      - acme/web
      # second
      - ACME/lib   # library
      - 555
    # that was all
    groups: [acme, acme/tools]
"""
    target = {"inbound_enabled": False, "project_allowlist": [101, 103], "group_allowlist": [11]}
    assert brought_up_to_date(cli_runner, before, job_token_scope=target) == (
        f"""{HEAD}\
  job_token_scope:
    enabled: false
    projects:
      # first
      # second
      - ACME/lib   # library
      - acme/tools/cli
    # that was all
    groups: [acme/tools]
"""
    )


@pytest.mark.untraced
def test_all_of_a_list_or_of_a_section_can_be_others(cli_runner: CliRunner) -> None:
    before = f"""{HEAD}\
  milestones:
    old: {{}}   # no more
    # at the end
  job_token_scope:
    groups:
      - acme   # no more
      # at the end
"""
    live = {"job_token_scope": {"group_allowlist": [11]}, "milestones": [{"title": "new"}]}
    assert brought_up_to_date(cli_runner, before, **live) == (
        f"""{HEAD}\
  milestones:
    new:
      description: null
      start_date: null
      due_date: null
      state: active
    # at the end
  job_token_scope:
    groups:
      - acme/tools
      # at the end
"""
    )


@pytest.mark.untraced
def test_a_list_that_was_empty_and_one_that_becomes_so(cli_runner: CliRunner) -> None:
    before = f"{HEAD}  job_token_scope:\n    projects: []   # none\n    groups:\n      - acme   # all\n"
    assert brought_up_to_date(cli_runner, before, job_token_scope={"project_allowlist": [101]}) == (
        f"{HEAD}  job_token_scope:\n    projects:   # none\n      - acme/lib\n    groups: []\n"
    )


@pytest.mark.untraced
def test_a_rename_that_was_not_carried_out_is_taken_back(cli_runner: CliRunner) -> None:
    before = f"{HEAD}  milestones:\n    # mine\n    new: {{renamed_from: old}} # first\n    other: {{}}\n"
    assert brought_up_to_date(cli_runner, before, milestones=[{"title": "old"}, {"title": "other"}]) == (
        f"{HEAD}  milestones:\n    # mine\n    old: {{}} # first\n    other: {{}}\n"
    )


@pytest.mark.untraced
def test_a_rename_that_was_carried_out_may_stay_until_its_old_name_is_taken_again(cli_runner: CliRunner) -> None:
    before = f"{HEAD}  milestones:\n    new: {{renamed_from: old, due_date: 2026-01-01}}\n"
    assert brought_up_to_date(cli_runner, before, milestones=[{"title": "new"}]) == (
        f"{HEAD}  milestones:\n    new: {{renamed_from: old, due_date: null}}\n"
    )
    both = brought_up_to_date(cli_runner, before, milestones=[{"title": "new"}, {"title": "old"}])
    assert both.startswith(f"{HEAD}  milestones:\n    new: {{due_date: null}}\n    old:\n")


@pytest.mark.untraced
def test_the_first_of_several_goes_and_its_comment_stays_before_the_next(cli_runner: CliRunner) -> None:
    before = f"{HEAD}  milestones:\n    # on a\n    a: {{}}\n    # on b\n    b: {{}}\n"
    assert brought_up_to_date(cli_runner, before, milestones=[{"title": "b"}]) == (
        f"{HEAD}  milestones:\n    # on a\n    # on b\n    b: {{}}\n"
    )


@pytest.mark.untraced
def test_events_are_no_longer_declared_where_the_level_is_not_custom(cli_runner: CliRunner) -> None:
    before = f"""{HEAD}\
  notification_settings:
    level: custom
    events: {{new_issue: true, failed_pipeline: false}}
"""
    assert brought_up_to_date(cli_runner, before) == f"{HEAD}  notification_settings:\n    level: global\n"


@pytest.mark.untraced
def test_one_event_changes_and_the_others_stay(cli_runner: CliRunner) -> None:
    before = (
        f"{HEAD}  notification_settings:\n    level: custom\n    events: {{new_issue: true, failed_pipeline: false}}\n"
    )
    live = {"ada": {"level": "custom", "events": {"new_issue": True, "failed_pipeline": True}}}
    assert brought_up_to_date(cli_runner, before, notification_settings=live) == (
        f"{HEAD}  notification_settings:\n    level: custom\n    events: {{new_issue: true, failed_pipeline: true}}\n"
    )


@pytest.mark.untraced
def test_lines_end_as_they_did(cli_runner: CliRunner) -> None:
    before = f"{HEAD}  milestones: {{}}\n".replace("\n", "\r\n")
    after = brought_up_to_date(cli_runner, before, milestones=[{"title": "b"}])
    assert after.count("\r\n") == after.count("\n") == 10


@pytest.mark.untraced
def test_other_documents_of_the_file_and_its_first_marker_stay(cli_runner: CliRunner) -> None:
    before = f"---\n# top\n{HEAD}  milestones: {{b: {{state: closed}}}}\n---\n{PROFILE}spec: {{}}   # nothing yet\n"
    assert brought_up_to_date(cli_runner, before, milestones=[{"title": "b"}]) == before.replace("closed", "active")


@pytest.mark.untraced
def test_what_a_profile_says_is_said_otherwise_only_where_it_must_be(cli_runner: CliRunner) -> None:
    profile = f"""{PROFILE}\
spec:
  milestones: {{a: {{}}, b: {{due_date: 2026-01-01}}, c: {{due_date: 2026-01-01}}}}
  approval_settings: {{allow_author_approval: false, retain_approvals_on_push: true}}
---
"""
    milestones = [{"title": "b"}, {"title": "c", "due_date": "2026-01-01"}, {"title": "late"}]
    approvals = {"allow_author_approval": True, "retain_approvals_on_push": True}
    after = brought_up_to_date(
        cli_runner,
        f"{profile}{BELOW_PROFILE}  milestones: {{}}\n",
        milestones=milestones,
        merge_request_approval_settings=approvals,
    )
    assert after == (
        f"""{profile}{BELOW_PROFILE}\
  milestones:
    a: null
    b:
      due_date: null
    late:
      description: null
      start_date: null
      due_date: null
      state: active
  approval_settings:
    allow_author_approval: true
"""
    )


def test_a_document_without_a_spec_gets_none_unless_it_needs_one(cli_runner: CliRunner) -> None:
    bare = "apiVersion: reconciler/v1\nkind: Project\nmetadata: {path: acme/api}\n"
    cli_runner.service(milestones=[{"title": "b"}])
    file = cli_runner.write("out/x.yaml", bare)
    assert cli_runner("export --project acme/api -o out").out == ""
    assert file.read_text() == bare
    assert cli_runner("export --project acme/api -o out --section milestones").out == "out/x.yaml\n"
    assert file.read_text().startswith(f"{bare}spec:\n  milestones:\n    b:\n")


def test_a_document_that_knows_its_project_by_number_is_found(cli_runner: CliRunner) -> None:
    cli_runner.service(milestones=[{"title": "b"}])
    text = "apiVersion: reconciler/v1\nkind: Project\nmetadata: {id: 100}\nspec: {milestones: {b: {state: closed}}}\n"
    file = cli_runner.write("out/x.yaml", text)
    assert cli_runner("export --project acme/api -o out").out == "out/x.yaml\n"
    assert file.read_text() == text.replace("closed", "active")


def test_what_cannot_be_updated_in_place_is_refused_and_nothing_is_written(cli_runner: CliRunner) -> None:
    cli_runner.service(milestones=[{"title": "b"}, {"title": "c"}])
    written = "    ? b\n    # see: above\n    : null\n    c: {}\n"
    file = cli_runner.write("out/x.yaml", f"{HEAD}  milestones:\n{written}")
    done = cli_runner("export --project acme/api --user -o out")
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        "reconciler: out/x.yaml: cannot update in place without touching unrelated lines; nothing was written: "
        "export into another folder and compare the two\n"
    )
    assert file.read_text() == f"{HEAD}  milestones:\n{written}"
    assert sorted(Path("out").iterdir()) == [file.relative_to(cli_runner.folder)]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("bad.yaml", b"kind: Project\n", "out/bad.yaml:1:1: the key `apiVersion` is missing"),
        ("bad.yaml", b"\xff\xfe\x00", "out/bad.yaml"),
    ],
)
def test_a_folder_that_is_not_in_order_is_not_touched(
    cli_runner: CliRunner, name: str, content: bytes, said: str
) -> None:
    cli_runner.write(f"out/{name}", "").write_bytes(content)
    done = cli_runner("export --project acme/api -o out")
    assert (done.code, done.out) == (1, "")
    assert said in done.err
    assert [path.name for path in Path("out").iterdir()] == [name]


def test_a_template_is_not_looked_into_and_said_to_be_so(cli_runner: CliRunner) -> None:
    cli_runner.write("out/more.yaml.j2", "{{ nothing }}")
    done = cli_runner("export --project acme/api -o out")
    assert (done.code, done.out) == (0, "out/acme/api.yaml\n")
    assert done.err == (
        "out/more.yaml.j2 is a template and was not read: settings that it declares may now be declared twice\n"
        "1 target exported; 1 file written.\n"
    )


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            " [acme/gone,   # first\n      acme/web,  # second\n      acme/none]  # all",
            " [acme/web, acme/tools/cli]  # all",
        ),
        (" [acme/web, acme/gone, acme/none,]", " [acme/web, acme/tools/cli,]"),
        (" [acme/gone,\n      acme/none]", " [acme/tools/cli, acme/web]"),
        (" []", "\n      - acme/tools/cli\n      - acme/web"),
        ("\n    - acme/web\n\n    - acme/gone", "\n    - acme/web\n\n    - acme/tools/cli"),
    ],
    ids=["first and last", "several", "all", "none", "without an indent"],
)
def test_a_list_of_any_layout_loses_and_gets_entries(cli_runner: CliRunner, before: str, after: str) -> None:
    start = f"{HEAD}  job_token_scope:\n    projects:"
    target = {"project_allowlist": [102, 103]}
    assert brought_up_to_date(cli_runner, f"{start}{before}\n", job_token_scope=target) == f"{start}{after}\n"


@pytest.mark.untraced
def test_what_an_anchor_that_goes_stood_for_is_written_wherever_it_was_meant(cli_runner: CliRunner) -> None:
    before = f"{HEAD}  milestones:\n    a: &m\n      due_date: &d 2026-01-01\n    b: *m\n    c: {{due_date: *d}}"
    live = [{"title": title, "due_date": "2026-01-01"} for title in "bc"]
    assert brought_up_to_date(cli_runner, before, milestones=live) == (
        f"{HEAD}  milestones:\n    b: {{due_date: 2026-01-01}}\n    c: {{due_date: 2026-01-01}}"
    )
    before = f"{HEAD}  milestones:\n    a: &m   # shared\n      due_date: 2026-01-01\n    b: *m\n"
    live = [{"title": "a", "due_date": "2026-12-31"}, {"title": "b", "due_date": "2026-01-01"}]
    assert brought_up_to_date(cli_runner, before, milestones=live) == (
        f"{HEAD}  milestones:\n    a:\n      due_date: 2026-12-31\n    b: {{due_date: 2026-01-01}}\n"
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("    b: {state: closed}\n...\n", "    b: {state: active}\n...\n"),
        ("    ? b\n    : state: closed\n", "    ? b\n    : state: active\n"),
        (
            "    {c: null, b}\n",
            "    {c: null, b: {description: null, start_date: null, due_date: null, state: active}}\n",
        ),
        ("    b:\n      state:\tclosed\n", "    b:\n      state:\tactive\n"),
        ("    ? b\n    # between\n    : state: closed\n", "    ? b\n    # between\n    : state: active\n"),
        (
            '    b: {state: closed, description: "a\\\n      b"}\n',
            "    b: {state: active, description: null}\n",
        ),
        (
            "    b:\n      description: |\n        # text\n\n      # comment\n      state: closed\n",
            "    b:\n      description: null\n\n      # comment\n      state: active\n",
        ),
        (
            "    b:\n      state: closed\n    gone:\n      description: |\n        text\n    # at the end\n",
            "    b:\n      state: active\n    # at the end\n",
        ),
        (
            "    gone:\n      description: |\n        text\n    # between\n    b: {state: closed}\n",
            "    # between\n    b: {state: active}\n",
        ),
    ],
)
def test_however_it_is_written_it_is_updated(cli_runner: CliRunner, before: str, after: str) -> None:
    start = f"{HEAD}  milestones:\n"
    assert brought_up_to_date(cli_runner, start + before, milestones=[{"title": "b"}]) == start + after


def test_what_a_profile_says_and_no_document_can_take_back_is_told(cli_runner: CliRunner) -> None:
    state = a_small_service("deployed")
    state["projects"][0] |= {
        "notification_settings": {"ada": {"level": "custom", "events": {"new_issue": True}}},
        "milestones": [{"title": "a", "start_date": "2026-05-01", "due_date": "2026-01-01"}],
        "job_token_scope": {"inbound_enabled": True, "project_allowlist": [101]},
        "trigger_tokens": [{"description": "t", "owner": "ada"}, {"description": "t", "owner": "ada"}],
    }
    cli_runner.sandbox.replace_state(state)
    profile = """\
spec:
  notification_settings: {level: custom, events: {new_epic: true, new_issue: true}}
  milestones: {a: {due_date: 2026-12-31}}
  job_token_scope: {projects: [acme/web], groups: [acme/none, 11]}
  trigger_tokens: {t: null}
---
"""
    cli_runner.write("out/x.yaml", f"{PROFILE}{profile}{BELOW_PROFILE}  milestones: {{}}\n")
    done = cli_runner("export --project acme/api -o out")
    assert (done.code, done.out) == (0, "out/x.yaml\n")
    assert done.err == (
        """\
due_date of milestone "a" of project acme/api is left out: due_date must be after start_date, which is 2026-05-01
trigger token "t" of project acme/api is left out: 2 objects have this name (IDs 1, 2); expected one; rename or delete the others
project acme/api: a plan would still have a problem with notification settings: this service has no such event here
project acme/api: a plan would still create allowlisted group 11
project acme/api: a plan would still update milestone "a" (due_date)
project acme/api: a plan would still delete trigger token "t"
project acme/api: a plan would still delete trigger token "t"
project acme/api: a plan would still look up group acme/none
project acme/api: a plan would still look up project acme/web
1 target exported; 1 file written.
"""
    )


@pytest.mark.untraced
def test_what_a_lock_holds_stays_and_is_told_and_the_rest_is_written(cli_runner: CliRunner) -> None:
    cli_runner.service(milestones=[{"title": "b"}, {"title": "c", "state": "closed"}])
    profile = f"{PROFILE}spec:\n  milestones: {{b: {{due_date: 2026-01-01}}}}\n---\n"
    profile = profile.replace("{name: p}", "{name: p, locks: {milestones: [b]}}")
    before = f"{profile}{BELOW_PROFILE}  milestones: {{c: {{state: active}}}}\n"
    file = cli_runner.write("out/x.yaml", before)
    done = cli_runner("export --project acme/api -o out")
    assert (done.code, done.out) == (0, "out/x.yaml\n")
    assert done.err == (
        'project acme/api: a plan would still update milestone "b" (due_date)\n1 target exported; 1 file written.\n'
    )
    assert file.read_text() == before.replace("active", "closed")


@pytest.mark.untraced
def test_a_deviation_that_an_exception_accepts_for_a_while_is_not_declared(cli_runner: CliRunner) -> None:
    exception = "{section: milestones, item: b, fields: [due_date], until: 2099-01-01, reason: late}"
    before = f"""\
{PROFILE}spec:
  milestones: {{b: {{due_date: 2026-01-01, description: x}}}}
---
{BELOW_PROFILE.replace("[p]", f"[p], exceptions: [{exception}]")}  milestones: {{}}
"""
    assert brought_up_to_date(cli_runner, before, milestones=[{"title": "b"}]) == before.replace(
        "  milestones: {}\n", "  milestones:\n    b:\n      description: null\n"
    )


@pytest.mark.untraced
def test_lines_that_do_not_change_stay_as_they_were_written(cli_runner: CliRunner) -> None:
    before = """\
apiVersion: reconciler/v1
kind: Project
metadata: {path:   acme/api}
spec:
    milestones:
        # on a
        a:   {state: closed}
        b:
            due_date:   2026-01-01   # b's
    job_token_scope:
        projects:
        - acme/lib
        - acme/none
"""
    live = {"milestones": [{"title": "a"}, {"title": "b", "due_date": "2026-01-01"}, {"title": "late"}]}
    target = {"project_allowlist": [101, 102]}
    assert brought_up_to_date(cli_runner, before, job_token_scope=target, **live) == (
        """\
apiVersion: reconciler/v1
kind: Project
metadata: {path:   acme/api}
spec:
    milestones:
        # on a
        a:   {state: active}
        b:
            due_date:   2026-01-01   # b's
        late:
            description: null
            start_date: null
            due_date: null
            state: active
    job_token_scope:
        projects:
        - acme/lib
        - acme/web
"""
    )


@pytest.mark.untraced
def test_a_date_that_contradicts_another_live_one_is_left_out_and_no_longer_declared(cli_runner: CliRunner) -> None:
    before = (
        f'{HEAD}  milestones:\n    a: {{start_date: "2025-01-01", due_date: "2026-01-01"}}\n    b: {{state: closed}}\n'
    )
    live = [{"title": "a", "start_date": "2026-05-01", "due_date": "2026-01-01"}, {"title": "b"}]
    assert brought_up_to_date(cli_runner, before, milestones=live) == (
        f"{HEAD}  milestones:\n    a: {{start_date: 2026-05-01}}\n    b: {{state: active}}\n"
    )
    assert cli_runner("export --project acme/api -o out").err == (
        'due_date of milestone "a" of project acme/api is left out: due_date must be after start_date, which is 2026-05-01\n'
        "1 target exported; 0 files written.\n"
    )
