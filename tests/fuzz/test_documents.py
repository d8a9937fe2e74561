"""Mutated plans, reports, journals and token files: refused, or shown and carried out as they say; never a crash.

With the checksum computed anew, a plan that was edited may write only where and what it shows.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.reports import FORMATS
from tests.cli_runner import CliRunner, Ended
from tests.fuzz.mutating import controls, draw, garbled, mutated, parsed, resealed
from tests.fuzz.shown import unexplained
from tests.states import a_small_service

pytestmark = pytest.mark.untraced
"""Others cover the same lines; tracing would take as long as the tests."""

MANIFESTS = """\
apiVersion: reconciler/v1
kind: User
spec:
  notification_settings: {level: mention, notification_email: ops@example.com}
---
apiVersion: reconciler/v1
kind: Group
metadata: {path: acme}
spec:
  notification_settings: {level: watch}
  approval_settings: {allow_author_approval: false, allow_committer_approval: false}
---
apiVersion: reconciler/v1
kind: Project
metadata: {path: acme/api}
spec:
  prune: [job_token_scope]
  notification_settings: {level: custom, events: {new_issue: true}}
  approval_settings: {allow_overrides_to_approver_list_per_merge_request: false, allow_author_approval: false}
  container_repository_protection_rules:
    acme/api/new: {minimum_access_level_for_push: maintainer}
    acme/api/now: {renamed_from: acme/api/former, minimum_access_level_for_push: maintainer}
    acme/api/old:
  job_token_scope: {enabled: true, projects: [acme/lib, acme/web], groups: [acme]}
  milestones:
    new: {state: closed, due_date: 2026-12-31}
    now: {renamed_from: former, description: d}
    old:
  trigger_tokens: {new: {}, newer: {}, now: {renamed_from: former}, old: }
---
apiVersion: reconciler/v1
kind: Project
metadata: {path: acme/lib}
spec:
  milestones: {new: {}}
  trigger_tokens: {t: {}}
