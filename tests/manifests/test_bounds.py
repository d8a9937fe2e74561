"""Small manifests that ask for a lot of memory are refused before it is taken."""

from resource import RUSAGE_SELF, getrusage

import pytest

from tests.cli_runner import CliRunner
from tests.manifests.conftest import Folder

MANIFEST = "apiVersion: reconciler/v1\nkind: %s\nmetadata: {%s}\nspec: {milestones: {a: {description: %s}}}\n"


def first_lines(text: str) -> list[str]:
    """Return the lines without those that show the source."""
    return [line for line in text.splitlines() if not line.startswith(" ")]


def test_a_part_of_a_path_has_a_bound(folder: Folder) -> None:
    folder.write(a_yaml=MANIFEST % ("Project", f"path: acme/{'a' * 255}", "x"))
    assert len(folder.read().desired.targets) == 1
    folder.write(a_yaml=MANIFEST % ("Project", f"path: acme/{'a' * 256}", '"' + "{path}" * 10_000 + '"'))
    assert first_lines(folder.faults()) == ["a.yaml:3:18: a part of a full path has at most 255 characters"]


def test_text_that_grows_by_placeholders_has_a_bound_in_each_target(folder: Folder) -> None:
    path = "/".join(["a" * 255] * 20)
    long, short = ('"' + "{path}" * times + '"' for times in (1025, 1024))
    over = "the placeholders of this document expand to more than 5 MiB: use fewer"
    folder.write(
        a_yaml=MANIFEST % ("Project", f"path: {path}", long) + "create: {name: '{path}'}\n",
        b_yaml=MANIFEST % ("Profile", "name: base", long),
        c_yaml=MANIFEST % ("Project", f"path: other/{path}, profiles: [base]", '"{name}"'),
        d_yaml=MANIFEST % ("Project", "path: acme/api, profiles: [base]", short),
    )
    assert first_lines(folder.faults()) == [f"a.yaml:4:38: {over}", f"b.yaml:4:38: {over}"]
    folder.write(a_yaml=MANIFEST % ("Project", f"path: {path}", short), c_yaml="")
    assert len(folder.read().desired.targets) == 2


def test_text_that_grows_by_aliases_has_a_bound(folder: Folder) -> None:
    anchor = "x" * 100_000
    for text, line in ((f"&x {anchor}", 56), (f"&x {{b: [{anchor}]}}", 56)):
        aliases = "".join(f"  - *x  # {number}\n" for number in range(4000))
        folder.put("a.yaml", f"kind: Project\nshared: {text}\nother:\n{aliases}")
        faults = first_lines(folder.faults())
        assert faults == [f"a.yaml:{line}:5: the aliases expand to more than 5 MiB of text"]
    folder.put("a.yaml", MANIFEST % ("Project", "path: acme/api, labels: {a: &x x, b: *x}", "*x"))
    assert len(folder.read().desired.targets) == 1


@pytest.mark.untraced
def test_templates_have_a_bound_together(folder: Folder) -> None:
    for number in range(150):
        folder.put(f"{number:03}.yaml.j2", '# {{ "x" * 5_000_000 }}\n{% for a in range(9) %}{% endfor %}')
    before = getrusage(RUSAGE_SELF).ru_maxrss
    faults = first_lines(folder.faults())
    assert getrusage(RUSAGE_SELF).ru_maxrss - before < 400_000
    over = "all templates up to this one render to more than 64 MiB: write less"
    assert [line for line in faults if over in line] == [f"{number:03}.yaml.j2: {over}" for number in range(13, 150)]


def test_the_bound_of_templates_is_that_of_one_run(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reconciler.manifests.templates.MOST_RENDERED", 200)
    text = MANIFEST % ("Project", "path: acme/{{ 'a' * 40 }}", "x")
    for name in "abc":
        folder.put(f"{name}.yaml.j2", text.replace("acme", name))
    over = "all templates up to this one render to more than 0 MiB: write less"
    assert first_lines(folder.faults()) == [f"b.yaml.j2: {over}", f"c.yaml.j2: {over}"]


def test_running_out_of_memory_is_no_bug_of_ours(cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    def hungry() -> None:
        raise MemoryError

    monkeypatch.setattr("reconciler.kinds.all_kinds", hungry)
    done = cli_runner("validate")
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        "reconciler: out of memory: give fewer PATHS or targets, or run on a machine with more memory\n"
    )


def test_an_unknown_word_is_compared_with_few_known_ones(folder: Folder) -> None:
    """A stranger's thousands of unknown names beside thousands of known ones would take minutes."""
    uses = ", ".join(f"profilx-{number}" for number in range(20))
    use = f"apiVersion: reconciler/v1\nkind: Project\nmetadata: {{path: acme/api, profiles: [{uses}]}}\nspec: {{}}\n"
    for known, said in (
        (100, "unknown profile `profilx-7`; did you mean `profile-7`?"),
        (
            101,
            f"unknown profile `profilx-7`; known are {', '.join(f'profile-{number}' for number in range(30))} and "
            "71 more",
        ),
    ):
        profiles = "---\n".join(MANIFEST % ("Profile", f"name: profile-{number}", "x") for number in range(known))
        folder.put("a.yaml", f"{profiles}---\n{use}")
        words = [line.split(": ", 1)[1] for line in first_lines(folder.faults())]
        assert (len(words), words[7]) == (20, said)
