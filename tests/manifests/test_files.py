"""Which files are read, and what is said of those that cannot be."""

import gc
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from reconciler.manifests import is_manifest, read_contents
from tests.manifests.conftest import KINDS, Folder

USER = "apiVersion: reconciler/v1\nkind: User\n"


def project(path: str) -> str:
    return f"apiVersion: reconciler/v1\nkind: Project\nmetadata: {{path: {path}}}\n"


def test_folders_are_searched_recursively_and_in_order(folder: Folder) -> None:
    names = ["b.yaml", "a.yml", "sub/c.yaml", "sub/deeper/d.yaml.j2", "A.yaml", "x.yaml/inside.yaml"]
    for number, name in enumerate(names):
        folder.put(f"fleet/{name}", project(f"acme/p{number}"))
    for name in ["notes.txt", "e.json", ".hidden.yaml", ".git/f.yaml", "g.yaml~", "h.j2", "i.yml.j2"]:
        folder.put(f"fleet/{name}", "not a manifest: [")
    assert folder.read("fleet").files == (
        "fleet/A.yaml",
        "fleet/a.yml",
        "fleet/b.yaml",
        "fleet/sub/c.yaml",
        "fleet/sub/deeper/d.yaml.j2",
        "fleet/x.yaml/inside.yaml",
    )


def test_a_file_that_is_named_is_read_whatever_it_is_called_and_only_once(folder: Folder) -> None:
    folder.put("fleet/.hidden", project("acme/api"))
    folder.put("fleet/a.yaml", USER)
    Path("fleet/b.yaml").symlink_to("a.yaml")
    read = folder.read("fleet/.hidden", "fleet", "./fleet/a.yaml", str(Path("fleet").resolve()))
    assert read.files == ("fleet/.hidden", "fleet/a.yaml")


def test_paths_stay_as_the_user_named_them(folder: Folder) -> None:
    folder.put("a.yaml", "x")
    message = "a manifest is a mapping with apiVersion, kind, metadata and spec, not a single value\n    x\n    ^"
    assert folder.faults(".") == f"a.yaml:1:1: {message}"
    assert folder.faults("../" + Path.cwd().name) == f"../{Path.cwd().name}/a.yaml:1:1: {message}"
    assert folder.faults(str(Path.cwd())) == f"{Path.cwd()}/a.yaml:1:1: {message}"


def test_the_tool_s_own_configuration_is_no_manifest(folder: Folder) -> None:
    folder.put("reconciler.yaml", "api_url: https://code.example.com/api/v4")
    assert folder.faults(".") == ".: holds no manifests (*.yaml, *.yml, *.yaml.j2)"
    folder.put("fleet/reconciler.yaml", USER)
    assert folder.read(".").files == ("fleet/reconciler.yaml",)
    said = "reconciler.yaml: is the tool's own configuration, not a manifest: leave it out"
    assert folder.faults("reconciler.yaml", "fleet") == said


def test_links_in_circles_are_harmless(folder: Folder) -> None:
    folder.put("fleet/sub/a.yaml", USER)
    Path("fleet/sub/up").symlink_to("..")
    Path("fleet/sub/here").symlink_to(".")
    Path("fleet/other").symlink_to("sub")
    assert folder.read("fleet").files == ("fleet/other/a.yaml",)
    Path("circle.yaml").symlink_to("circle.yaml")
    assert folder.faults("circle.yaml") == "circle.yaml: cannot be read: too many levels of symbolic links"