"""
SECRETS = ("ada-token", "bob-token", "root-token", "glptt-")
AT_ONCE = "--yes --allow-deletes 99 --tokens-to tokens"
SEED = 20261122


def service() -> dict[str, Any]:
    """Return a state in which everything that the manifests declare is still to be done."""
    state = a_small_service("deployed")
    state["projects"][0] |= {
        "milestones": [{"title": "old"}, {"title": "former"}, {"title": "kept"}],
        "trigger_tokens": [
            {"description": "old", "owner": "ada"},
            {"description": "former", "owner": "ada"},
            {"description": "kept", "owner": "bob"},
        ],
        "container_repository_protection_rules": [
            {"repository_path_pattern": "acme/api/old", "minimum_access_level_for_push": "owner"},
            {"repository_path_pattern": "acme/api/former", "minimum_access_level_for_push": "owner"},
            {"repository_path_pattern": "acme/api/kept", "minimum_access_level_for_push": "owner"},
        ],
        "job_token_scope": {"inbound_enabled": False, "project_allowlist": [103], "group_allowlist": [11]},
    }
    return state


class Scene:
    """A service with everything still to do, and the documents that come of doing it."""

    def __init__(self, cli_runner: CliRunner) -> None:
        self.cli_runner = cli_runner
        self.fresh()
        cli_runner.write("manifests/all.yaml", MANIFESTS)
        assert cli_runner("plan manifests --out plan.json").code == 0
        self.plan = parsed(Path("plan.json").read_text())
        for number in (1, 2):
            assert cli_runner(f"plan manifests --shard {number}/2 --out part{number}.json").code == 0
        cli_runner.sandbox.set_faults(["status=403,match=milestones/2", "status=400,method=PATCH"])
        line = "apply manifests --yes --tokens-to tokens --journal journal --report json=report.json"
        assert cli_runner(line).code == 3
        self.report = parsed(Path("report.json").read_text())
        self.journal = Path("journal").read_text()
        self.tokens = Path("tokens").read_text()

    def fresh(self) -> dict[str, Any]:
        """Begin with a service where all is still to do; return its state."""
        state = service()
        state["projects"][0]["merge_requests"] = [1]
        self.cli_runner.sandbox.replace_state(state)
        return self.cli_runner.sandbox.state()

    def writes(self) -> list[str]:
        """Return the writes since then."""
        return [entry["target"] for entry in self.cli_runner.sandbox.log() if entry["method"] != "GET"]

    def see(self, line: str, *files: str) -> Ended:
        """Run a command; whatever it is given, it must end in one of its ways and show nothing but text."""
        done = self.cli_runner(line)
        shown = done.out + done.err + "".join(Path(file).read_text() for file in files if Path(file).exists())
        assert done.code in (0, 1, 2, 3, 64), line
        assert "internal error" not in done.err, done.err
        assert not controls(shown), line
        assert not [secret for secret in SECRETS if secret in shown], line
        return done


def write(name: str, text: str) -> None:
    """Write a file, mutated bytes and all."""
    Path(name).write_bytes(text.encode("utf-8", "surrogateescape"))


def token_values(state: dict[str, Any]) -> set[str]:
    """Return the values of all trigger tokens."""
    return {each["token"] for project in state["projects"] for each in project["trigger_tokens"]}


def is_json(line: bytes) -> bool:
    """Return whether a line is JSON."""
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


@pytest.fixture
def scene(cli_runner: CliRunner) -> Scene:
    return Scene(cli_runner)


def mutants(document: dict[str, Any], count: int) -> Iterator[str]:
    """Yield mutated texts of a document, most of them with a new checksum."""
    chance = draw(SEED)
    for _ in range(count):
        yield resealed(document, chance) if chance.random() < 0.8 else garbled(json.dumps(document, indent=2), chance)


def test_the_plan_as_it_is_explains_what_it_does(scene: Scene) -> None:
    before = scene.fresh()
    assert scene.see("apply --plan plan.json --yes --tokens-to tokens").code == 0
    after = scene.cli_runner.sandbox.state()
    assert unexplained(before, after, scene.plan) == []
    nothing = {**scene.plan, "targets": [], "items": []}
    assert len(unexplained(before, after, nothing)) == 23


def test_a_mutated_plan_writes_what_it_shows_or_nothing(scene: Scene) -> None:
    chance, applied = draw(SEED), 0
    for text in mutants(scene.plan, 20):
        write("mutant.json", text)
        before = scene.fresh()
        scene.see(f"show mutant.json --format {chance.choice(sorted(FORMATS))}")
        done = scene.see(f"apply --plan mutant.json {AT_ONCE} --report json=done.json", "done.json")
        if scene.writes():
            applied += 1
            assert done.code in (0, 3), text
            assert unexplained(before, scene.cli_runner.sandbox.state(), parsed(text)) == [], text
    assert applied


def test_a_mutated_part_of_a_plan_is_merged_and_writes_what_the_whole_shows(scene: Scene) -> None:
    chance, applied = draw(SEED), 0
    for text in mutants(parsed(Path("part1.json").read_text()), 10):
        write("mutant.json", text)
        Path("whole.json").unlink(missing_ok=True)
        before = scene.fresh()
        scene.see(f"merge mutant.json part2.json --out whole.json --format {chance.choice(sorted(FORMATS))}")
        if Path("whole.json").exists():
            scene.see(f"apply --plan whole.json {AT_ONCE}")
            applied += bool(scene.writes())
            whole = parsed(Path("whole.json").read_text())
            assert unexplained(before, scene.cli_runner.sandbox.state(), whole) == [], text
    assert applied


def test_what_a_mutated_report_lets_retry_is_what_the_manifests_want(scene: Scene) -> None:
    chance, applied = draw(SEED), 0
    for text in mutants(scene.report, 10):
        write("mutant.json", text)
        scene.see(f"show mutant.json --format {chance.choice(sorted(FORMATS))}")
        scene.see(f"merge mutant.json mutant.json --format {chance.choice(sorted(FORMATS))}")
        before = scene.fresh()
        scene.see(f"apply manifests --retry-failed mutant.json {AT_ONCE}")
        applied += bool(scene.writes())
        assert unexplained(before, scene.cli_runner.sandbox.state(), scene.plan) == [], text
    assert applied


def test_after_a_mutated_journal_the_manifests_are_applied_and_nothing_else(scene: Scene) -> None:
    chance, applied = draw(SEED), 0
    lines = scene.journal.splitlines(keepends=True)
    for _ in range(8):
        some = lines[: chance.randrange(1, len(lines))]
        if chance.random() < 0.7:
            place = chance.randrange(len(some))
            some[place] = json.dumps(mutated(parsed(some[place]), chance)) + "\n"
            write("journal", "".join(some))
        else:
            write("journal", garbled("".join(some), chance))
        before = scene.fresh()
        scene.see(f"apply manifests --journal journal {AT_ONCE}")
        applied += bool(scene.writes())
        assert unexplained(before, scene.cli_runner.sandbox.state(), scene.plan) == [], some
    assert applied


def test_tokens_are_kept_whatever_the_file_held_before(scene: Scene) -> None:
    chance = draw(SEED)
    for _ in range(8):
        write("tokens", garbled(scene.tokens, chance))
        held = Path("tokens").read_bytes()
        before = scene.fresh()
        assert scene.see(f"apply manifests {AT_ONCE}").code == 0
        created = token_values(scene.cli_runner.sandbox.state()) - token_values(before)
        kept = Path("tokens").read_bytes()
        assert (len(created), kept.startswith(held)) == (3, True)
        whole = [line for line in kept.split(b"\n") if line.startswith(b'{"target": "project ') and line.endswith(b"}")]
        assert created <= {parsed(line.decode()).get("token") for line in whole if is_json(line)}, kept


def test_any_text_can_be_a_note(scene: Scene) -> None:
    chance = draw(SEED)
    rendered = scene.cli_runner("show plan.json --format markdown").out
    for _ in range(8):
        write("note.md", garbled(rendered, chance))
        scene.fresh()
        scene.see("note --file note.md --project acme/api --merge-request 1 --name plan")
