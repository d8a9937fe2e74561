"""Approval rules of groups, which are behind a flag that is off."""

from reconciler.sandbox.answers import Answer, Refusal
from reconciler.sandbox.call import Call, Route


def refuse_groups(call: Call) -> Answer:
    """Refuse with 404: rules of groups are behind a flag that is off."""
    call.visible_group()
    raise Refusal(404, {"message": "404 Not Found"})


ROUTES = (
    Route("GET", "/groups/:id/approval_rules", refuse_groups),
    Route("POST", "/groups/:id/approval_rules", refuse_groups),
    Route("PUT", "/groups/:id/approval_rules/:approval_rule_id", refuse_groups),
)
