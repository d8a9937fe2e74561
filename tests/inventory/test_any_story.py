"""Random stories by the command line: what many users, on a graph of commits, can never delete, and what they do delete.

Nothing is deleted by absence unless HEAD descends from a commit whose manifests declared it for that target, with the
same inputs, and neither its name nor its ID is declared now.
"""

import json
import os
import subprocess
from contextlib import chdir
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from reconciler.memory.store import INVENTORY_BRANCH
from tests.cli_runner import CliRunner
from tests.fleet.repository import NOBODY, Repository, repository
from tests.inventory.checkout import Checkout
from tests.inventory.killing import Killed, mortal
from tests.states import a_small_service

pytestmark = pytest.mark.untraced

PROJECTS = {"acme/api": 100, "acme/lib": 101}
TITLES = "abc"
USERS = ("alice", "bob")

Spec = dict[str, str]
"""The declared milestones of a project: the former title of each, if any."""


@dataclass(frozen=True)
class Commit:
    """A commit: what it declares, by project."""

    parents: tuple[int, ...]
    declared: dict[str, Spec]


@dataclass(frozen=True)
class Apply:
    """An apply.

    Attributes:
        user: whose checkout it is.
        head: the commit that is checked out.
        options: of the command.
        kill: the number of the write at which the process is killed; 0 for none.
        refused: whether the service refuses the first deletion.
        dirty: what the files of the checkout declare instead of the commit, if anything.
        meanwhile: the commit that the other user applies between plan and apply, if any.
    """

    user: str
    head: int
    options: str = ""
    kill: int = 0
    refused: bool = False
    dirty: dict[str, Spec] | None = None
    meanwhile: int | None = None


@dataclass(frozen=True)
class Stranger:
    """Somebody creates, renames or deletes a milestone by hand."""

    project: str
    deed: str
    which: int
    title: str


@dataclass(frozen=True)
class Forged:
    """Somebody writes a line about a live milestone into the list, or deletes the list."""

    project: str
    which: int
    at: int | None


def manifest(path: str, spec: Spec) -> str:
    items = {title: {"renamed_from": old} if old else {} for title, old in spec.items()}
    document = {
        "apiVersion": "reconciler/v1",
        "kind": "Project",
        "metadata": {"path": path},
        "spec": {"milestones": items},
    }
    return json.dumps(document) + "\n"


def name_of(path: str) -> str:
    return f"manifests/{path.replace('/', '-')}.yaml"


