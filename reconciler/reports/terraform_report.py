"""The numbers of creations, updates and deletions for the widget of a merge request (`artifacts:reports:terraform`)."""

import json

from reconciler.document.document import RunDocument
from reconciler.document.style import Style
from reconciler.document.wording import document_totals
from reconciler.model.item import ACTIONS


def plan(saved: RunDocument, _style: Style) -> str:
    """Return the numbers of objects that a plan creates, updates and deletes."""
    numbers = document_totals(saved)
    return json.dumps({action: numbers[action] for action in ACTIONS}) + "\n"
