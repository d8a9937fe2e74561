"""Manifests of a git revision: which files they are, and the errors if they cannot be read."""

import os
import subprocess
from pathlib import Path

import pytest

from reconciler.errors import ConfigurationError, UsageError
from reconciler.memory.snapshot import equals_object, snapshot
from tests.cli_runner import CliRunner
from tests.fleet.repository import NOBODY, Repository, repository


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """A repository with a folder of manifests; the working directory is one of its folders."""
    made = repository(tmp_path / "r")
    for name in (
        "desk/manifests/a.yaml",
        "desk/manifests/deep/b.yml",
        "desk/manifests/deep/c.yaml.j2",
        "desk/manifests/.hidden/d.yaml",
        "desk/manifests/notes.txt",
        "desk/reconciler.yaml",
        "shared/p.yaml",
        "shared/q.yaml",
    ):
        (made.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (made.folder / name).write_text(f"{name} of then\n")
    monkeypatch.chdir(made.folder / "desk")
    return made


@pytest.fixture(autouse=True)
def _git_of_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in NOBODY.items():
        monkeypatch.setenv(name, value)


LACKING = (
    "some files of that revision are missing in this clone, and nothing is fetched: use a clone made without --filter; if it "
    "was, `git fsck` lists the damage"
)


def read(*paths: str, revision: str = "HEAD") -> dict[str, str]:
    then = snapshot(revision, Path(paths[0]))
    found = then.contents(then.manifests([Path(path) for path in paths]))
    return {name: content.decode() for name, content in found.items()}


def refusal(revision: str, *paths: str) -> str:
    with pytest.raises((ConfigurationError, UsageError)) as caught:
        read(*paths or (".",), revision=revision)
    return str(caught.value)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder outside any repository."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_files_are_those_that_a_search_would_have_found_then(checkout: Repository) -> None:
    checkout.commit()
    checkout.git("rm", "--quiet", "-r", "desk/manifests/deep")
    (checkout.folder / "desk/manifests/a.yaml").write_text("now")
    assert read("manifests") == {
        "HEAD:manifests/a.yaml": "desk/manifests/a.yaml of then\n",
        "HEAD:manifests/deep/b.yml": "desk/manifests/deep/b.yml of then\n",
        "HEAD:manifests/deep/c.yaml.j2": "desk/manifests/deep/c.yaml.j2 of then\n",
    }
    assert list(read(".")) == ["HEAD:manifests/a.yaml", "HEAD:manifests/deep/b.yml", "HEAD:manifests/deep/c.yaml.j2"]
    assert list(read("manifests/notes.txt", "../shared", "manifests/a.yaml", str(checkout.folder))) == [
        "HEAD:manifests/notes.txt",
        "HEAD:../shared/p.yaml",
        "HEAD:../shared/q.yaml",
        "HEAD:manifests/a.yaml",
        f"HEAD:{checkout.folder}/desk/manifests/deep/b.yml",
        f"HEAD:{checkout.folder}/desk/manifests/deep/c.yaml.j2",
    ]
    assert read("manifests/new.yaml") == {}


def test_the_revision_may_be_anything_that_stands_for_a_commit(checkout: Repository) -> None:
    commit = checkout.commit()
    checkout.git("tag", "--annotate", "v1", "--message", "first")
    assert list(read("../shared", revision="v1")) == ["v1:../shared/p.yaml", "v1:../shared/q.yaml"]
    assert list(read("../shared/p.yaml", revision=commit[:10])) == [f"{commit[:10]}:../shared/p.yaml"]


def test_symbolic_links_are_followed_within_the_repository(checkout: Repository) -> None:
    manifests = checkout.folder / "desk/manifests"
    (manifests / "linked").symlink_to("../../shared")
    (manifests / "deep/again").symlink_to("..")
    (manifests / "one.yaml").symlink_to("../../shared/p.yaml")
    (manifests / "whole.yaml").symlink_to(checkout.folder / "shared/q.yaml")
    (manifests / "outside.yaml").symlink_to("/etc/hostname")
    (manifests / "round.yaml").symlink_to("round.yaml")
    (manifests / "notes").symlink_to("notes.txt")
    checkout.commit()
    assert read("manifests") == {
        "HEAD:manifests/a.yaml": "desk/manifests/a.yaml of then\n",
        "HEAD:manifests/deep/b.yml": "desk/manifests/deep/b.yml of then\n",
        "HEAD:manifests/deep/c.yaml.j2": "desk/manifests/deep/c.yaml.j2 of then\n",
        "HEAD:manifests/linked/p.yaml": "shared/p.yaml of then\n",
        "HEAD:manifests/linked/q.yaml": "shared/q.yaml of then\n",
    }


@pytest.mark.parametrize("format_", ["sha1", "sha256"])
def test_what_is_the_same_now_as_then_is_recognised(folder: Path, format_: str) -> None:
    git = Repository(folder)
    git.git("init", "--quiet", "--object-format", format_)
    (folder / "a.yaml").write_text("of then")
    git.commit()
    (then,) = snapshot("HEAD", Path()).manifests([Path("a.yaml")]).values()
    assert equals_object("a.yaml", then)
    (folder / "a.yaml").write_text("of now")
    assert not equals_object("a.yaml", then)
    (folder / "a.yaml").unlink()
    assert not equals_object("a.yaml", then)


def test_submodules_are_other_repositories(checkout: Repository) -> None:
    commit = checkout.commit()
    checkout.git("update-index", "--add", "--cacheinfo", f"160000,{commit},desk/manifests/sub.yaml")
    checkout.git("commit", "--quiet", "--message", "with a submodule")
    assert "HEAD:manifests/sub.yaml" not in read("manifests")


def test_a_file_can_be_read_by_itself(checkout: Repository) -> None:
    (checkout.folder / "values.yaml").symlink_to("shared/p.yaml")
    checkout.commit()
    then = snapshot("HEAD", Path())
    assert then.file(Path("../shared/q.yaml")) == b"shared/q.yaml of then\n"
    assert then.file(Path("../values.yaml")) == b"shared/p.yaml of then\n"
    assert then.file(Path("none.yaml")) is None
    assert then.file(Path("/etc/hostname")) is None


def test_an_empty_repository_and_one_without_files(checkout: Repository) -> None:
    assert refusal("HEAD") == (
        "--since HEAD: there is no such commit in this repository; if it is elsewhere, `git fetch` it first"
    )
    checkout.git("commit", "--quiet", "--allow-empty", "--message", "nothing")
    assert read(".") == {}


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("revision", "said"),
    [
        *(
            (each, f"{each}: there is no such commit in this repository; if it is elsewhere, `git fetch` it first")
            for each in ("nonsense", "HEAD~7", "HEAD:work", "a b", "0" * 39 + "1")
        ),
        ("0" * 40, f"{'0' * 40}: all zeros means there is no previous commit; omit --since"),
        ("--output=./x", "takes a git revision, such as main or HEAD~1; not '--output=./x'"),
        ("", "takes a git revision, such as main or HEAD~1; not ''"),
    ],
)
def test_what_is_no_commit_is_refused(checkout: Repository, revision: str, said: str) -> None:
    checkout.commit()
    assert refusal(revision) == f"--since {said}"


