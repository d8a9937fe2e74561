"""The documentation as a whole: generated files are up to date, links lead somewhere, nothing is missing."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from signal import SIGHUP, SIGINT, SIGTERM

import pytest
import yaml
from markdown_it import MarkdownIt

from docs.__main__ import NAMING, RELEASE, generated
from docs.decision_page import DIGEST, PICTURE, digest, the_page
from docs.hooks import MOVED, linked, outside_pages
from docs.picture import COLUMNS, the_plan
from docs.reference import ENVIRONMENT, EXIT_CODES
from docs.tables import type_words
from reconciler import __version__, errors
from reconciler.cli import COMMANDS
from reconciler.cli.exit_codes import ExitCode, of_signal
from tests.building import KINDS
from tests.docs.pages import PAGES, ROOT

SITE = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))


def test_what_comes_from_the_code_is_up_to_date_and_explains_every_key_and_option() -> None:
    current = generated()
    assert {file: file.read_text(encoding="utf-8") for file in current} == current, "run: python -m docs"
    explained = [pair for file, text in current.items() if file.suffix == ".md" for pair in meanings(text)]
    assert len(explained) > 200
    assert [name for name, words in explained if not words] == []


def test_the_picture_shows_the_page_as_it_is() -> None:
    assert DIGEST.read_text(encoding="utf-8") == digest(the_page()), "run: python -m docs.decision_page"
    picture = PICTURE.read_bytes()
    assert (picture[:4], picture[8:12], len(picture) < 150_000) == (b"RIFF", b"WEBP", True)


def test_every_release_that_is_named_anywhere_is_this_one() -> None:
    files = [file for name in ("docs", "examples", "templates") for file in (ROOT / name).rglob("*") if file.is_file()]
    texts = {
        file: file.read_text(encoding="utf-8")
        for file in [*files, ROOT / "README.md"]
        if file.suffix not in (".gz", ".pyc", ".webp")
    }
    named = {file: {found["version"] for found in RELEASE.finditer(text)} for file, text in texts.items()}
    assert {file: found for file, found in named.items() if found} == {file: {__version__} for file in NAMING}


def meanings(text: str) -> Iterator[tuple[str, str]]:
    """Yield the first cell and the meaning of each row of a page's tables."""
    column = None
    for line in text.splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if "means" in cells:
            column = cells.index("means")
        elif not cells:
            column = None
        elif column is not None:
            yield cells[0], cells[column]


def test_every_sentence_begins_with_its_subject() -> None:
    begins = re.compile(r"(?:^|[.:|>-] +|`> )(?:What|Whatever|Whoever) [^?\n]*$", re.MULTILINE)
    assert {str(page): begins.findall(page.read_text(encoding="utf-8")) for page in PAGES} == {
        str(page): [] for page in PAGES
    }


def links(page: Path) -> Iterator[str]:
    """Yield the targets of a page's links and pictures."""
    for token in MarkdownIt().enable("table").parse(page.read_text(encoding="utf-8")):
        for inner in token.children or ():
            yield from (str(inner.attrs[name]) for name in ("href", "src") if name in inner.attrs)


@pytest.mark.untraced
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere_in_the_repository(page: Path) -> None:
    inside = [link.partition("#")[0] for link in links(page) if not re.match(r"https?:|#", link)]
    assert [link for link in inside if not (page.parent / link).exists()] == []
    assert [link for link in links(page) if link.startswith("http:")] == []


def test_every_link_within_the_reference_leads_to_a_heading() -> None:
    text = Path(ROOT, "docs/reference/commands.md").read_text(encoding="utf-8")
    headings = {name.lower().replace(" ", "-") for name in re.findall(r"^#+ (.+)$", text, re.MULTILINE)}
    assert set(re.findall(r"\]\(#([^)]*)\)", text)) - headings == set()


def test_links_out_of_the_folder_lead_to_pages_of_the_site() -> None:
    known = {"index.md", "how-to/drift.md", "examples/fleet/README.md", "CONTRIBUTING.md"}
    text = "[a](../../examples/fleet/README.md) [b](../index.md#x) [c](../../examples/ci/x.yml) [d](https://e.example/) ![e](p.svg)"
    assert linked(text, "how-to/drift.md", known) == (
        "[a](../examples/fleet/README.md) [b](../index.md#x) c [d](https://e.example/) ![e](p.svg)"
    )
    assert linked("[a](docs/how-to/drift.md) [b](examples/fleet)", "CONTRIBUTING.md", known) == (
        "[a](how-to/drift.md) [b](examples/fleet/README.md)"
    )


