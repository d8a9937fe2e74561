"""What many write themselves: a script with python-gitlab that brings one section of some projects into order.

It knows the fleet of the benchmarks only: `python plain_script.py FILE`, with the configuration of `rows/peers.py`. It
imports nothing of ours, since it runs in an environment of its own.
"""

import json
import sys
from pathlib import Path
from typing import Any

import gitlab  # type: ignore[import-not-found]  # of its own environment


def milestones(project: Any, wanted: dict[str, dict[str, Any]]) -> None:
    """Create, update and delete milestones, by title."""
    found = {each.title: each for each in project.milestones.list(get_all=True)}
    for title, fields in wanted.items():
        if title not in found:
            project.milestones.create({"title": title, **fields})
        elif any(getattr(found[title], name) != value for name, value in fields.items()):
            project.milestones.update(found[title].id, fields)
    for title in found.keys() - wanted.keys():
        found[title].delete()


def job_token_scope(project: Any, wanted: dict[str, Any]) -> None:
    """Set the switch, and make both lists as wanted, by path."""
    scope = project.job_token_scope.get()
    if not scope.inbound_enabled:
        project.job_token_scope.update(new_data={"enabled": True})
    server = project.manager.gitlab
    for manager, places, key, paths in (
        (scope.allowlist, server.projects, "target_project_id", wanted["projects"]),
        (scope.groups_allowlist, server.groups, "target_group_id", wanted["groups"]),
    ):
        found = {
            getattr(each, "path_with_namespace", None) or each.web_url.partition("/groups/")[2]: each
            for each in manager.list(get_all=True)
        }
        for path in paths:
            if path not in found:
                manager.create({key: places.get(path).id})
        for path in found.keys() - {*paths, wanted["itself"]}:
            manager.delete(found[path].id)


def main(file: Path) -> None:
    """Go through the projects."""
    given = json.loads(file.read_text(encoding="utf-8"))
    server = gitlab.Gitlab(given["url"], private_token=given["token"])
    bring = {"milestones": milestones, "job_token_scope": job_token_scope}[given["section"]]
    for path, wanted in given["projects"].items():
        bring(server.projects.get(path, lazy=True), wanted)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
