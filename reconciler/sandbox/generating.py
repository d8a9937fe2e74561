"""Fleets drawn by a seed: a state with as many projects as asked for, and the oddities that real projects have.

All projects are in the group `acme`, whose owner is ada; her token is `ada-token`. The same number and seed give the
same state. Begin with `generate`.
"""

from datetime import date, timedelta
from random import Random
from typing import Any

GENERATED_TOKEN = "ada-token"  # noqa: S105 - the sandbox's, which guards nothing
GROUP = "acme"
_TEAM = 8
"""Projects in a group, on average."""

_PEOPLE = ("bob", "carla", "dmitri", "eve", "farah", "goran", "hana", "ivo")
_AREAS = ("billing", "catalog", "checkout", "data", "identity", "infra", "mobile", "search", "shipping", "web")
_SORTS = ("api", "worker", "ui", "lib", "jobs", "gateway", "docs", "charts")
_ROLES = ("maintainer", "developer", "reporter", "planner", "guest")
_EVENTS = ("new_note", "new_issue", "failed_pipeline", "fixed_pipeline", "new_merge_request")
_APPROVALS = (
    "allow_author_approval",
    "allow_committer_approval",
    "allow_overrides_to_approver_list_per_merge_request",
    "retain_approvals_on_push",
    "require_reauthentication_to_approve",
)
_TOKENS = ("nightly", "deploy", "release", "docs site", "legacy-integration")
_FIRST_DAY = date(2025, 1, 1)
_FIRST_GROUP, _FIRST_PROJECT = 10, 1000
_HIDDEN_GROUP = 9
"""A group that ada cannot see, and that some rules name all the same."""
_FORMER_MEMBER = "quentin"
"""A user who is in some rules, and a member of nothing any more."""
_DEVELOPERS, _MAINTAINERS = 30, 40

Plain = dict[str, Any]


