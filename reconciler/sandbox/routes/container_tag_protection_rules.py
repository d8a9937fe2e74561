"""Protection rules for the tags of container images: unique patterns, each with a level to push and to delete.

The spec does not define these endpoints; they follow production servers. Immutable rules, which have no levels, are not
listed, and count for the limit; the sandbox has those of its state.
"""

import re
import warnings
from typing import Any, Literal, Self, get_args

from pydantic import model_validator

from ..answers import Answer, Refusal, refused
from ..call import Call
from ..collection import RouteCollection
from ..parameters import read, text
from ..records import DatedItem
from ..state import OWNER, Project, StateSection

Level = Literal["maintainer", "owner", "admin"]
LEVELS = get_args(Level)
PATTERN, PUSH, DELETE = "tag_name_pattern", "minimum_access_level_for_push", "minimum_access_level_for_delete"
LIMIT = 5
_SINCE = {"GET": (18, 7), "POST": (18, 8), "PATCH": (18, 9), "DELETE": (18, 9)}
_UNSUPPORTED = "GitLab container registry API not supported"
_ARCHIVED = "Unauthorized to delete a protection rule for container image tags"
_FULL = "Maximum number of protection rules have been reached."
_TAKEN = "Tag name pattern has already been taken"
_SHOWN = ("id", "project_id", PATTERN, PUSH, DELETE)
_NEW = (
    text(PATTERN, required=True),
    *(text(name, required=True, null=False, values=LEVELS) for name in (PUSH, DELETE)),
)
_CHANGES = (text(PATTERN), *(text(name, values=(*LEVELS, "")) for name in (PUSH, DELETE)))

REGISTRY: StateSection[bool] = StateSection("container_registry_api", ("instance",), bool, True)
"""Whether the container registry has the API that these rules need."""


class TagRule(DatedItem):
    """A rule; without levels it is immutable."""

    tag_name_pattern: str
    minimum_access_level_for_push: Level | None = None
    minimum_access_level_for_delete: Level | None = None

    @property
    def immutable(self) -> bool:
        """Whether the tags that match can never be changed."""
        return self.minimum_access_level_for_push is None

    @model_validator(mode="after")
    def _both_or_none(self) -> Self:
        if self.immutable != (self.minimum_access_level_for_delete is None):
            raise ValueError("needs both levels, or none of them")
        return self


class _TagRules(RouteCollection[TagRule]):
    """The rules of a project, in the order of their last changes."""

    def select(self, call: Call, owner: Project, sent: dict[str, Any]) -> list[tuple[Project, TagRule]]:
        """Return the rules that have levels."""
        return [pair for pair in super().select(call, owner, sent) if not pair[1].immutable]

    def create(self, call: Call) -> Any:
        """Check a new rule, and return the function that inserts it."""
        self.require_version(call)
        return super().create(call)

    def update(self, call: Call) -> Answer:
        """Change a rule, which moves to the end of the list."""
        self.require_version(call)
        key, sent = self.key(call), self.read_changes(call)
        owner = self.owner_to_write(call)
        rule = self.find(call, owner, key)
        if rule.immutable:
            raise _unchanged("Operation not allowed")
        if not REGISTRY.of(call.state.instance):
            raise _unchanged(_UNSUPPORTED)
        wanted = rule.model_copy(update=sent)
        if wanted != rule:
            faults = _level_faults(call, wanted)
            if wanted.tag_name_pattern != rule.tag_name_pattern:
                faults += _pattern_faults(wanted.tag_name_pattern) or self._taken(owner, wanted)
            if faults:
                raise _unchanged(faults)
            self.save(call, rule, wanted)
            kept = self.section.of(owner)
            kept.remove(rule)
            kept.append(rule)
        return Answer(200, self.show(call, owner, rule))

    def delete(self, call: Call) -> Answer:
        """Delete a rule; an immutable rule is for owners."""
        self.require_version(call)
        key = self.key(call)
        owner = call.project(self.role)
        rule = self.find(call, owner, key)
        if call.state.is_archived(owner):
            raise refused(400, {"error": _ARCHIVED})
        if rule.immutable:
            call.require(owner, OWNER)
        if not REGISTRY.of(call.state.instance):
            raise refused(400, {"error": _UNSUPPORTED})
        self.require_unmodified(call, rule)
        self.remove(call, owner, rule)
        return Answer(204)

    def read_new(self, call: Call) -> dict[str, Any]:
        """Return the attributes of a new rule: both levels must be given."""
        return read(call, *_NEW)

    def read_changes(self, call: Call) -> dict[str, Any]:
        """Take null or the empty string for no level."""
        return {name: value or ("" if name == PATTERN else None) for name, value in read(call, *_CHANGES).items()}

    def owner(self, call: Call) -> Project:
        """Return the project, if the version of the service has such rules."""
        self.require_version(call)
        project: Project = super().owner(call)
        return project

    def make(self, call: Call, owner: Project, sent: dict[str, Any]) -> TagRule:
        """Return a new rule."""
        return TagRule.model_construct(**{**sent, PATTERN: sent[PATTERN] or ""})

    def check(self, call: Call, owner: Project, wanted: TagRule, before: TagRule | None) -> None:
        """Refuse a rule beyond the limit, and then an invalid pattern."""
        if not REGISTRY.of(call.state.instance):
            raise refused(422, _UNSUPPORTED)
        self._require_room(owner)
        faults = _pattern_faults(wanted.tag_name_pattern) or self._taken(owner, wanted)
        if faults:
            raise refused(422, faults)

    def check_again(self, call: Call, owner: Project, wanted: TagRule) -> None:
        """Refuse a pattern that another request has taken: the refusal of the index is an unexpected error."""
        self._require_room(owner)
        if self._taken(owner, wanted):
            raise refused(500, "500 Internal Server Error")

    def show(self, call: Call, owner: Project, item: TagRule) -> dict[str, Any]:
        """Return the record of a rule."""
        record = super().show(call, owner, item)
        return {name: owner.id if name == "project_id" else record[name] for name in _SHOWN}

    def require_version(self, call: Call) -> None:
        """Refuse with 404 if the version of the service does not have such rules yet."""
        numbers = re.findall(r"\d+", call.state.instance.version)[:2]
        if tuple(map(int, numbers)) < _SINCE[call.method]:
            raise Refusal(404, {"error": "404 Not Found"})

    def _require_room(self, owner: Project) -> None:
        if len(self.section.of(owner)) >= LIMIT:
            raise refused(422, _FULL)

    def _taken(self, owner: Project, wanted: TagRule) -> list[str]:
        same = (rule for rule in self.section.of(owner) if rule.tag_name_pattern == wanted.tag_name_pattern)
        return [_TAKEN] if any(not rule.immutable and rule.id != wanted.id for rule in same) else []


