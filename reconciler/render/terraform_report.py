"""The three numbers that a merge request shows as a widget."""

import json

from reconciler.documents.plan_file import SavedPlan, summary
from reconciler.render import Style


def plan(saved: SavedPlan, _style: Style) -> str:
    """Return how many objects would be created, updated and deleted."""
    numbers = summary(saved.plan)
    return json.dumps({action: numbers[action] for action in ("create", "update", "delete")}) + "\n"