@dataclass
class World:
    """The repository, its users, the service, and what was applied.

    Attributes:
        known: by project and ID, the last commit whose complete apply declared the milestone.
        left: the projects that some applied manifests did not declare: their objects may have been released.
    """

    cli: CliRunner
    folder: Path
    monkeypatch: pytest.MonkeyPatch
    history: tuple[Commit, ...] = ()
    commits: list[str] = field(default_factory=list)
    known: dict[tuple[str, int], int] = field(default_factory=dict)
    left: set[str] = field(default_factory=set)

    def begin(self, history: tuple[Commit, ...], dialect: str) -> None:
        """Forget everything, and make the commits of a history."""
        self.history, self.known, self.left = history, {}, set()
        self.cli.sandbox.replace_state(a_small_service(dialect))
        origin = Repository(self.folder / "origin.git")
        if origin.git("for-each-ref", f"refs/heads/{INVENTORY_BRANCH}"):
            origin.git("update-ref", "-d", f"refs/heads/{INVENTORY_BRANCH}")
        marks = self.folder / "marks"
        sent = "".join(self._fast_import(number, commit) for number, commit in enumerate(history, 1))
        command = ["git", "fast-import", "--quiet", "--force", f"--export-marks={marks}"]
        subprocess.run(
            command, cwd=self.folder / "alice", env={**os.environ, **NOBODY}, input=sent, text=True, check=True
        )
        by_mark = dict(line[1:].split() for line in marks.read_text().splitlines())
        self.commits = [by_mark[str(number)] for number in range(1, len(history) + 1)]

    def _fast_import(self, number: int, commit: Commit) -> str:
        parents = [
            f"{'merge' if position else 'from'} :{parent + 1}\n" for position, parent in enumerate(commit.parents)
        ]
        files = {"reconciler.yaml": "inventory: {remote: origin}\n", "manifests/none.yaml": "# nothing\n"}
        files |= {name_of(path): manifest(path, spec) for path, spec in commit.declared.items()}
        message = f"commit {number}"
        return (
            f"commit refs/heads/c{number}\nmark :{number}\ncommitter Ada <ada@example.com> 1772366400 +0000\n"
            f"data {len(message)}\n{message}\n{''.join(parents)}deleteall\n"
            + "".join(f"M 100644 inline {name}\ndata {len(text)}\n{text}\n" for name, text in files.items())
        )

    def contained(self, head: int) -> frozenset[int]:
        return frozenset({head}).union(*(self.contained(parent) for parent in self.history[head].parents))

    def live(self) -> dict[tuple[str, int], str]:
        """Return the title of each milestone, by project and ID."""
        projects = {project["path"]: project for project in self.cli.sandbox.state()["projects"]}
        return {(path, item["id"]): item["title"] for path in PROJECTS for item in projects[path].get("milestones", [])}

    def apply(self, step: Apply) -> None:
        """Apply, and check each deletion."""
        folder = Repository(self.folder / step.user)
        folder.git("checkout", "--quiet", "--force", "--detach", self.commits[step.head])
        folder.git("clean", "--quiet", "--force", "-d")
        declared = self.history[step.head].declared if step.dirty is None else step.dirty
        if step.dirty is not None:
            for path in PROJECTS:
                (folder.folder / name_of(path)).unlink(missing_ok=True)
            for path, spec in declared.items():
                (folder.folder / name_of(path)).write_text(manifest(path, spec))
        self.cli.sandbox.set_faults(["status=403,method=DELETE,times=1"] if step.refused else [])
        before = self.live()
        line = f"apply --yes --concurrency 1 --no-verify {step.options}"
        with chdir(folder.folder):
            if "--target" in step.options and "acme/api" not in declared:
                assert self.cli(line).code == 1
                return
            if step.meanwhile is not None:
                plan = self.folder / f"{step.user}.json"
                assert self.cli(f"plan {step.options} --out {plan}").code in (0, 3)
                self.apply(Apply(USERS[step.user == "alice"], step.meanwhile))
                before = self.live()
                line = f"apply --yes --concurrency 1 --plan {plan}"
            with mortal(self.monkeypatch, step.kill):
                try:
                    done = self.cli(line)
                    assert done.code in (0, 3), done
                    complete = True
                except Killed:
                    complete = False
        self.cli.sandbox.set_faults([])
        self.check(step, before, declared)
        if complete:
            self.remember(step, declared)

    def check(self, step: Apply, before: dict[tuple[str, int], str], declared: dict[str, Spec]) -> None:
        """Check that history permits each deletion."""
        after = self.live()
        for (path, number), title in before.items():
            if (path, number) in after:
                continue
            shown = [self.history[commit].declared.get(path, {}) for commit in self.contained(step.head)]
            assert "--set" not in step.options
            assert any(title in spec for spec in shown)
            assert title not in declared[path]
            assert title not in declared[path].values()

    def remember(self, step: Apply, declared: dict[str, Spec]) -> None:
        """Remember which commit declared what is live."""
        if step.dirty is not None or "--set" in step.options:
            return
        self.left |= PROJECTS.keys() - declared.keys()
        live = self.live()
        for (path, number), title in live.items():
            alone = [key for key, other in live.items() if key[0] == path and other == title] == [(path, number)]
            if alone and title in declared.get(path, {}) and step.options in ("", f"--target {path}"):
                self.known[path, number] = step.head

    def last_applied(self) -> set[str]:
        """Return the commit that was applied last, by the list; none if there is none."""
        return {Checkout(self.cli, Repository(self.folder / "alice")).applied()} - {""}

    def by_hand(self, step: Stranger) -> None:
        state = self.cli.sandbox.state()
        milestones = next(project for project in state["projects"] if project["path"] == step.project)
        items = milestones.setdefault("milestones", [])
        match step.deed:
            case "create":
                items.append({"title": step.title})
            case "rename" if items:
                items[step.which % len(items)]["title"] = step.title
                self.known.pop((step.project, items[step.which % len(items)]["id"]), None)
            case "delete" if items:
                del items[step.which % len(items)]
        self.cli.sandbox.replace_state(state)

    def forge(self, step: Forged) -> None:
        live = [(number, title) for (path, number), title in self.live().items() if path == step.project]
        checkout = Checkout(self.cli, Repository(self.folder / "alice"))
        if not checkout.inventory():
            return
        if step.at is None:
            Repository(self.folder / "origin.git").git("update-ref", "-d", f"refs/heads/{INVENTORY_BRANCH}")
        elif live:
            number, title = live[step.which % len(live)]
            commit = self.commits[step.at % len(self.commits)]
            line = {"target": f"project {PROJECTS[step.project]}", "section": "milestones", "name": title, "id": number}

            def change(lines: list[dict[str, Any]]) -> None:
                lines[0]["commits"]["99"] = commit
                lines[:] = [each for each in lines if each.get("id") != number]
                lines.append({**line, "at": 99})

            checkout.forge(change)

    def carry_out(self, step: object) -> None:
        match step:
            case Apply():
                self.apply(step)
            case Stranger():
                self.by_hand(step)
            case Forged():
                self.forge(step)


