"""Container repository protection rules (spec section 4.18): unique patterns, each with a level to push and to delete.

Differences: production's list has no pages, and its patterns must be lower case and start with the project's path.
"""

import re
from dataclasses import dataclass
from typing import Any

from ..attributes import Attribute, read, text
from ..call import Answer, Call, Insertion, Route
from ..errors import Refusal, refused
from ..pages import PAGE, page_of
from ..reading import Reading
from ..state import MAINTAINER, SEED, Owner, Project, Section, State

LEVELS = ("maintainer", "owner", "admin")
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


@dataclass(slots=True)
class Rule:
    """One rule; a level that is not set is None."""

    id: int
    pattern: str
    push: str | None
    delete: str | None
    updated_at: str


Rules = dict[int, Rule]


def list_rules(call: Call) -> Answer:
    """`GET .../rules`, in production without pages."""
    if not call.state.deployed:
        read(call, *PAGE)
    project = _project(call)
    found = list(_rules(project).values())
    if call.state.deployed:
        return Answer(200, [_show(project, rule) for rule in found])
    return page_of(call, found, lambda rule: _show(project, rule))


def create_rule(call: Call) -> Insertion:
    """`POST .../rules`: the empty string is no level here. An index keeps patterns unique."""
    sent = read(
        call,
        text(PATTERN, required=True),
        text(PUSH, values=LEVELS),
        text(DELETE, values=LEVELS),
        any_of=(PUSH, DELETE),
    )
    project = _project(call)
    rule = Rule(0, sent[PATTERN] or "", sent.get(PUSH), sent.get(DELETE), "")
    _check(call, project, rule, None)

    def insert() -> Answer:
        if _is_taken(project, rule.pattern):
            raise _unprocessable([_TAKEN])
        rule.id, rule.updated_at = call.state.number(SECTION).give(), call.state.tick()
        _rules(project)[rule.id] = rule
        call.changed = True
        return Answer(201, _show(project, rule))

    return insert


def update_rule(call: Call) -> Answer:
    """`PATCH .../rules/:protection_rule_id`: null or the empty string unsets a level."""
    number = call.number("protection_rule_id")
    sent = read(call, text(PATTERN), _level_or_nothing(PUSH), _level_or_nothing(DELETE))
    project = _project(call)
    rule = _find(project, number)
    if not call.state.deployed:
        call.require_unmodified(rule.updated_at)
    pattern = sent.get(PATTERN, rule.pattern) or ""
    push, delete = sent.get(PUSH, rule.push) or None, sent.get(DELETE, rule.delete) or None
    wanted = Rule(rule.id, pattern, push, delete, rule.updated_at)
    if wanted != rule:
        _check(call, project, wanted, rule)
        wanted.updated_at = call.state.tick()
        _rules(project)[rule.id] = wanted
        call.changed = True
    return Answer(200, _show(project, wanted))


def delete_rule(call: Call) -> Answer:
    """`DELETE .../rules/:protection_rule_id`."""
    number = call.number("protection_rule_id")
    project = _project(call)
    rule = _find(project, number)
    call.require_unmodified(rule.updated_at)
    del _rules(project)[number]
    call.changed = True
    return Answer(204)


def _project(call: Call) -> Project:
    """The project, if its rules can be reached at all: not archived, and with a registry."""
    project = call.project(MAINTAINER)
    if project.is_archived() or not project.switches["container_registry_enabled"]:
        raise refused(403, "403 Forbidden")
    return project


def _rules(project: Project) -> Rules:
    found: Rules = project.sections[SECTION]
    return found


def _find(project: Project, number: int) -> Rule:
    rule = _rules(project).get(number)
    if rule is None:
        raise refused(404, "404 Not found")
    return rule


def _level_or_nothing(name: str) -> Attribute:
    return text(name, values=(*LEVELS, ""))


def _check(call: Call, project: Project, wanted: Rule, before: Rule | None) -> None:
    """Refuse with 422 what is no rule; the pattern is looked at only where it changes."""
    wrong = []
    if before is None or wanted.pattern != before.pattern:
        wrong = _pattern_faults(call.state, project, wanted.pattern)
    if wanted.push is None and wanted.delete is None:
        wrong.append(_NO_LEVEL)
    if wrong:
        raise _unprocessable(wrong)


def _pattern_faults(state: State, project: Project, pattern: str) -> list[str]:
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
    if state.deployed and not pattern.startswith(project.path.lower()):
        wrong.append(_ELSEWHERE)
    return wrong


def _is_taken(project: Project, pattern: str) -> bool:
    return any(rule.pattern == pattern for rule in _rules(project).values())


def _unprocessable(wrong: list[str]) -> Refusal:
    return refused(422, {"error": wrong})


def _show(project: Project, rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "project_id": project.id,
        PATTERN: rule.pattern,
        PUSH: rule.push,
        DELETE: rule.delete,
    }


def _load(reading: Reading, state: State, _owner: Owner) -> Rules:
    rules: Rules = {}
    for item in reading.items():
        fields = item.fields("id", PATTERN, PUSH, DELETE, "updated_at")
        rule = Rule(
            fields["id"].optional_integer() or state.number(SECTION).give(),
            fields[PATTERN].text(),
            fields[PUSH].choice(LEVELS, "") if fields[PUSH].given() else None,
            fields[DELETE].choice(LEVELS, "") if fields[DELETE].given() else None,
            fields["updated_at"].optional_time() or SEED,
        )
        if any(rule.pattern == other.pattern for other in rules.values()):
            raise fields[PATTERN].fault(f"the pattern {rule.pattern!r} is given twice")
        if rule.push is None and rule.delete is None:
            raise item.fault("needs a level for push or for delete")
        rules[rule.id] = rule
    return rules


def _dump(rules: Rules) -> list[dict[str, Any]]:
    return [
        {
            "id": rule.id,
            PATTERN: rule.pattern,
            PUSH: rule.push,
            DELETE: rule.delete,
            "updated_at": rule.updated_at,
        }
        for rule in rules.values()
    ]


SECTION = "container_repository_protection_rules"
_PATH = "/projects/:id/registry/protection/repository/rules"
SECTIONS = (Section(SECTION, "project", _load, _dump, numbered=True),)
ROUTES = (
    Route("GET", _PATH, list_rules, parameters_first=True),
    Route("POST", _PATH, create_rule, parameters_first=True),
    Route("PATCH", f"{_PATH}/:protection_rule_id", update_rule, parameters_first=True),
    Route("DELETE", f"{_PATH}/:protection_rule_id", delete_rule, parameters_first=True),
)
