"""Protection rules for packages: a pattern and a type, unique together, with a level to push and to delete.

The spec does not define these endpoints; they follow production servers. The level to delete is behind a flag: it is
dropped on the way in, and hidden on the way out.
"""

import re
from typing import Any, Literal, Self, get_args

from pydantic import model_validator

from ..answers import Refusal, refused
from ..call import Call
from ..collection import RouteCollection
from ..parameters import read, text
from ..records import DatedItem
from ..state import Project, StateSection

Type = Literal["conan", "generic", "helm", "maven", "npm", "nuget", "pypi"]
TYPES = get_args(Type)
Level = Literal["maintainer", "owner", "admin"]
LEVELS = get_args(Level)
PATTERN, TYPE = "package_name_pattern", "package_type"
PUSH, DELETE = "minimum_access_level_for_push", "minimum_access_level_for_delete"
_SHOWN = ("id", "project_id", PATTERN, TYPE, DELETE, PUSH)
_NAMES = {
    "npm": ("NPM", re.compile(r"(@?[A-Za-z0-9_.*-]+/)?[A-Za-z0-9_.*-]+")),
    "pypi": ("PyPI", re.compile(r"[A-Za-z0-9_.*-]+")),
}
_NO_LEVEL = "A rule must have at least a minimum access role for push or delete."
_TAKEN = "has already been taken"

FLAG: StateSection[bool] = StateSection("packages_protected_packages_delete", ("instance",), bool, False)
"""Whether levels to delete are taken and shown."""


class PackageRule(DatedItem):
    """A rule; a level that is not set is None."""

    package_name_pattern: str
    package_type: Type
    minimum_access_level_for_push: Level | None = None
    minimum_access_level_for_delete: Literal["owner", "admin"] | None = None

    @property
    def protects(self) -> bool:
        """Whether a level is set, even a hidden level."""
        return bool(self.minimum_access_level_for_push or self.minimum_access_level_for_delete)

    @model_validator(mode="after")
    def _need_level(self) -> Self:
        if not self.protects:
            raise ValueError("needs a level for push or for delete")
        return self


class _PackageRules(RouteCollection[PackageRule]):
    """The rules of a project; a changed rule moves to the end. An index keeps pairs of pattern and type unique."""

    def read_new(self, call: Call) -> dict[str, Any]:
        """Return the attributes of a new rule: one of the levels must be sent."""
        name, sort = text(PATTERN, required=True), text(TYPE, required=True, null=False, values=TYPES)
        return self._taken_in(call, read(call, name, sort, *self.changes[2:], any_of=(PUSH, DELETE)))

    def read_changes(self, call: Call) -> dict[str, Any]:
        """Return the attributes to change; null is no level."""
        return self._taken_in(call, read(call, *self.changes))

    def check(self, call: Call, owner: Project, wanted: PackageRule, before: PackageRule | None) -> None:
        """Refuse an invalid rule with 422; the error about a pattern comes twice."""
        faults = [] if wanted.protects else [_NO_LEVEL]
        if wanted.package_type not in TYPES:
            faults.append("Package type can't be blank")
        elif before is None or _key(wanted) != _key(before):
            fault = _pattern_fault(wanted) or (_TAKEN if self._is_taken(owner, wanted) else "")
            faults += [f"Package name pattern {fault}", f"Pattern {fault}"] if fault else []
        if faults:
            raise _unprocessable(faults)

    def check_again(self, call: Call, owner: Project, wanted: PackageRule) -> None:
        """Refuse the second of two rules with one pattern and type, in the words of the database."""
        if self._is_taken(owner, wanted):
            raise _unprocessable("PG::UniqueViolation: ERROR:  duplicate key value violates unique constraint")

    def save(self, call: Call, item: PackageRule, wanted: PackageRule) -> None:
        """Save a rule, which moves to the end of the list."""
        super().save(call, item, wanted)
        kept = self.section.of(call.project(self.role))
        kept.remove(item)
        kept.append(item)

    def show(self, call: Call, owner: Project, item: PackageRule) -> dict[str, Any]:
        """Return the record of a rule."""
        record = super().show(call, owner, item) | {"project_id": owner.id}
        if not FLAG.of(call.state.instance):
            record[DELETE] = None
        return {name: record[name] for name in _SHOWN}

    def _taken_in(self, call: Call, sent: dict[str, Any]) -> dict[str, Any]:
        if not FLAG.of(call.state.instance):
            sent.pop(DELETE, None)
        return {name: "" if name == PATTERN and value is None else value for name, value in sent.items()}

    def _is_taken(self, owner: Project, wanted: PackageRule) -> bool:
        return any(_key(rule) == _key(wanted) for rule in self.section.of(owner))


def _key(rule: PackageRule) -> tuple[str, Type]:
    return rule.package_name_pattern, rule.package_type


def _pattern_fault(rule: PackageRule) -> str:
    pattern = rule.package_name_pattern
    if not pattern.strip():
        return "can't be blank"
    if len(pattern) > 255:
        return "is too long (maximum is 255 characters)"
    name, form = _NAMES.get(rule.package_type, ("", re.compile(r".*", re.DOTALL)))
    fits = form.fullmatch(pattern)
    return "" if fits else f"should be a valid {name} package name with optional wildcard characters."


def _unprocessable(reason: str | list[str]) -> Refusal:
    return refused(422, {"error": reason})


RULES = _PackageRules(
    "package_protection_rules",
    PackageRule,
    "/projects/:id/packages/protection/rules",
    part="package_protection_rule_id",
    feature="packages_enabled",
    pages="never",
    changes=(
        text(PATTERN),
        text(TYPE, values=TYPES),
        text(PUSH, values=LEVELS),
        text(DELETE, values=LEVELS[1:]),
    ),
)
SECTIONS = (RULES.section, FLAG)
ROUTES = RULES.routes("list", "create", "update", "delete", update="PATCH", parameters_first=True)