def _pattern_faults(pattern: str) -> list[str]:
    if not pattern.strip():
        return ["Tag name pattern can't be blank"]
    if len(pattern) > 100:
        return ["Tag name pattern is too long (maximum is 100 characters)"]
    fault = _syntax_fault(pattern)
    return [f"Tag name pattern not valid RE2 syntax: {fault}"] if fault else []


_MOST_REPEATED = 1000
_IN_PYTHON = {r"\[:\^?[a-z]+:\]": "a-z", r"\\[pP](\{\^?\w+\}|[A-Z])": "x", r"\\z": "$", r"\\C": "."}
"""What RE2 has and Python writes in another way."""


def _syntax_fault(pattern: str) -> str:
    """Return RE2's error about a pattern; empty if it is valid."""
    looks = re.search(r"\(\?<?[=!]", pattern)
    if looks:
        return f"invalid perl operator: {looks[0]}"
    twice = re.search(r"(?<!\\)[*+?}][*+]", pattern)
    if twice:
        return f"bad repetition operator: {twice[0]}"
    sizes = [size[0] for size in re.finditer(r"\{([0-9]+)(,[0-9]*)?\}", pattern) if int(size[1]) > _MOST_REPEATED]
    if sizes:
        return f"invalid repetition size: {sizes[0]}"
    for theirs, ours in _IN_PYTHON.items():
        pattern = re.sub(theirs, ours, pattern)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # Python means to change what `[[` is
            re.compile(pattern)
    except re.error as error:
        if error.msg.startswith("nothing to repeat"):
            return f"no argument for repetition operator: {pattern[error.pos or 0]}"
        return f"missing ): {pattern}" if error.msg.startswith("missing )") else error.msg
    return ""


def _level_faults(call: Call, wanted: TagRule) -> list[str]:
    absent = [wanted.minimum_access_level_for_push, wanted.minimum_access_level_for_delete].count(None)
    if absent and not call.state.instance.enterprise:
        return ["Access levels should both be present"]
    if absent == 1:
        return ["Access levels should either both be present or both be nil"]
    return ["Cannot create an immutable tag rule from a protection rule"] if absent else []


def _unchanged(reason: str | list[str]) -> Refusal:
    return refused(422, {"error": reason})


RULES = _TagRules(
    "container_tag_protection_rules",
    TagRule,
    "/projects/:id/registry/protection/tag/rules",
    part="protection_rule_id",
    feature="container_registry_enabled",
    pages="never",
)
SECTIONS = (RULES.section, REGISTRY)
ROUTES = RULES.routes("list", "create", "update", "delete", update="PATCH", parameters_first=True)