def test_a_path_outside_the_repository_is_refused(checkout: Repository, tmp_path: Path) -> None:
    checkout.commit()
    (tmp_path / "other").mkdir()
    assert refusal("HEAD", ".", "../../other") == (
        f"--since HEAD: ../../other is not in the git repository {checkout.folder}"
    )


def test_where_there_is_no_repository_that_is_said(folder: Path) -> None:
    outside = "is not in a git checkout; run this in one, or omit --since"
    assert refusal("HEAD", "none/at/all") == f"--since HEAD: {folder} {outside}"
    subprocess.run(["git", "init", "--quiet", "--bare", "bare.git"], check=True)
    assert refusal("HEAD", "bare.git") == f"--since HEAD: {folder}/bare.git {outside}"
    (folder / ".git").write_text("gitdir: nowhere")
    assert (
        refusal("HEAD")
        == f"--since HEAD: {folder} cannot be read as a git repository: not a git repository: {folder}/nowhere"
    )


def test_without_git_that_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository(folder)
    monkeypatch.setenv("PATH", str(folder))
    assert refusal("HEAD") == "--since needs git, which is not installed here"


@pytest.mark.untraced
def test_a_shallow_clone_says_how_to_get_more(cli_runner: CliRunner, git: Repository) -> None:
    cli_runner.project("{milestones: {}}")
    first = git.commit()
    git.commit()
    clone = ["git", "clone", "--quiet", "--depth", "1", f"file://{cli_runner.folder}", "clone"]
    subprocess.run(clone, cwd=cli_runner.folder, env={**os.environ, **NOBODY}, check=True)
    os.chdir(cli_runner.folder / "clone")
    for revision in (first, "HEAD~1"):
        done = cli_runner(f"plan --since {revision}")
        assert (done.code, done.out, done.err) == (
            1,
            "",
            f"reconciler: --since {revision}: this clone is shallow and does not contain it: fetch the history "
            "first, with `git fetch --unshallow` or, in a CI job, with GIT_DEPTH: 0\n",
        )
    subprocess.run(["git", "fetch", "--quiet", "--unshallow"], check=True)
    assert cli_runner("plan --since HEAD~1").code == 0


def test_a_damaged_repository_is_no_empty_one(checkout: Repository) -> None:
    commit = checkout.commit()
    then = snapshot("HEAD", Path())
    objects = checkout.folder / ".git/objects"
    for found in objects.rglob("*"):
        if found.is_file() and found.parent.name != commit[:2]:
            found.unlink()
    with pytest.raises(ConfigurationError) as caught:
        then.contents(then.manifests([Path()]))
    assert str(caught.value) == f"--since HEAD: {LACKING}"
    assert refusal("HEAD") == "git ls-tree failed: not a tree object"
