"""The deploy keys of a project."""

from .sandbox_client import CREATED, WEB, SandboxClient, a_service

KEYS = f"{WEB}/deploy_keys"


def test_a_deploy_key_lives(service: SandboxClient, dialect: str) -> None:
    service.given(a_service(dialect, web={"enabled_deploy_keys": [{"title": "mirror"}]}))
    created = CREATED if dialect == "spec" else CREATED.replace("Z", ".000Z")
    shown = {"created_at": created, "expires_at": None, "last_used_at": None, "usage_type": "auth_and_signing"}
    mirror = {"id": 1, "title": "mirror", "key": "", "can_push": False, **shown}
    assert service.ask(f"GET {KEYS}") == (200, [mirror])
    assert service.ask(f"GET {KEYS}", user="dev") == (403, {"message": "403 Forbidden"})
    made = {"id": 2, "title": "writer", "key": "ssh-rsa AAAA", "can_push": True, **shown}
    assert service.ask(f"POST {KEYS}", {"title": "writer", "key": "ssh-rsa AAAA", "can_push": True}) == (201, made)
    assert service.ask(f"PUT {KEYS}/2", {"can_push": False}) == (200, {**made, "can_push": False})
    assert service.ask(f"DELETE {KEYS}/1") == (204, None)
    assert service.ask(f"GET {KEYS}/1") == (404, {"message": "404 Not found"})
