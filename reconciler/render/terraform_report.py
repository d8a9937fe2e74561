"""The three numbers, which a merge request shows as a widget (`artifacts:reports:terraform`)."""

import json

from reconciler.documents.plan_file import SavedPlan
from reconciler.model.plan import ACTIONS
from reconciler.render import Style


def plan(saved: SavedPlan, _style: Style) -> str:
    """Return how many objects would be created, updated and deleted."""
    numbers = saved.summary
    return json.dumps({action: getattr(numbers, action) for action in ACTIONS}) + "\n"
