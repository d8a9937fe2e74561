"""Approval rules of projects: how many of which users and groups must approve, and for which protected branches.

The spec does not define these endpoints; they follow production servers. Users who are no members, groups that the
caller cannot see and branches that nobody protects are dropped without a word.
"""

from collections.abc import Iterable
from typing import Any, Literal

from pydantic import Field

from ..answers import Answer, refused
from ..call import Call, Insertion
from ..collection import PAGE, RouteCollection, page_of
from ..parameters import boolean, integer, integers, read, text, texts
from ..records import AnyUsername, DatedItem, GroupId
from ..state import MAINTAINER, REPORTER, Group, Project, SandboxState
from .approval_settings import OF_INSTANCE
from .audit_events import note_event
from .instance import show_group, show_user
from .protected_branches import all_rules, show_rule

Type = Literal["any_approver", "regular", "report_approver", "code_owner"]
TYPES: tuple[Type, ...] = ("any_approver", "regular", "report_approver", "code_owner")
COVERAGE = "Coverage-Check"
_ALL = "applies_to_all_protected_branches"
_SCANNERS = ("sast", "secret_detection", "dependency_scanning", "container_scanning", "dast", "api_fuzzing")
_FIELDS = (
    texts("usernames"),
    *(integers(name) for name in ("user_ids", "users", "group_ids", "groups", "protected_branch_ids")),
    boolean(_ALL),
    texts("scanners"),
)
_NEW = (
    text("name", required=True),
    integer("approvals_required", required=True),
    text("rule_type"),
    text("report_type", values=("code_coverage",)),
    *_FIELDS,
)
_CHANGES = (text("name"), integer("approvals_required"), boolean("remove_hidden_groups"), *_FIELDS)


class ApprovalRuleRecord(DatedItem):
    """A rule; without branches it is for all branches."""

    name: str
    rule_type: Type = "regular"
    approvals_required: int = 0
    users: list[AnyUsername] = Field(default_factory=list)
    group_ids: list[GroupId] = Field(default_factory=list)
    protected_branch_ids: list[int] = Field(default_factory=list)
    applies_to_all_protected_branches: bool = False
    report_type: Literal["code_coverage"] | None = None


