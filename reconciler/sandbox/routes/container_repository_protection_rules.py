"""Container repository protection rules (spec section 4.18): unique patterns, each with a level to push and to delete.

Differences: production's list has no pages, and its patterns must be lower case and start with the project's path.
"""

import re
from typing import Any, Literal, Self, get_args

from pydantic import model_validator

from ..answers import Refusal, refused
from ..call import Call
from ..collection import RouteCollection
from ..parameters import read, text
from ..records import DatedItem, each_once
from ..state import Project, SandboxState

Level = Literal["maintainer", "owner", "admin"]
LEVELS = get_args(Level)
PATTERN, PUSH, DELETE = (
    "repository_path_pattern",
    "minimum_access_level_for_push",
    "minimum_access_level_for_delete",
)
_SPEC_PATTERN = re.compile(r"[A-Za-z0-9*]+(([._/]|__|-*)[A-Za-z0-9*])*")
_DEPLOYED_PATTERN = re.compile(r"[a-z0-9]+(([._/]|__|-*)[a-z0-9*])*")
_NO_LEVEL = "A rule requires at least the Maintainer role for either push or delete."
_TAKEN = "Repository path pattern has already been taken"
_INVALID = "Repository path pattern should be a valid container repository path with optional wildcard characters."
_ELSEWHERE = "Repository path pattern should start with the project's full path"
_SHOWN = ("id", "project_id", PATTERN, PUSH, DELETE)
_NEW = (text(PATTERN, required=True), text(PUSH, values=LEVELS), text(DELETE, values=LEVELS))
_CHANGES = (text(PATTERN), text(PUSH, values=(*LEVELS, "")), text(DELETE, values=(*LEVELS, "")))


class RepositoryRule(DatedItem):
    """A rule; a level that is not set is None."""

    repository_path_pattern: str
    minimum_access_level_for_push: Level | None = None
    minimum_access_level_for_delete: Level | None = None

    @property
    def protects(self) -> bool:
        """Whether a level is set."""
        return bool(self.minimum_access_level_for_push or self.minimum_access_level_for_delete)

    @model_validator(mode="after")
    def _need_level(self) -> Self:
        if not self.protects:
            raise ValueError("needs a level for push or for delete")
        return self


class _Rules(RouteCollection[RepositoryRule]):
    """A project's rules. An index keeps patterns unique."""

    def read_new(self, call: Call) -> dict[str, Any]:
        """Refuse the empty string as a level."""
        sent = read(call, *_NEW, any_of=(PUSH, DELETE))
        return {**sent, PATTERN: sent[PATTERN] or ""}

    def read_changes(self, call: Call) -> dict[str, Any]:
        """Take null or the empty string for no level."""
        return {name: value or ("" if name == PATTERN else None) for name, value in read(call, *_CHANGES).items()}

    def check(self, call: Call, owner: Project, wanted: RepositoryRule, before: RepositoryRule | None) -> None:
        """Refuse an invalid rule with 422; the pattern is checked only if it changes."""
        wrong: list[str] = []
        if before is None or wanted.repository_path_pattern != before.repository_path_pattern:
            wrong = _pattern_faults(call.state, owner, wanted.repository_path_pattern)
        if not wanted.protects:
            wrong.append(_NO_LEVEL)
        if wrong:
            raise _unprocessable(wrong)

    def check_again(self, call: Call, owner: Project, wanted: RepositoryRule) -> None:
        """Refuse the second of two rules with one pattern."""
        if _is_taken(owner, wanted.repository_path_pattern):
            raise _unprocessable([_TAKEN])

    def show(self, call: Call, owner: Project, item: RepositoryRule) -> dict[str, Any]:
        """Return the record of a rule (spec section 2)."""
        record = super().show(call, owner, item)
        return {name: owner.id if name == "project_id" else record[name] for name in _SHOWN}


def _pattern_faults(state: SandboxState, project: Project, pattern: str) -> list[str]:
    wrong = []
    if not pattern.strip():
        wrong.append("Repository path pattern can't be blank")
        if not state.deployed:
            return wrong
    if _is_taken(project, pattern):
        wrong.append(_TAKEN)
    if len(pattern) > 255:
        wrong.append("Repository path pattern is too long (maximum is 255 characters)")
    elif not (_DEPLOYED_PATTERN if state.deployed else _SPEC_PATTERN).fullmatch(pattern):
        wrong.append(_INVALID)
    if state.deployed and not pattern.lower().startswith(project.path.lower()):
        wrong.append(_ELSEWHERE)
    return wrong


def _is_taken(project: Project, pattern: str) -> bool:
    return any(rule.repository_path_pattern == pattern for rule in RULES.section.of(project))


def _unprocessable(wrong: list[str]) -> Refusal:
    return refused(422, {"error": wrong})


RULES = _Rules(
    "container_repository_protection_rules",
    RepositoryRule,
    "/projects/:id/registry/protection/repository/rules",
    part="protection_rule_id",
    feature="container_registry_enabled",
    pages="by the spec",
    validator=each_once(PATTERN),
)
SECTIONS = (RULES.section,)
ROUTES = RULES.routes("list", "create", "update", "delete", update="PATCH", parameters_first=True)