def test_everything_that_cannot_be_read_is_said_at_once(folder: Folder) -> None:
    folder.put("fleet/binary.yaml", b"\x7fELF\0\0\0")
    folder.put("fleet/comment.yaml", "# nothing but a comment\n---\n")
    folder.put("fleet/empty.yaml", "")
    folder.put("fleet/empty.yaml.j2", "{% if false %}x: 1{% endif %}")
    folder.put("fleet/latin1.yaml", "a: 1\nb: caf\xe9\n".encode("latin-1"))
    folder.put("fleet/utf16.yaml", "a: 1".encode("utf-16"))
    folder.put("fleet/utf16be.yaml", b"\xfe\xff" + "a: 1".encode("utf-16-be"))
    folder.put("fleet/utf8.yaml", b"\xef\xbb\xbf" + USER.encode())
    folder.put("fleet/too-large.yaml", "#" * (5 * 1024 * 1024) + "\n")
    folder.put("fleet/large.yaml", "#" * (5 * 1024 * 1024 - 1) + "\n")
    Path("fleet/gone.yaml").symlink_to("nowhere")
    Path("bare").mkdir()
    os.mkfifo("fleet/pipe.yaml")
    said = folder.faults("fleet", "bare", "missing", "missing.yaml", "nul\0")
    assert said.splitlines() == [
        "bare: holds no manifests (*.yaml, *.yml, *.yaml.j2)",
        "fleet/binary.yaml: is not text: it holds null bytes",
        "fleet/comment.yaml: warning: holds no document",
        "fleet/empty.yaml: warning: holds no document",
        "fleet/gone.yaml: cannot be read: no such file or directory",
        "fleet/large.yaml: warning: holds no document",
        "fleet/latin1.yaml: is not UTF-8 text (line 2): save it as UTF-8",
        "fleet/pipe.yaml: is not a file",
        "fleet/too-large.yaml: is larger than 5 MiB",
        "fleet/utf16.yaml: is UTF-16 text: save it as UTF-8",
        "fleet/utf16be.yaml: is UTF-16 text: save it as UTF-8",
        "missing: cannot be read: no such file or directory; check the path, or begin with reconciler init",
        "missing.yaml: cannot be read: no such file or directory; check the path, or begin with reconciler init",
        "nul\\u0000: cannot be read: embedded null byte",
    ]


def test_errors_come_before_warnings_of_which_three_are_told(folder: Folder) -> None:
    for name in ("a", "b", "c"):
        folder.put(f"fleet/{name}.yaml", "")
    for name in ("x.YAML", "y.YAML", ".z.yaml"):
        folder.put(f"fleet/{name}", USER)
    folder.put("fleet/utf16.yaml", "a: 1".encode("utf-16"))
    told = [
        "fleet/utf16.yaml: is UTF-16 text: save it as UTF-8",
        "fleet/.z.yaml: warning: this manifest is not read, because its name, or that of a folder, begins with a dot: "
        "rename it",
        "fleet/a.yaml: warning: holds no document; the same at 2 other places",
        "fleet/x.YAML: warning: this manifest is not read, because its name does not end in .yaml, .yml or .yaml.j2: "
        "rename it; the same at 1 other place",
    ]
    assert str(folder.errors("fleet")).splitlines() == told
    folder.put("fleet/z.yaml", project("acme/api") + 'spec: {milestones: {"{nme}": {}}}\n')
    assert str(folder.errors("fleet")).splitlines() == [*told, "1 more; reconciler validate shows all warnings"]


def test_a_manifest_that_is_not_read_because_of_its_name_is_warned_of(folder: Folder) -> None:
    for name in ["x.yml.j2", "x.YAML", ".x/api.yaml", ".x/deep/api.yml", ".api.yaml", ".git/config.yaml"]:
        folder.put(f"fleet/{name}", USER)
    folder.put("fleet/.hidden.yaml", "another: file\n")
    os.mkfifo("fleet/pipe.YAML")
    Path("fleet/unreadable.YAML").symlink_to("/proc/self/mem")
    folder.put("fleet/user.yaml", USER)
    hidden = "its name, or that of a folder, begins with a dot"
    ending = "its name does not end in .yaml, .yml or .yaml.j2"
    assert [str(each) for each in folder.read("fleet").warnings] == [
        f"fleet/{name}: warning: this manifest is not read, because {why}: rename it"
        for name, why in {
            ".api.yaml": hidden,
            ".x/api.yaml": hidden,
            ".x/deep/api.yml": hidden,
            "x.YAML": ending,
            "x.yml.j2": ending,
        }.items()
    ]


def test_a_name_cannot_steer_the_terminal(folder: Folder) -> None:
    folder.put("a\x1b[2J.yaml", "")
    assert [str(warning) for warning in folder.read(".").warnings] == ["a\\u001b[2J.yaml: warning: holds no document"]


