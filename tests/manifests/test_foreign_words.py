"""Keys of the service's API and of other tools are answered by what they mean here, never by their spelling."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from reconciler.errors import ManifestErrors
from reconciler.model.endpoints import Singleton
from reconciler.model.foreign_keys import EVERYWHERE, Alias, ForeignKeys, opposite
from reconciler.model.kind import FOREIGN_SECTIONS, Kind
from reconciler.model.resource import Resource
from reconciler.model.targets import Level
from tests.building import KINDS
from tests.cli_runner import CliRunner
from tests.manifests.conftest import Folder
from tests.test_every_kind import models

TABLE = Path(__file__).with_name("foreign_words.txt")

ITEMS = {
    "approval_rules": "Security",
    "container_repository_protection_rules": "{path}/*",
    "container_tag_protection_rules": "v.+",
    "epics": "Roadmap",
    "milestones": "1.0",
    "package_protection_rules": "npm:@acme/*",
    "protected_branches": "main",
    "protected_tags": "v*",
    "scim_identities": "ada@example.com",
    "service_accounts": "deploy-bot",
    "trigger_tokens": "nightly",
}
"""The name of an item, by section; the other sections hold fields themselves."""

METADATA = {"Project": "{path: acme/p%d}", "Group": "{path: acme/g%d}", "Instance": "{}", "User": "{}"}

TAKEN: Mapping[str, Mapping[str, str]] = {
    "approval_settings": {
        "api": "approvals_before_merge reset_approvals_on_push selective_code_owner_removals "
        "disable_overriding_approvers_per_merge_request merge_requests_author_approval "
        "merge_requests_disable_committers_approval require_password_to_approve require_reauthentication_to_approve "
        "allow_author_approval allow_committer_approval allow_overrides_to_approver_list_per_merge_request "
        "retain_approvals_on_push prevent_merge_requests_author_approval prevent_merge_requests_committers_approval",
        "policies": "prevent_approval_by_author prevent_approval_by_commit_author remove_approvals_with_new_commit "
        "require_password_to_approve",
        "gitlabform": "reset_approvals_on_push disable_overriding_approvers_per_merge_request "
        "merge_requests_author_approval merge_requests_disable_committers_approval",
        "terraform": "id project group keep_settings_on_destroy reset_approvals_on_push selective_code_owner_removals "
        "disable_overriding_approvers_per_merge_request merge_requests_author_approval "
        "merge_requests_disable_committers_approval",
    },
    "approval_rules": {
        "api": "id name rule_type report_type approvals_required usernames user_ids group_ids protected_branch_ids "
        "applies_to_all_protected_branches users groups eligible_approvers contains_hidden_groups protected_branches",
        "gitlabform": "approvals_required name rule_type users groups protected_branches enforce",
        "terraform": "approvals_required name project applies_to_all_protected_branches group_ids protected_branch_ids "
        "disable_importing_default_any_approver_rule_on_create report_type rule_type user_ids id",
    },
    "protected_branches": {
        "api": "id name push_access_level merge_access_level unprotect_access_level push_access_levels inherited "
        "merge_access_levels unprotect_access_levels allow_force_push code_owner_approval_required allowed_to_push "
        "allowed_to_merge allowed_to_unprotect developers_can_push developers_can_merge",
        "gitlabform": "protected push_access_level merge_access_level unprotect_access_level allow_force_push "
        "code_owner_approval_required allowed_to_push allowed_to_merge allowed_to_unprotect",
        "terraform": "branch project group allow_force_push allowed_to_merge allowed_to_push allowed_to_unprotect "
        "code_owner_approval_required merge_access_level push_access_level branch_protection_id id",
    },
    "protected_tags": {
        "api": "name create_access_level create_access_levels allowed_to_create",
        "gitlabform": "protected create_access_level allowed_to_create",
        "terraform": "project tag allowed_to_create create_access_level id",
    },
    "job_token_scope": {
        "api": "enabled inbound_enabled outbound_enabled target_project_id target_group_id "
        "ci_inbound_job_token_scope_enabled ci_job_token_scope_enabled",
        "gitlabform": "limit_access_to_this_project allowlist enforce",
        "terraform": "project enabled target_group_ids target_project_ids target_group_id target_project_id id",
    },
    "milestones": {
        "api": "id iid project_id group_id title description due_date start_date state state_event created_at "
        "updated_at expired web_url",
        "terraform": "project title description due_date start_date state created_at expired id iid milestone_id "
        "project_id updated_at web_url",
    },
    "epics": {
        "api": "id iid group_id parent_id title description labels add_labels remove_labels confidential color author "
        "start_date start_date_is_fixed start_date_fixed start_date_from_milestones start_date_from_inherited_source "
        "due_date due_date_is_fixed due_date_fixed due_date_from_milestones due_date_from_inherited_source end_date "
        "state state_event created_at updated_at web_url",
    },
    "trigger_tokens": {
        "api": "id description token owner last_used trigger_id created_at updated_at",
        "terraform": "description project id pipeline_trigger_id token",
    },
    "service_accounts": {
        "api": "id username name email unconfirmed_email",
        "terraform": "email name timeouts username id service_account_id skip_wait_for_deletion group",
    },
    "scim_identities": {"api": "extern_uid user_id active", "scim": "id externalId userName"},
    "error_tracking_client_keys": {"api": "id active public_key sentry_dsn"},
    "container_repository_protection_rules": {
        "api": "id project_id repository_path_pattern minimum_access_level_for_push minimum_access_level_for_delete "
        "container_path_pattern push_protected_up_to_access_level delete_protected_up_to_access_level",
        "terraform": "project repository_path_pattern minimum_access_level_for_delete minimum_access_level_for_push id "
        "protection_rule_id",
    },
    "container_tag_protection_rules": {
        "api": "id project_id tag_name_pattern minimum_access_level_for_push minimum_access_level_for_delete",
        "terraform": "project tag_name_regex immutable minimum_access_level_for_delete minimum_access_level_for_push "
        "timeouts id protection_rule_id",
    },
    "package_protection_rules": {
        "api": "id project_id package_name_pattern package_type minimum_access_level_for_push "
        "minimum_access_level_for_delete push_protected_up_to_access_level",
        "terraform": "package_name_pattern package_type project minimum_access_level_for_delete "
        "minimum_access_level_for_push id package_protection_rule_id",
    },
    "notification_settings": {
        "api": "level notification_email new_note new_issue reopen_issue close_issue reassign_issue issue_due "
        "new_merge_request push_to_merge_request reopen_merge_request close_merge_request reassign_merge_request "
        "merge_merge_request failed_pipeline fixed_pipeline success_pipeline moved_project "
        "merge_when_pipeline_succeeds new_epic",
        "terraform": "project id level close_issue merge_when_pipeline_succeeds",
    },
}
"""The keys that others have for a section, by where they come from."""

SECTIONS = {
    "gitlabform": "merge_requests_approvals merge_requests_approval_rules branches group_protected_branches tags "
    "job_token_scope project_settings group_settings members group_members deploy_keys variables group_variables hooks "
    "group_hooks labels group_labels badges group_badges files integrations schedules project_push_rules "
    "group_push_rules protected_environments resource_groups remote_mirrors group_ldap_links group_saml_links project "
    "project_security_settings",
    "terraform": "gitlab_branch_protection gitlab_group_branch_protection gitlab_tag_protection gitlab_project_milestone "
    "gitlab_project_approval_rule gitlab_project_level_mr_approvals gitlab_group_level_mr_approvals "
    "gitlab_project_job_token_scope gitlab_project_job_token_scopes gitlab_pipeline_trigger "
    "gitlab_instance_service_account gitlab_group_service_account gitlab_project_level_notifications "
    "gitlab_global_level_notifications gitlab_project_container_repository_protection "
    "gitlab_project_container_tag_protection gitlab_project_package_protection_rule",
    "api": "merge_request_approval_setting merge_request_approval_settings triggers protected_branches protected_tags",
}
"""What others call sections."""


def document(number: int, section: str, key: str, value: object) -> str:
    """Return a document of one line."""
    level = [*KINDS[section].models][-1].document_kind
    name = ITEMS.get(section)
    inner = f"{{{key}: {value}}}" if name is None else f'{{"{name}": {{{key}: {value}}}}}'
    metadata = METADATA[level] % number if "%" in METADATA[level] else METADATA[level]
    return f"{{apiVersion: reconciler/v1, kind: {level}, metadata: {metadata}, spec: {{{section}: {inner}}}}}\n"


def rows() -> Iterator[tuple[str, str, str]]:
    """Yield section, key and value for each foreign key, with each value that has an answer of its own."""
    for section in sorted(KINDS):
        tables = [model.foreign_keys for model in models(section)]
        assert all(table == tables[0] for table in tables)
        for key, words in tables[0].items():
            lines = words.lines if isinstance(words, Alias) else {}
            for value in [*lines, 7]:
                yield section, key, str(value).lower()
    for key in EVERYWHERE:
        yield "milestones", key, "true"


def answers(folder: Folder, manifests: list[str]) -> list[str]:
    """Read each manifest, and return the one message about each."""
    said = []
    for text in manifests:
        folder.put("a.yaml", text)
        try:
            said.append("".join(warning.message for warning in folder.read().warnings))
        except ManifestErrors as errors:
            said += [line.split(": ", 1)[1] for line in str(errors).splitlines() if line.startswith("a.yaml:1:")]
    assert len(said) == len(manifests)
    return said


@pytest.mark.untraced
def test_each_foreign_key_is_answered_by_what_it_means(folder: Folder) -> None:
    """The whole table stands in a file that people read: `true` and `false` are told apart where they are inverted."""
    told = [*rows()]
    said = answers(folder, [document(number, *row) for number, row in enumerate(told)])
    lines = [
        f"{section}: {key}: {value}\n    {words}\n" for (section, key, value), words in zip(told, said, strict=True)
    ]
    assert "".join(lines) == TABLE.read_text()


@pytest.mark.untraced
def test_each_line_that_an_answer_says_to_write_is_right(folder: Folder) -> None:
    advised = [
        (section, *line.split(": ", 1))
        for section in KINDS
        for model in models(section)
        for words in model.foreign_keys.values()
        for line in (words.lines.values() if isinstance(words, Alias) else ())
    ]
    done = [document(number, section, key, value) for number, (section, key, value) in enumerate(advised)]
    assert len(advised) > 30
    said = answers(folder, done)
    assert {words for words in said if not words.startswith("GitLab drops this level")} == {""}


@pytest.mark.parametrize("section", sorted(KINDS))
def test_a_key_of_others_is_one_of_ours_or_has_an_answer(section: str) -> None:
    ours = {name for model in models(section) for name in model.model_fields}
    answered = {*EVERYWHERE, *(key for model in models(section) for key in model.foreign_keys)}
    theirs = {key for keys in TAKEN[section].values() for key in keys.split()}
    assert theirs - ours - answered == set()
    assert not answered & ours


@pytest.mark.untraced
def test_a_section_of_others_is_named_as_it_is_here_or_not_guessed(folder: Folder, cli_runner: CliRunner) -> None:
    names = [name for names in SECTIONS.values() for name in names.split() if name not in KINDS]
    head = "{apiVersion: reconciler/v1, kind: Project, metadata: {path: acme/p%d}, spec: {%s: {}}}\n"
    said = answers(folder, [head % (number, name) for number, name in enumerate(names)])
    aliases = {word: name for name, kind in KINDS.items() for word in kind.foreign_names}
    for name, words in zip(names, said, strict=True):
        plain = name.removeprefix("gitlab_")
        if plain == "labels":
            assert words == "`labels` belongs under `metadata`"
        elif plain in FOREIGN_SECTIONS:
            assert words.startswith(f"unknown section `{plain}`; known are prune, unmanaged, ")
        else:
            assert words == f"`{plain}` is `{aliases[plain]}` here"
    cli_runner.project("{}")
    assert cli_runner("plan --section branches").err == "reconciler: `branches` is `protected_branches` here\n"


def test_what_is_nearly_a_foreign_key_gets_its_answer_and_no_guess_turns_a_meaning_round(folder: Folder) -> None:
    folder.put(
        "a.yaml",
        "apiVersion: reconciler/v1\nkind: Project\n"
        "metadata:\n  path: acme/api\n  exceptions:\n"
        "  - {section: approval_settings, fields: [reset_approvals_on_push], until: 2030-01-01, reason: a}\n"
        "  - {section: branches, until: 2030-01-01, reason: a}\n"
        "spec:\n  prune: [tags]\n  unmanaged: [triggers]\n"
        "  approval_settings:\n    reset_aprovals_on_push: true\n    disallow_author_approval: true\n"
        "    allow_author_aproval: true\n"
        "  milestones: {enforce: true}\n"
        "  protected_tags:\n    v1:\n      allowed_to_create: [{user_id: 3}]\n"
        "    v2: {allowed_to_create: [{access_level: 40}]}\n    v3: {allowed_to_create: [{access_level: admin}]}\n"
        "    v4: {allowed_to_create: [{access_level: 0}]}\n    v5: {allowed_to_create: [{group_id: x}]}\n"
        "    v6: {allowed_to_create: [{deploy_key_id: 5}]}\n    v7: {allowed_to_create: [{user: a, group: b}]}\n",
    )
    retained = "`reset_approvals_on_push: true` is `retain_approvals_on_push: false` here"
    an_entry = (
        "an entry is a role (developer, maintainer or admin), or one of {user: NAME}, {group: PATH} and "
        "{deploy_key: TITLE}"
    )
    said = [line.split(": ", 1) for line in folder.faults().splitlines() if line.startswith("a.yaml")]
    assert [words for _, words in said] == [
        f"{retained} and `reset_approvals_on_push: false` is `retain_approvals_on_push: true` here",
        "`branches` is `protected_branches` here",
        "`tags` is `protected_tags` here",
        "`triggers` is `trigger_tokens` here",
        f"unknown key `reset_aprovals_on_push`: {retained}",
        "unknown key `disallow_author_approval`; known are allow_author_approval, allow_committer_approval, "
        "allow_overrides_to_approver_list_per_merge_request, retain_approvals_on_push, selective_code_owner_removals "
        "and require_reauthentication_to_approve",
        "unknown key `allow_author_aproval`; did you mean `allow_author_approval`?",
        "`enforce: true` is `prune: [SECTION]` in `spec` here",
        "`user_id: 3` is `{user: 3}` here",
        "`access_level: 40` is the entry `maintainer` here",
        "`access_level: admin` is the entry `admin` here",
        "nobody is the empty list: []",
        an_entry,
        "`deploy_key_id: 5` is `{deploy_key: 5}` here",
        an_entry,
    ]


class Wiki(Resource):
    """The section of a stranger's kind."""

    foreign_keys: ClassVar[ForeignKeys] = {
        "locked": opposite("editable"),
        "title": "the title is that of the project",
        "sidebar": Alias("menu"),
    }

    editable: bool = True
    menu: str = ""


WIKI = Kind(
    name="wiki",
    summary="A wiki.",
    models={Level.PROJECT: Wiki},
    parts=(Singleton("wiki", "wiki", "wiki", Wiki),),
    foreign_names=("project_wiki",),
)


def test_a_kind_of_a_package_has_foreign_words_too(folder: Folder) -> None:
    spec: list[Any] = ["wiki: {locked: false, title: a, sidebar: b, id: 1}", "project_wiki: {}"]
    for name, section in zip("ab", spec, strict=True):
        manifest = f"apiVersion: reconciler/v1\nkind: Project\nmetadata: {{path: acme/{name}}}\nspec: {{{section}}}\n"
        folder.put(f"{name}.yaml", manifest)
    said = folder.faults(kinds={"wiki": WIKI}).splitlines()
    assert [line.split(": ", 1)[1] for line in said if ".yaml" in line] == [
        "`locked: false` is `editable: true` here",
        "the title is that of the project",
        "`sidebar` is `menu` here",
        "the service sets this: leave it out",
        "`project_wiki` is `wiki` here",
    ]
