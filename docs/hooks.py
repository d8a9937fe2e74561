"""Additions that `mkdocs.yml` cannot express: pages of the repository outside `docs/`, and links to them."""

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).parent.parent

MOVED = {
    "how-to/accept-drift": "how-to/drift/#accept",
    "how-to/accounts": "how-to/tokens/",
    "how-to/add-a-kind": "contributing/add-a-kind/",
    "how-to/bootstrap": "how-to/new-group/",
    "how-to/cron": "how-to/alerts/#cron",
    "how-to/docker": "how-to/your-machine/#docker",
    "how-to/editor": "how-to/your-machine/#editor",
    "how-to/epics": "how-to/group-planning/#epics",
    "how-to/exceptions": "how-to/baseline/#except",
    "how-to/first-run": "how-to/your-machine/#before-the-first-run",
    "how-to/group-milestones": "how-to/group-planning/#milestones-of-a-group",
    "how-to/locks": "how-to/baseline/#lock",
    "how-to/pre-commit": "how-to/your-machine/#before-each-commit",
    "how-to/rate-limits": "how-to/cost/#limits",
    "how-to/rotate-tokens": "how-to/tokens/#rotation",
    "how-to/secrets": "how-to/tokens/#your-own-token",
}
"""Former addresses of pages on the site, with the present ones."""

REDIRECT = """<!doctype html>
<html lang="en">
<title>Moved</title>
<meta http-equiv="refresh" content="0; url={address}">
<p>This page has moved: <a href="{address}">{address}</a></p>
"""

LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((?!https?:|mailto:|#)([^)#\s]*)(#[^)]*)?\)")


def outside_pages() -> list[str]:
    """Return the pages of the site that lie outside `docs/`, as paths in the repository."""
    found = [ROOT / name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")]
    for folder in ("templates", "examples", "benchmarks"):
        found += sorted((ROOT / folder).rglob("README.md"))
    return [page.relative_to(ROOT).as_posix() for page in found]


def on_config(config: Any) -> Any:
    """Put the pages from outside at the end of the navigation."""
    config.nav = [*config.nav, {"Repository": outside_pages()}]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages from outside, each at its path in the repository."""
    for name in outside_pages():
        files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Point links at the page's place on the site; keep only the words of links to files that the site lacks."""
    del config
    source = page.file.src_uri
    return linked(markdown, source, known={file.src_uri for file in files})


def on_post_build(config: Any) -> None:
    """Write a page that leads on at each former address."""
    for former, address in MOVED.items():
        folder = Path(config.site_dir, former)
        folder.mkdir(parents=True)
        here = REDIRECT.format(address=posixpath.relpath(address, former))
        Path(folder, "index.html").write_text(here, encoding="utf-8")


def linked(markdown: str, source: str, known: set[str]) -> str:
    """Return a page's text, with paths in the repository replaced by paths on the site.

    Args:
        markdown: the text.
        source: its page, by its path on the site.
        known: what the site has.
    """
    inside = source not in outside_pages()
    here = posixpath.dirname(f"docs/{source}" if inside else source)

    def turned(link: re.Match[str]) -> str:
        words, path, anchor = link[1], link[2], link[3] or ""
        place = posixpath.normpath(posixpath.join(here, path))
        on_site = place.removeprefix("docs/")
        if on_site not in known:
            on_site = posixpath.join(on_site, "README.md")
        if on_site not in known:
            return words
        return f"[{words}]({posixpath.relpath(on_site, posixpath.dirname(source) or '.')}{anchor})"

    return LINK.sub(turned, markdown)