class _ApprovalRules(RouteCollection[ApprovalRuleRecord]):
    """The rules of a project. An index keeps the rule for any approver unique; no index does so for names."""

    def list_items(self, call: Call) -> Answer:
        """Answer with rules by type and ID; those of code owners are not listed."""
        read(call, *PAGE)
        owner = self.owner(call)
        rules = [rule for rule in self.section.of(owner) if rule.rule_type != "code_owner"]
        rules.sort(key=lambda rule: (TYPES.index(rule.rule_type), rule.id))
        return page_of(call, rules, lambda rule: self.show(call, owner, rule))

    def create(self, call: Call) -> Insertion:
        """Check a new rule; an unknown type is an unexpected error of the service."""
        sent = read(call, *_NEW)
        self.owner_to_write(call)
        if sent.get("rule_type") not in (None, *TYPES) or sent.get(_ALL, False) is None:
            raise refused(500, "500 Internal Server Error")
        return super().create(call)

    def update(self, call: Call) -> Answer:
        """Change a rule."""
        if read(call, *_CHANGES).get(_ALL, False) is None:
            self.owner_to_write(call)
            raise refused(500, "500 Internal Server Error")
        return super().update(call)

    def read_new(self, call: Call) -> dict[str, Any]:
        """Return the attributes of a new rule."""
        return read(call, *_NEW)

    def read_changes(self, call: Call) -> dict[str, Any]:
        """Return the attributes of a change, without those that the service drops."""
        sent = read(call, *_CHANGES)
        owner = self.owner_to_write(call)
        return self._values(call, owner, sent, self.find(call, owner, self.key(call)))

    def owner(self, call: Call) -> Project:
        """Return the project for its reporters; where it is archived, or has no merge requests, for maintainers."""
        call.caller()
        project = call.visible_project()
        if not call.state.instance.licensed:
            raise refused(403, "403 Forbidden")
        closed = call.state.is_archived(project) or not project.merge_requests_enabled
        if closed:
            call.require(project, MAINTAINER)
        elif project.visibility == "private":
            call.require(project, REPORTER)
        return project

    def owner_to_write(self, call: Call) -> Project:
        """Return the project for its maintainers; if the instance forbids changes, for administrators."""
        project = self.owner(call)
        call.require(project, MAINTAINER)
        if not OF_INSTANCE.of(call.state.instance).allow_overrides_to_approver_list_per_merge_request:
            call.instance()
        return project

    def items(self, call: Call, owner: Project) -> list[ApprovalRuleRecord]:
        """Return the rules, without users who have left, and without branches that nobody protects any more."""
        state, known = call.state, {rule.id for _, rule in all_rules(call.state, owner)}
        for rule in self.section.of(owner):
            rule.users = [name for name in rule.users if _is_member(state, name, owner)]
            rule.group_ids = [number for number in rule.group_ids if number in state.groups]
            rule.protected_branch_ids = [number for number in rule.protected_branch_ids if number in known]
        return self.section.of(owner)

    def make(self, call: Call, owner: Project, sent: dict[str, Any]) -> ApprovalRuleRecord:
        """Return a new rule: a rule without approvers is for any approver."""
        approvers = ("usernames", "user_ids", "users", "group_ids", "groups")
        sort = sent.get("rule_type") or ("regular" if any(sent.get(name) for name in approvers) else "any_approver")
        values = self._values(call, owner, sent, ApprovalRuleRecord(name=""))
        return ApprovalRuleRecord.model_construct(
            **{**values, "rule_type": sort, "report_type": sent.get("report_type")},
        )

    def check(self, call: Call, owner: Project, wanted: ApprovalRuleRecord, before: ApprovalRuleRecord | None) -> None:
        """Refuse an invalid rule with 400."""
        others = [rule for rule in self.items(call, owner) if rule is not before and rule.rule_type == wanted.rule_type]
        taken = any(rule.name == wanted.name for rule in others)
        wrong = {
            "name": _name_faults(wanted, taken=taken and wanted.rule_type != "any_approver"),
            "approvals_required": _number_faults(wanted.approvals_required),
            "rule_type": _TAKEN if wanted.rule_type == "any_approver" and others else [],
            "report_type": _report_faults(wanted) if wanted.rule_type == "report_approver" else [],
            "scanners": _scanner_faults(call.sent.get("scanners")),
        }
        _refuse({name: reasons for name, reasons in wrong.items() if reasons})

    def check_again(self, call: Call, owner: Project, wanted: ApprovalRuleRecord) -> None:
        """Refuse a second rule for any approver."""
        same = any(rule.rule_type == "any_approver" for rule in self.items(call, owner))
        _refuse({"rule_type": _TAKEN} if same and wanted.rule_type == "any_approver" else {})

    def show(self, call: Call, owner: Project, item: ApprovalRuleRecord) -> dict[str, Any]:
        """Return the record of a rule, with whole records of its subjects, as far as the caller can see them."""
        state = call.state
        self.items(call, owner)
        groups = [state.groups[number] for number in item.group_ids]
        seen = [group for group in groups if state.visible(call.user, group)]
        names = {*item.users, *(member.user for group in groups for member in group.members)}
        known = (state.user(name) for name in names)
        eligible = sorted((user for user in known if not user.blocked), key=lambda user: user.id)
        branches = [
            show_rule(state, owner, holder, rule)
            for holder, rule in all_rules(state, owner)
            if item.applies_to_all_protected_branches or rule.id in item.protected_branch_ids
        ]
        return {
            "id": item.id,
            "name": item.name,
            "rule_type": item.rule_type,
            "eligible_approvers": [show_user(call, user) for user in eligible],
            "approvals_required": item.approvals_required,
            "users": [show_user(call, state.user(name)) for name in item.users],
            "groups": [show_group(call, group) for group in seen],
            "contains_hidden_groups": len(seen) < len(groups),
            "report_type": item.report_type,
            "protected_branches": branches,
            _ALL: item.applies_to_all_protected_branches,
        }

    def add(self, call: Call, owner: Project, item: ApprovalRuleRecord) -> None:
        """Keep a new rule."""
        super().add(call, owner, item)
        message = f"Added approval rule with number of required approvals of {item.approvals_required}"
        for line in (message, *_approver_changes(call.state, ApprovalRuleRecord(name=""), item)):
            note_event(call, owner, "approval_rule_created", line, _about(item))
        _note_branches(call, owner, ApprovalRuleRecord(name=""), item)

    def save(self, call: Call, item: ApprovalRuleRecord, wanted: ApprovalRuleRecord) -> None:
        """Save a change."""
        before = item.model_copy()
        super().save(call, item, wanted)
        owner = call.project(self.role)
        for message in _approver_changes(call.state, before, item):
            note_event(call, owner, "update_approval_rules", message, _about(item))
        for change, name in (("number of required approvals", "approvals_required"), ("name", "name")):
            both = {"from": str(getattr(before, name)), "to": str(getattr(item, name))}
            if both["from"] != both["to"]:
                message = f"Changed {change} from {both['from']} to {both['to']}"
                note_event(call, owner, "update_approval_rules", message, _about(item), change=change, **both)
        _note_branches(call, owner, before, item)

    def remove(self, call: Call, owner: Project, item: ApprovalRuleRecord) -> None:
        """Remove a rule."""
        super().remove(call, owner, item)
        note_event(call, owner, "approval_rule_deleted", "Deleted approval rule", _about(item))

    def _values(self, call: Call, owner: Project, sent: dict[str, Any], before: ApprovalRuleRecord) -> dict[str, Any]:
        """Return the fields of a rule by the parameters of a request."""
        state = call.state
        values: dict[str, Any] = {name: sent[name] for name in ("name", "approvals_required") if name in sent}
        if "name" in values:
            values["name"] = values["name"] or ""
        if sent.keys() & {"usernames", "user_ids", "users"}:
            numbers = [*(sent.get("user_ids") or ()), *(sent.get("users") or ())]
            exact = [state.users_by_name.get(name.lower()) for name in sent.get("usernames") or ()]
            named = [user for user, name in zip(exact, sent.get("usernames") or (), strict=True) if _is(user, name)]
            users = [*(state.users.get(number) for number in numbers), *named]
            names = dict.fromkeys(user.username for user in users if user)
            members = [name for name in names if _is_member(state, name, owner)]
            values["users"] = [name for name in members if state.has_settled(state.user(name), owner)]
        if sent.keys() & {"group_ids", "groups"}:
            hidden = [number for number in before.group_ids if not _is_seen(call, number)]
            numbers = [*(sent.get("group_ids") or ()), *(sent.get("groups") or ())]
            kept = [] if sent.get("remove_hidden_groups") else hidden
            values["group_ids"] = [*kept, *(number for number in dict.fromkeys(numbers) if _is_seen(call, number))]
        if "protected_branch_ids" in sent:
            known = {rule.id for _, rule in all_rules(state, owner)}
            wanted = sent["protected_branch_ids"] or ()
            values["protected_branch_ids"] = [number for number in dict.fromkeys(wanted) if number in known]
        if _ALL in sent:
            values[_ALL] = sent[_ALL]
        return values


