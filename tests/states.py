"""States for the sandbox."""

from typing import Any


def a_small_service(dialect: str) -> dict[str, Any]:
    """Return a state: the owner ada, the maintainer bob, a group, a subgroup and four projects."""
    return {
        "instance": {"enforce_job_token_allowlist": False, "dialect": dialect},
        "users": [
            {"id": 1, "username": "root", "admin": True, "tokens": ["root-token"], "emails": ["root@example.com"]},
            {"id": 2, "username": "ada", "tokens": ["ada-token"], "emails": ["ada@example.com", "ops@example.com"]},
            {"id": 3, "username": "bob", "tokens": ["bob-token"], "emails": ["bob@example.com"]},
        ],
        "groups": [
            {
                "id": 10,
                "path": "acme",
                "members": [{"user": "ada", "role": "owner"}, {"user": "bob", "role": "maintainer"}],
            },
            {"id": 11, "path": "acme/tools"},
        ],
        "projects": [
            {"id": 100, "path": "acme/api"},
            {"id": 101, "path": "acme/lib"},
            {"id": 102, "path": "acme/web"},
            {"id": 103, "path": "acme/tools/cli"},
        ],
    }