@st.composite
def specs(draw: st.DrawFn) -> Spec:
    """Return declared milestones, of which one may have a former title."""
    titles = sorted(draw(st.frozensets(st.sampled_from(TITLES))))
    spec = dict.fromkeys(titles, "")
    others = sorted({*TITLES} - {*titles})
    renaming = draw(st.booleans())
    if renaming and titles and others:
        spec[draw(st.sampled_from(titles))] = draw(st.sampled_from(others))
    return spec


declarations = st.dictionaries(st.sampled_from(sorted(PROJECTS)), specs())
both = st.fixed_dictionaries({path: specs() for path in PROJECTS})


@st.composite
def histories(draw: st.DrawFn) -> tuple[Commit, ...]:
    """Return commits with one or two parents each, and so branches, merges, reverts and squashes."""
    commits = [Commit((), draw(both))]
    for number in range(1, draw(st.integers(2, 5))):
        parents = draw(st.frozensets(st.integers(max(0, number - 3), number - 1), min_size=1, max_size=2))
        commits.append(Commit(tuple(sorted(parents)), draw(st.one_of(both, declarations))))
    return tuple(commits)


STORIES = settings(
    deadline=None,
    derandomize=True,
    max_examples=5,
    suppress_health_check=[*HealthCheck],
    phases=[Phase.explicit, Phase.generate],
)
"""The same few stories each time. One takes half a second: a smaller one that fails too would take minutes to find."""

dialects = st.sampled_from(["spec", "deployed"])
heads = st.integers(0, 4)
whole = st.builds(Apply, st.sampled_from(USERS), heads)
alone = st.builds(
    Apply,
    st.sampled_from(USERS),
    heads,
    st.sampled_from(["", "", "", "--target acme/api", "--set x=1", "--since applied"]),
    st.sampled_from([0, 0, 0, 1, 2]),
    st.booleans(),
    st.one_of(st.none(), st.none(), st.none(), both),
)
overtaken = st.builds(lambda step, meanwhile: replace(step, meanwhile=meanwhile), alone, heads)
strangers = st.builds(
    Stranger,
    st.sampled_from(sorted(PROJECTS)),
    st.sampled_from(["create", "rename", "delete"]),
    st.integers(0, 3),
    st.sampled_from("abcd"),
)
forgeries = st.builds(Forged, st.sampled_from(sorted(PROJECTS)), st.integers(0, 3), st.one_of(st.none(), heads))


@pytest.fixture
def world(cli_runner: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A repository with a remote, and the checkouts of two users."""
    alice = repository(tmp_path / "alice")
    alice.git("init", "--quiet", "--bare", "../origin.git")
    alice.git("remote", "add", "origin", (tmp_path / "origin.git").as_uri())
    alice.commit()
    alice.git("worktree", "add", "--quiet", "--detach", "../bob")
    return World(cli_runner, tmp_path, monkeypatch)


def fitting(step: object, size: int) -> object:
    """Return a step about commits that there are."""
    if not isinstance(step, Apply):
        return step
    meanwhile = None if step.meanwhile is None else step.meanwhile % size
    return replace(step, head=step.head % size, meanwhile=meanwhile)


@STORIES
@given(
    dialect=dialects,
    history=histories(),
    steps=st.lists(st.one_of(whole, alone, overtaken, strangers, forgeries), min_size=3, max_size=7),
)
def test_nothing_is_deleted_by_absence_that_history_does_not_prove(
    world: World, dialect: str, history: tuple[Commit, ...], steps: list[object]
) -> None:
    world.begin(history, dialect)
    for step in steps:
        world.carry_out(fitting(step, len(history)))


@STORIES
@given(
    dialect=dialects,
    history=histories(),
    steps=st.lists(st.one_of(whole, alone, strangers), min_size=2, max_size=5),
)
def test_what_was_applied_and_is_declared_no_more_is_gone_after_the_last_whole_apply(
    world: World, dialect: str, history: tuple[Commit, ...], steps: list[object]
) -> None:
    """Gone is what the last complete apply of its manifests, as committed and with their own inputs, declared.

    That apply's commit must be one that HEAD contains: what was applied from another branch since is that branch's. The
    target must have been declared in all that was applied: else its objects were released. And the apply that was the
    last one before must be of a commit that HEAD contains, too: after one of another branch, the first apply here deletes
    nothing, as it may be the older one, and the second one does.
    """
    world.begin(history, dialect)
    for step in steps:
        world.carry_out(fitting(step, len(history)))
    head = len(history) - 1
    contained, declared = world.contained(head), history[head].declared
    if not world.last_applied() <= {world.commits[commit] for commit in contained}:
        world.apply(Apply("alice", head))
    world.apply(Apply("alice", head))
    for key, title in world.live().items():
        path, _ = key
        if key in world.known and world.known[key] in contained and path in declared and path not in world.left:
            former = declared[path].values()  # two live objects of an old and a new name are a problem, and both stay
            assert title in {*declared[path], *former}