@pytest.mark.untraced
def test_a_template_that_renders_to_nothing_is_as_it_should_be(folder: Folder) -> None:
    folder.put("a.yaml.j2", "# nothing yet\n{% if wanted %}\n" + USER + "{% endif %}\n")
    assert folder.read(values={"wanted": False}).warnings == ()
    assert [str(target.target) for target in folder.read(values={"wanted": True}).desired.targets] == ["user"]


def test_a_folder_whose_depth_the_system_refuses_is_said_to_be_so(folder: Folder) -> None:
    name = "d" * 250
    home = Path.cwd()
    for _ in range(18):
        Path(name).mkdir()
        os.chdir(name)
    os.chdir(home)
    folder.put("a.yaml", USER)
    assert "cannot be read: file name too long" in folder.faults(".")


@pytest.mark.untraced
def test_a_pipe_that_is_named_is_read() -> None:
    program = "from pathlib import Path; from reconciler.kinds import all_kinds; from reconciler.manifests import *; "
    program += "print(*read_manifests(Inputs([Path('/dev/stdin')], all_kinds())).files)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=USER,
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    assert done.stdout == "/dev/stdin\n"


def test_what_is_hidden_by_an_unreadable_file_is_not_complained_of(folder: Folder) -> None:
    folder.write(
        a_yaml="apiVersion: reconciler/v1\nkind: Profile\nmetadata: {name: base}\nspec: [\n",
        b_yaml="apiVersion: reconciler/v1\nkind: User\nmetadata: {profiles: [base]}\nspec: {prune: [milestones]}\n",
    )
    said = "a.yaml:4:8: a value is missing here, or a bracket is not closed\n    spec: [\n           ^"
    assert folder.faults() == said


@pytest.mark.untraced
def test_as_many_faults_as_a_file_can_hold_are_told_in_a_moment(folder: Folder) -> None:
    folder.put("a.yaml", "{" + ", ".join(f"k{n}: " for n in range(6_000)) + ", kind: User, apiVersion: reconciler/v1}")
    folder.put("b.yaml", "kind: User\napiVersion: reconciler/v1\n" + "".join(f"k{n}:\n" for n in range(6_000)))
    begun = time.process_time()
    folder.put(
        "c.yaml", project("a/b") + "spec:\n  milestones:\n" + "".join(f"    k{n}: {{x: 1}}\n" for n in range(6_000))
    )
    assert folder.faults().count("unknown key") == 18_000
    assert time.process_time() - begun < 30


def test_a_message_quotes_only_so_much(folder: Folder) -> None:
    folder.put("a.yaml", f"apiVersion: reconciler/v1\nkind: User\nmetadata: {{profiles: ['{'p' * 300}']}}")
    path = "acme" + f"/{'x' * 250}" * 12
    folder.put("b.yaml", f"{project(path)}---\n{project(path)}")
    said = folder.faults().splitlines()
    assert said == [
        f"a.yaml:3:23: unknown profile `{'p' * 60}...`; there is none",
        f"    metadata: {{profiles: ['{'p' * 177}...",
        "                          ^",
        f"b.yaml:7:18: project {path[:1992]}...",
        f"    metadata: {{path: {path[:183]}...",
        "                     ^",
    ]


def test_files_need_not_be_on_disk() -> None:
    contents = {"old/a.yaml": USER.encode(), "old/b.yaml.j2": project("acme/{{ name }}").encode()}
    read = read_contents(contents, KINDS, values={"name": "api"})
    assert read.files == ("old/a.yaml", "old/b.yaml.j2")
    assert [str(target.target) for target in read.desired.targets] == ["user", "project acme/api"]
    assert read_contents({}, KINDS).desired.targets == ()


def test_reading_leaves_the_garbage_collector_as_it_was(folder: Folder) -> None:
    folder.write(a_yaml=USER)
    before = gc.isenabled(), gc.get_threshold(), gc.get_freeze_count()
    folder.read()
    assert (gc.isenabled(), gc.get_threshold(), gc.get_freeze_count()) == before


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a.yaml", True),
        ("a/b.yml", True),
        ("./a/b.yaml.j2", True),
        ("a/.b.yaml", False),
        (".c/a.yaml", False),
        ("a.txt", False),
    ],
)
def test_which_names_are_those_of_manifests(path: str, expected: bool) -> None:
    assert is_manifest(path) == expected