def _about(rule: ApprovalRuleRecord) -> tuple[str, int, str]:
    return "ApprovalProjectRule", rule.id, rule.name


def _approver_changes(state: SandboxState, before: ApprovalRuleRecord, after: ApprovalRuleRecord) -> list[str]:
    """Return the audit's words about approvers who were added and removed."""
    old, new = (
        [
            *(f"User {state.user(name).name}" for name in rule.users),
            *(f"Group {state.groups[number].name}" for number in rule.group_ids),
        ]
        for rule in (before, after)
    )
    where = f"approval group on {after.name} rule"
    added = [f"Added {name} to {where}" for name in new if name not in old]
    return [*added, *(f"Removed {name} from {where}" for name in old if name not in new)]


def _note_branches(call: Call, owner: Project, before: ApprovalRuleRecord, after: ApprovalRuleRecord) -> None:
    """Note in the audit that a rule is for other branches, if that is so."""
    old, new = (_branches(call.state, owner, rule) for rule in (before, after))
    if old != new:
        note_event(call, owner, "update_approval_rules", f"Changed target branch to {new}", _about(after))


def _branches(state: SandboxState, project: Project, rule: ApprovalRuleRecord) -> str:
    """Return the branches of a rule in the words of the audit."""
    if rule.applies_to_all_protected_branches:
        return "all protected branches"
    names = [branch.name for _, branch in all_rules(state, project) if branch.id in rule.protected_branch_ids]
    return f"{', '.join(names)} branch{'es' * (len(names) > 1)}" if names else "all branches"


_TAKEN = ["any-approver for the project already exists"]


def _is(user: Any, name: str) -> bool:
    return user is not None and user.username == name


def _is_member(state: SandboxState, name: str, project: Project) -> bool:
    user = state.users_by_name.get(name.lower())
    return user is not None and state.membership(user, project) > 0


def _is_seen(call: Call, number: int) -> bool:
    group: Group | None = call.state.groups.get(number)
    return group is not None and call.state.visible(call.user, group)


def _name_faults(wanted: ApprovalRuleRecord, *, taken: bool) -> list[str]:
    if not wanted.name.strip():
        return ["can't be blank"]
    if len(wanted.name) > 1024:
        return ["is too long (maximum is 1024 characters)"]
    if wanted.name == COVERAGE and wanted.rule_type == "regular":
        return [f"{COVERAGE} is reserved for code_coverage report type"]
    return ["has already been taken"] if taken else []


def _number_faults(number: int | None) -> list[str]:
    if number is None:
        return ["is not a number"]
    if number > 100:
        return ["must be less than or equal to 100"]
    return [] if number >= 0 else ["must be greater than or equal to 0"]


def _report_faults(wanted: ApprovalRuleRecord) -> list[str]:
    if wanted.report_type is None:
        return ["can't be blank"]
    return [] if wanted.name == COVERAGE else [f"code_coverage only supports {COVERAGE} name"]


def _scanner_faults(sent: Iterable[str] | None) -> list[str]:
    return [] if set(sent or ()) <= set(_SCANNERS) else ["is not included in the list"]


def _refuse(wrong: dict[str, list[str]]) -> None:
    """Refuse with 400 if there are errors."""
    if wrong:
        raise refused(400, wrong)


RULES = _ApprovalRules("approval_rules", ApprovalRuleRecord, "/projects/:id/approval_rules", part="approval_rule_id")
SECTIONS = (RULES.section,)
ROUTES = RULES.routes()