def test_the_site_has_every_page_and_loads_nothing_from_elsewhere() -> None:
    named = re.findall(r"[\w./-]+\.md", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    assert sorted(named) == sorted(str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md"))
    assert {str(page.relative_to(ROOT)) for page in PAGES if "docs" not in page.parts} - {"README.md"} <= set(
        outside_pages()
    )
    assert SITE["theme"]["font"] is False
    assert SITE["plugins"] == ["search"]
    assert not {"repo_url", "extra", "extra_javascript", "extra_css"} & set(SITE)


@pytest.mark.untraced
def test_every_link_of_the_site_and_every_former_address_leads_to_a_heading(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(
        build, check=False, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True
    )
    assert (done.returncode, re.findall("^(?:WARNING|.*excluded from).*$", done.stderr, re.MULTILINE)) == (0, [])
    for former in MOVED:
        (link,) = re.findall(r'url=([^"]+)', Path(tmp_path, former, "index.html").read_text(encoding="utf-8"))
        address, _, heading = link.partition("#")
        page = Path(tmp_path, former, address, "index.html").read_text(encoding="utf-8")
        assert f'id="{heading}"' in page or not heading, link
    for link in links(ROOT / "README.md"):  # no page of the site
        path, _, heading = link.partition("#")
        if heading:
            page = Path(tmp_path, path.removeprefix("docs/").removesuffix(".md"), "index.html").read_text("utf-8")
            assert f'id="{heading}"' in page, link


def test_the_front_pages_name_the_first_commands_and_every_page() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    named = re.findall(r"^\| `([a-z]+)` \|", readme, re.MULTILINE)
    assert (len(named), set(named) - set(COMMANDS)) == (6, set())
    front = set(links(ROOT / "docs/index.md"))
    pages = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").glob("*/*.md")}
    assert pages - {link.partition("#")[0] for link in front} == set()


@pytest.mark.untraced
def test_the_picture_is_as_wide_as_its_text() -> None:
    plain = re.sub(r"\x1b\[[\d;]*m", "", the_plan())
    assert max(map(len, plain.splitlines())) <= COLUMNS
    assert {"  +", "  ~", "  -"} <= {line[:3] for line in plain.splitlines()}


def test_every_variable_that_is_read_is_in_the_reference() -> None:
    files = [*sorted((ROOT / "reconciler/cli").rglob("*.py")), ROOT / "reconciler/document/links.py"]
    code = "".join(file.read_text(encoding="utf-8") for file in files)
    constants = dict(re.findall(r'^([A-Z_]+) = "(\w+)"', code, re.MULTILINE))
    read = re.findall(r"environ(?:\.get\(|\[)(?:\"(\w+)\"|([A-Z_]+))", code)
    of_an_option = {  # commands without these options read them too
        "CI_JOB_NAME",
        "CI_MERGE_REQUEST_IID",
        "CI_MERGE_REQUEST_PROJECT_ID",
        "CI_PROJECT_ID",
        "RECONCILER_CA_FILE",
        "RECONCILER_TOKEN_FILE",
    }
    assert {name or constants[constant] for name, constant in read} - of_an_option == set(ENVIRONMENT) - {"HTTPS_PROXY"}


def test_every_exit_code_is_in_the_reference() -> None:
    classes = [each for each in vars(errors).values() if isinstance(each, type) and hasattr(each, "exit_code")]
    assert {each.exit_code for each in classes} <= set(ExitCode)
    assert set(ExitCode) | {of_signal(number) for number in (SIGHUP, SIGINT, SIGTERM)} == set(EXIT_CODES)


def test_every_format_is_on_the_page_about_versions() -> None:
    sources = (file.read_text(encoding="utf-8") for file in (ROOT / "reconciler").rglob("*.py"))
    named = set(re.findall(r"\"(reconciler(?:\.[a-z]+)?/v\d+)\"", "".join(sources)))
    page = (ROOT / "docs/reference/versions.md").read_text(encoding="utf-8")
    assert set(re.findall(r"`(reconciler(?:\.[a-z]+)?/v\d+)`", page)) == named


def test_values_of_unknown_types_are_called_so() -> None:
    assert type_words({}) == "any value"


def test_hooks_and_metrics_that_pages_name_are_there() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    hooks = {hook["id"] for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))}
    assert set(re.findall(r"- id: (\S+)", text)) == hooks
    told = set(re.findall(r"^# HELP (\w+)", text, re.MULTILINE))
    assert set(re.findall(r"\breconciler_(?:plan|apply)_\w+", text)) <= told


def files_named_for(kind: str) -> set[str]:
    """Return the files that are named after a kind, with its name as KIND."""
    found = [path for folder in ("reconciler", "tests", "examples") for path in (ROOT / folder).rglob(f"*{kind}.*")]
    return {str(path.relative_to(ROOT)).replace(kind, "KIND") for path in found if path.suffix in {".py", ".yaml"}}


@pytest.mark.untraced
@pytest.mark.parametrize("kind", KINDS)
def test_adding_a_kind_takes_the_files_that_are_listed(kind: str) -> None:
    listed = re.findall(r"^\d\. `([\w./]+)`", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(listed) == files_named_for(kind) - {
        "tests/sandbox/test_KIND.py",
        "tests/acceptance/recordings/KIND.yaml",
    }