def generate(projects: int, seed: int) -> Plain:
    """Return a state with that many projects."""
    draw = Random(f"{seed} {projects}")  # noqa: S311 - repeatable
    groups = [f"{GROUP}/{path}" for path in _group_paths(draw, -(-projects // _TEAM))]
    paths = [f"{draw.choice(groups)}/{draw.choice(_SORTS)}-{index + 1}" for index in range(projects)]
    return {
        "instance": {"enforce_job_token_allowlist": False},
        "users": [
            {"id": 1, "username": "root", "admin": True, "tokens": ["root-token"]},
            {
                "id": 2,
                "username": "ada",
                "tokens": [GENERATED_TOKEN],
                "emails": ["ada@example.com", "alerts@example.com"],
            },
            *({"id": number, "username": name} for number, name in enumerate(_PEOPLE, start=3)),
            {"id": 19, "username": _FORMER_MEMBER},
            {"id": 20, "username": "deploy-bot", "bot": True, "tokens": ["bot-token"]},
        ],
        "groups": [
            {"id": _HIDDEN_GROUP, "path": "vault"},
            {
                "id": _FIRST_GROUP,
                "path": GROUP,
                "members": [{"user": "ada", "role": "owner"}, {"user": "deploy-bot", "role": "maintainer"}],
                "merge_request_approval_settings": _some(draw, 0.5, _approvals(draw)),
                "protected_branches": [{"name": "hotfix/*", "unprotect_access_levels": _roles(_MAINTAINERS)}],
            },
            *(
                {"id": number, "path": path, "members": _members(draw)}
                for number, path in enumerate(groups, start=_FIRST_GROUP + 1)
            ),
        ],
        "projects": [_with_rules(_project(draw, index, paths, len(groups)), seed) for index in range(projects)],
    }


def _group_paths(draw: Random, wanted: int) -> list[str]:
    """Return paths below the top group, parents first, up to three deep."""
    paths: list[str] = []
    for number in range(wanted):
        above = [path for path in paths if path.count("/") < 2]
        parent = f"{draw.choice(above)}/" if above and draw.random() < 0.4 else ""
        paths.append(f"{parent}{draw.choice(_AREAS)}-{number + 1}")
    return paths


def _project(draw: Random, index: int, paths: list[str], groups: int) -> Plain:
    path, name = paths[index], paths[index].rpartition("/")[2]
    return {
        "id": _FIRST_PROJECT + index,
        "path": path,
        "visibility": draw.choices(("private", "internal", "public"), (8, 1, 1))[0],
        "archived": draw.random() < 0.05,
        "container_registry_enabled": draw.random() > 0.1,
        "builds_enabled": draw.random() > 0.05,
        "issues_enabled": draw.random() > 0.1,
        "renamed_from": [f"{GROUP}/old-{name}"] if draw.random() < 0.03 else [],
        "members": _members(draw),
        "merge_request_approval_settings": _some(draw, 0.6, _approvals(draw)),
        "notification_settings": _some(draw, 0.3, {"ada": _notifications(draw)}),
        "job_token_scope": {
            "inbound_enabled": draw.random() < 0.8,
            "project_allowlist": _numbers(draw, len(paths)),
            "group_allowlist": [_FIRST_GROUP + draw.randrange(groups + 1)] if draw.random() < 0.3 else [],
        },
        "milestones": [_milestone(draw, quarter) for quarter in range(draw.randrange(7))],
        "trigger_tokens": [_token(draw) for _ in range(draw.choices((0, 1, 2, 5), (4, 4, 2, 1))[0])],
        "container_repository_protection_rules": [
            {
                "repository_path_pattern": f"{path}/{part}*",
                "minimum_access_level_for_push": draw.choice(("maintainer", "owner")),
            }
            for part in draw.sample(("prod", "stable", "release"), draw.randrange(3))
        ],
    }


_PACKAGE_RULE = {
    "package_type": "npm",
    "package_name_pattern": f"@{GROUP}/*",
    "minimum_access_level_for_push": "owner",
}
_TAG_RULE = {
    "tag_name_pattern": "^v[0-9]",
    "minimum_access_level_for_push": "maintainer",
    "minimum_access_level_for_delete": "owner",
}


def _with_rules(project: Plain, seed: int) -> Plain:
    """Return a project with rules that protect it, some with people who have left, or with groups that are hidden."""
    number = project["id"]
    draw = Random(f"{seed} {number} rules")  # noqa: S311 - repeatable
    members = [member["user"] for member in project["members"]]
    main = {"id": number, "name": "main", "push_access_levels": _roles(draw.choice((_MAINTAINERS, _DEVELOPERS)))}
    release = {
        "name": draw.choice(("release/*", "stable")),
        "push_access_levels": [*_roles(0), *({"user": name} for name in members[:1])],
        "merge_access_levels": _roles(_DEVELOPERS, _MAINTAINERS),
        "unprotect_access_levels": [*_roles(_MAINTAINERS), *_some(draw, 0.2, [{"user": _FORMER_MEMBER}], otherwise=[])],
    }
    creators = [*_roles(_MAINTAINERS), *_some(draw, 0.2, [{"user": _FORMER_MEMBER}], otherwise=[])]
    rules: Plain = {
        "protected_branches": [main, release][: draw.randrange(3)],
        "protected_tags": [{"name": "v*", "create_access_levels": creators}][: draw.randrange(2)],
        "package_protection_rules": _some(draw, 0.3, [_PACKAGE_RULE], otherwise=[]),
        "container_tag_protection_rules": _some(draw, 0.3, [_TAG_RULE], otherwise=[]),
    }
    is_protected = main in rules["protected_branches"]
    return {**project, **rules, "approval_rules": _approval_rules(draw, members, [number] if is_protected else [])}


def _approval_rules(draw: Random, members: list[str], branches: list[int]) -> list[Plain]:
    """Return no rules, a rule for any approver, or also one of members, and of groups that may be hidden."""
    security = {
        "name": "Security",
        "approvals_required": draw.randrange(1, 3),
        "users": members[:2],
        "group_ids": [_FIRST_GROUP, *_some(draw, 0.5, [_HIDDEN_GROUP], otherwise=[])],
        "protected_branch_ids": branches,
    }
    anybody = {"name": "All Members", "rule_type": "any_approver", "approvals_required": draw.randrange(3)}
    return [anybody, security][: draw.randrange(3)]


def _roles(*levels: int) -> list[Plain]:
    return [{"access_level": level} for level in levels]


def _numbers(draw: Random, projects: int) -> list[int]:
    """Return the IDs of a few projects."""
    return sorted({_FIRST_PROJECT + draw.randrange(projects) for _ in range(draw.randrange(4))})


def _members(draw: Random) -> list[Plain]:
    return [{"user": name, "role": draw.choice(_ROLES)} for name in draw.sample(_PEOPLE, draw.randrange(4))]


def _approvals(draw: Random) -> Plain:
    return {name: draw.random() < 0.5 for name in _APPROVALS}


def _notifications(draw: Random) -> Plain:
    if draw.random() < 0.5:
        return {"level": draw.choice(("watch", "mention", "disabled"))}
    return {"level": "custom", "events": {name: draw.random() < 0.5 for name in draw.sample(_EVENTS, 3)}}


def _milestone(draw: Random, quarter: int) -> Plain:
    begins = _FIRST_DAY + timedelta(91 * quarter)
    return {
        "title": f"{_FIRST_DAY.year + quarter // 4} Q{quarter % 4 + 1}",
        "description": draw.choice((None, "", "Planned with the team.", "Hardening and documents.")),
        "start_date": _some(draw, 0.7, begins.isoformat()),
        "due_date": _some(draw, 0.8, (begins + timedelta(draw.randrange(60, 91))).isoformat()),
        "state": "closed" if quarter < 3 and draw.random() < 0.8 else "active",
    }


def _token(draw: Random) -> Plain:
    """Return one of a few descriptions, so that now and then two tokens of a project have the same description."""
    return {
        "description": draw.choice(_TOKENS),
        "owner": draw.choice(("ada", "ada", "ada", "deploy-bot", *_PEOPLE[:2])),
        "created_at": (_FIRST_DAY + timedelta(draw.randrange(360))).isoformat(),
    }


def _some(draw: Random, share: float, value: Any, otherwise: Any = None) -> Any:
    """Return the value in as many cases as the share says, or else something else."""
    return value if draw.random() < share else otherwise
