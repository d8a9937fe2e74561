"""The three numbers, which a merge request shows as a widget (`artifacts:reports:terraform`)."""

import json

from reconciler.document.document import RunDocument
from reconciler.document.style import Style
from reconciler.document.wording import numbers_in
from reconciler.model.item import ACTIONS


def plan(saved: RunDocument, _style: Style) -> str:
    """Return how many objects would be created, updated and deleted."""
    numbers = numbers_in(saved)
    return json.dumps({action: numbers[action] for action in ACTIONS}) + "\n"
