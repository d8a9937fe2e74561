"""Deploy keys in the sandbox: the same key again is the old record; the same title again is another key."""

from reconciler.sandbox.call import Call
from reconciler.sandbox.collection import RouteCollection
from reconciler.sandbox.parameters import boolean, text
from reconciler.sandbox.records import DatedItem
from reconciler.sandbox.state import Project


class DeployKey(DatedItem):
    """One key."""

    title: str
    key: str
    can_push: bool = False


class _DeployKeys(RouteCollection[DeployKey]):
    """A project's keys."""

    def add(self, call: Call, owner: Project, item: DeployKey) -> None:
        """Keep a new key; one that the project has already stays as it is, and is what the caller gets."""
        old = next((each for each in self.items(call, owner) if each.key == item.key), None)
        if old:
            item.replace_with(old)
        else:
            super().add(call, owner, item)


KEYS = _DeployKeys(
    "deploy_keys",
    DeployKey,
    "/projects/:id/deploy_keys",
    part="key_id",
    new=(text("title", required=True), text("key", required=True), boolean("can_push")),
    changes=(text("title"), boolean("can_push")),
)
SECTIONS = (KEYS.section,)
ROUTES = KEYS.routes()
