"""Endpoints of the service that only our tests ask: to prepare, to change things by hand, and to clean up.

They follow production servers, as those of the sandbox do that the spec does not define. `ROUTES` is for `running`.
"""

from reconciler.sandbox.routes.deploy_keys import DEPLOY_KEYS

from . import group_rules, invited_groups, project_import, repository, settings, users

ROUTES = (
    *DEPLOY_KEYS.routes("get", "create", "update", "delete"),
    *group_rules.ROUTES,
    *invited_groups.ROUTES,
    *project_import.ROUTES,
    *repository.ROUTES,
    *settings.ROUTES,
    *users.ROUTES,
)
