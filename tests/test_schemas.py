"""The JSON Schemas: up to date, explained throughout, and of one mind with the code."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from hypothesis import given
from jsonschema import Draft202012Validator, FormatChecker, ValidationError
from ruamel.yaml import YAML

from reconciler import __version__
from reconciler.configuration import read_configuration
from reconciler.document.document import RunDocument
from reconciler.document.stored import save
from reconciler.errors import LocatedDiagnostic, OutputFailed
from reconciler.manifests.documents import FULL_PATH
from reconciler.model.targets import Level
from reconciler.reports import render_validation
from reconciler.schema import write_schemas
from tests.building import KINDS
from tests.cli_runner import CliRunner
from tests.render.plans import patiently, reports, saved_plans
from tests.render.samples import done, sample

ROOT = Path(__file__).parent.parent
SCHEMAS = {file.name: json.loads(file.read_text(encoding="utf-8")) for file in sorted((ROOT / "schemas").iterdir())}
"""The schemas as they are published, by the name of the file."""

MANIFEST = SCHEMAS["manifest.schema.json"]
CONFIGURATION = SCHEMAS["config.schema.json"]

THE_CONTRACT = """
apiVersion: reconciler/v1
kind: Project
metadata:
  path: acme/payments/api
  profiles: [baseline]
  labels: {team: payments}
spec:
  prune: [job_token_scope]
  notification_settings:
    level: custom
    events: {failed_pipeline: true, new_issue: false}
  approval_settings:
    allow_author_approval: false
    selective_code_owner_removals: true
  container_repository_protection_rules:
    acme/payments/api/prod*:
      minimum_access_level_for_push: maintainer
      minimum_access_level_for_delete: admin
  job_token_scope:
    enabled: true
    projects: [acme/payments/lib, 1234]
    groups: [acme/platform]
  milestones:
    "2026.12":
      description: December release
      start_date: 2026-12-01
      due_date: 2026-12-31
      state: active
    "2026.11": {state: closed, renamed_from: "Nov 2026"}
  trigger_tokens:
    nightly-build: {}
    legacy-integration: null
---
apiVersion: reconciler/v1
kind: ProjectSet
metadata: {name: services, priority: 10, profiles: [baseline]}
select:
  group: acme
  include: ["acme/services/**"]
  exclude: ["acme/services/legacy-*"]
  archived: false
spec: {milestones: {}}
---
apiVersion: reconciler/v1
kind: User
spec: {notification_settings: {notification_email: null}}
---
apiVersion: reconciler/v1
kind: Group
metadata: {id: 12}
spec: {approval_settings: {allow_author_approval: false}}
---
apiVersion: reconciler/v1
kind: Profile
metadata: {name: baseline}
spec: {container_repository_protection_rules: {"{path}/prod*": null}, notification_settings: {level: watch}}
---
apiVersion: reconciler/v1
kind: Group
metadata: {path: acme/new-team}
create: {name: New Team, visibility: private, from_archive: templates/team.tar.gz}
---
apiVersion: reconciler/v1
kind: Project
metadata: {path: acme/new-team/api}
create:
  name: api
  import: {github: {repo_id: 5, token_env: GITHUB_TOKEN}}
"""


def unexpected(place: str, key: str) -> str:
    """What is said of a key that is not known."""
    return f"{place}: Additional properties are not allowed ('{key}' was unexpected)"


@pytest.mark.untraced
@pytest.mark.parametrize("name", SCHEMAS)
def test_the_schemas_are_schemas(name: str) -> None:
    schema = SCHEMAS[name]
    Draft202012Validator.check_schema(schema)
    stem = name.removesuffix(".schema.json")
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["$id"] == f"urn:reconciler:schema:{stem}:v1"


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_key_is_described(name: str) -> None:
    missing = [place for place, schema in properties(SCHEMAS[name]) if "description" not in schema]
    assert missing == []


@pytest.mark.untraced
def test_every_key_of_a_manifest_has_a_title_and_examples_that_are_right() -> None:
    for place, schema in properties(MANIFEST):
        assert schema["title"], place
        assert schema["examples"], place
        for example in schema["examples"]:
            assert faults(example, {**schema, "$defs": MANIFEST["$defs"]}) == [], place


@pytest.mark.parametrize("schema", [MANIFEST, CONFIGURATION])
def test_no_key_that_people_write_has_a_default(schema: dict[str, Any]) -> None:
    assert [place for place, inner in properties(schema) if "default" in inner] == []


def test_every_key_of_the_configuration_has_an_example_that_the_schema_and_the_reader_take(tmp_path: Path) -> None:
    for key, schema in CONFIGURATION["properties"].items():
        for example in schema["examples"]:
            assert faults({key: example}, CONFIGURATION) == [], key
            (tmp_path / "reconciler.yaml").write_text(json.dumps({key: example}))
            assert read_configuration(tmp_path / "reconciler.yaml") == {key: example}


def test_an_editor_is_told_which_texts_are_dates() -> None:
    dated = [place for place, schema in properties(MANIFEST) if '"format": "date"' in json.dumps(schema)]
    models = ("milestones.group.GroupMilestone", "milestones.project.Milestone", "epics.Epic")
    ends = [f"$defs.{model}.{name}" for model in models for name in ("start_date", "due_date")]
    assert dated == ["$defs.AcceptedDeviation.until", *ends]


def test_an_editor_is_told_how_an_age_is_written() -> None:
    (age,) = [schema for place, schema in properties(MANIFEST) if place.endswith(".rotate_after")]
    assert faults("90d", age) == []
    assert faults("P90D", age) != []
    assert faults("0d", age) != []
    assert '"format": "duration"' not in json.dumps(MANIFEST), "which is another way of writing"


def test_the_manifests_of_the_contract_are_valid() -> None:
    assert [faults(document, MANIFEST) for document in documents(THE_CONTRACT)] == [[]] * 7


OURS = [file for file in sorted((ROOT / "examples").rglob("*.yaml")) if "plugin" not in file.parts]
"""The examples that need no package of somebody else's."""


@pytest.mark.untraced
def test_the_examples_are_valid() -> None:
    texts = [file.read_text(encoding="utf-8") for file in OURS]
    manifests = [document for text in texts for document in documents(text) if "apiVersion" in document]
    assert len(manifests) >= len(KINDS)
    assert [faults(document, MANIFEST) for document in manifests] == [[]] * len(manifests)


def test_an_editor_finds_the_schema_of_every_document_of_the_examples() -> None:
    for file in OURS:
        for document in file.read_text(encoding="utf-8").split("\n---\n"):
            if "apiVersion: reconciler" in document:
                ways = re.findall(r"^# yaml-language-server: \$schema=(\S+)$", document, re.MULTILINE)
                assert [(file.parent / way).resolve() for way in ways] == [ROOT / "schemas/manifest.schema.json"], file


PRUNABLE = [kind.name for kind in KINDS.values() if kind.prunable and Level.PROJECT in kind.models]


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda it: it.pop("kind"), ["$: 'kind' is a required property"]),
        (
            lambda it: it.update(kind="Projekt"),
            ["$.kind: 'Projekt' is not one of ['Instance', 'User', 'Group', 'Project', 'Profile', 'ProjectSet']"],
        ),
        (lambda it: it.update(apiVersion="v1"), ["$.apiVersion: 'reconciler/v1' was expected"] * 2),
        (lambda it: it.pop("metadata"), ["$: 'metadata' is a required property"]),
        (lambda it: it.update(specs={}), [unexpected("$", "specs")]),
        (lambda it: it.update(select={"group": "acme"}), [unexpected("$", "select")]),
        (lambda it: it["metadata"].update(name="x"), [unexpected("$.metadata", "name")]),
        (
            lambda it: it["metadata"].update(id=12),
            ["$.metadata: {'path': 'acme/payments/api', 'profiles': ['baseline'], 'labels': {'team': 'payments'}, "
             "'id': 12} is valid under each of {'required': ['id']}, {'required': ['path']}"],
        ),
        (
            lambda it: it["metadata"].update(path="/acme"),
            [f"$.metadata.path: '/acme' does not match {FULL_PATH!r}"],
        ),
        (lambda it: it["spec"].update(milestone={}), [unexpected("$.spec", "milestone")]),
        (lambda it: it["spec"].update(milestones=None), ["$.spec.milestones: None is not of type 'object'"]),
        (
            lambda it: it["spec"].update(prune=["approval_settings"]),
            [f"$.spec.prune[0]: 'approval_settings' is not one of {PRUNABLE}"],
        ),
        (
            lambda it: it["spec"]["approval_settings"].update(allow_author_approval="no"),
            ["$.spec.approval_settings.allow_author_approval: 'no' is not of type 'boolean'"],
        ),
        (
            lambda it: it["spec"]["notification_settings"]["events"].update(new_isue=True),
            ["$.spec.notification_settings.events: 'new_isue' is not one of " + str(
                SCHEMAS["manifest.schema.json"]["$defs"]["notification_settings.project"]["properties"]["events"]
                ["propertyNames"]["enum"])],
        ),
        (
            lambda it: it["spec"]["notification_settings"].update(notification_email="a@b.example"),
            [unexpected("$.spec.notification_settings", "notification_email")],
        ),
        (
            lambda it: it["spec"]["job_token_scope"].update(projects=[0]),
            ["$.spec.job_token_scope.projects[0]: 0 is not of type 'string'",
             "$.spec.job_token_scope.projects[0]: 0 is less than or equal to the minimum of 0"],
        ),
        (
            lambda it: it["spec"]["milestones"].update(x={"due_date": "31.12.2026"}),
            ["$.spec.milestones.x.due_date: '31.12.2026' is not a 'date'",
             "$.spec.milestones.x.due_date: '31.12.2026' is not of type 'null'",
             "$.spec.milestones.x: {'due_date': '31.12.2026'} is not of type 'null'"],
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_manifest_is_told_at_its_place(
    spoil: Callable[[dict[str, Any]], object], words: list[str]
) -> None:
    manifest = documents(THE_CONTRACT)[0]
    spoil(manifest)
    assert faults(manifest, MANIFEST) == words


def test_a_set_is_of_a_group_or_of_projects() -> None:
    manifest = documents(THE_CONTRACT)[1]
    manifest["select"] = {}
    assert faults(manifest, MANIFEST) == [
        "$.select: 'group' is a required property",
        "$.select: 'projects' is a required property",
    ]


def test_an_import_has_no_visibility() -> None:
    manifest = documents(THE_CONTRACT)[-1]
    manifest["create"]["visibility"] = "private"
    (fault,) = faults(manifest, MANIFEST)
    assert fault.endswith("should not be valid under {'required': ['import', 'visibility']}")


@pytest.mark.untraced
@patiently
@given(saved_plans())
def test_saved_plans_are_valid(saved: RunDocument) -> None:
    assert faults(json.loads(save(saved)), SCHEMAS["plan.schema.json"]) == []


@pytest.mark.untraced
@patiently
@given(reports())
def test_saved_reports_are_valid(report: RunDocument) -> None:
    assert faults(json.loads(save(report)), SCHEMAS["report.schema.json"]) == []


WHERE_THEY_HOLD = {
    "StoredCreate": {"effect", "notes", "outcome", "part", "replaces_ids", "target_id"},
    "StoredCreated": {"below", "numbers", "read_only"},
    "StoredDelete": {"effect", "notes", "outcome", "part", "successor_id"},
    "StoredFinding": {"data", "part"},
    "StoredKeep": {"adopted", "after", "at_least", "id", "owner", "part", "prune"},
    "StoredNote": {"data"},
    "StoredOutcome": {"created", "unconfirmed"},
    "StoredRead": {"below", "numbers", "read_only"},
    "StoredTarget": {"again", "arriving", "digest", "done", "exceptions", "importing", "path"},
    "StoredUpdate": {"effect", "notes", "outcome", "part"},
}
"""The keys of items and targets that stand only where they hold."""


def test_every_other_key_of_what_commands_write_is_required() -> None:
    """Documents hold all their keys, whatever the values, but for those of items and targets."""
    outputs = [schema for schema in SCHEMAS.values() if schema not in (MANIFEST, CONFIGURATION)]
    objects = [part for schema in outputs for part in (schema, *schema["$defs"].values()) if "properties" in part]
    assert len(objects) > len(outputs)
    optional = {part["title"]: {*part["properties"]} - {*part["required"]} for part in objects}
    assert {title: keys for title, keys in optional.items() if keys} == WHERE_THEY_HOLD


@pytest.mark.parametrize("name", ["plan", "report"])
def test_the_schema_tells_what_is_said_and_leaves_unknown_codes_free(name: str) -> None:
    document = json.loads(save(sample() if name == "plan" else done()))
    schema = SCHEMAS[f"{name}.schema.json"]
    assert faults(document, schema) == []
    (own, *_) = (item for item in document["items"] if item.get("finding") == "unmanaged")
    for code, data in (("unmanaged", {"id": 1}), ("page", {}), ("source", {"source": "elsewhere"})):
        spoiled = {**document, "items": [{**own, "finding": code, "data": data}]}
        assert faults(spoiled, schema) != []
    unknown = {**own, "finding": "later", "data": {"any": [1]}}
    noted = {**document["items"][0], "notes": [{"code": "later", "reason": "x", "data": {"any": [1]}}]}
    assert faults({**document, "items": [unknown, noted]}, schema) == []


def test_validations_are_valid() -> None:
    text = render_validation(
        [LocatedDiagnostic("a.yaml", 3, 5, "odd"), LocatedDiagnostic("b.yaml", 0, 0, "empty", "", "warning")],
        {"project": 1},
        "json",
    )
    assert faults(json.loads(text), SCHEMAS["validation.schema.json"]) == []


@pytest.mark.untraced
def test_all_schemas_are_written_into_a_folder_and_the_files_here_are_up_to_date(tmp_path: Path) -> None:
    write_schemas(tmp_path / "new" / "schemas", KINDS)
    written = {file.name: file.read_text(encoding="utf-8") for file in (tmp_path / "new" / "schemas").iterdir()}
    here = {file.name: file.read_text(encoding="utf-8") for file in (ROOT / "schemas").iterdir()}
    assert here == written, "run: python -m reconciler schema --write schemas"


@pytest.mark.untraced
def test_a_folder_that_is_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "schemas").touch()
    with pytest.raises(OutputFailed, match=r"schemas/manifest\.schema\.json: File exists"):
        write_schemas(tmp_path / "schemas", KINDS)


def test_copies_are_checked_whatever_their_layout(cli_runner: CliRunner) -> None:
    copytree(ROOT / "schemas", cli_runner.folder / "copies")
    copy = cli_runner.folder / "copies" / "manifest.schema.json"
    copy.write_text(json.dumps(json.loads(copy.read_text(encoding="utf-8"))))
    (cli_runner.folder / "copies" / "report.schema.json").unlink()
    done = cli_runner("schema --check copies")
    assert (done.code, done.out, done.err) == (0, "", "")


def test_copies_of_another_version_are_told(cli_runner: CliRunner) -> None:
    copytree(ROOT / "schemas", cli_runner.folder / "copies")
    cli_runner.write("copies/manifest.schema.json", "{}")
    cli_runner.write("copies/config.schema.json", "{")
    done = cli_runner("schema --check copies")
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        f"reconciler: of another version than {__version__}: copies/manifest.schema.json, copies/config.schema.json; "
        "renew them with: reconciler schema --write copies\n"
    )
    cli_runner("schema --write copies")
    assert cli_runner("schema --check copies").code == 0


def test_a_folder_without_copies_is_told(cli_runner: CliRunner) -> None:
    done = cli_runner("schema --check copies")
    assert (done.code, done.out) == (1, "")
    assert done.err == "reconciler: copies: holds no schemas; write them with: reconciler schema --write copies\n"


def test_one_schema_is_asked_for_in_one_way(cli_runner: CliRunner) -> None:
    done = cli_runner("schema manifest --check copies")
    assert (done.code, done.err) == (64, "reconciler: schema takes one of NAME, --write and --check\n")


def documents(text: str) -> list[Any]:
    """The documents of a YAML text, days as text."""
    loaded = YAML(typ="safe", pure=True).load_all(text)
    return [json.loads(json.dumps(document, default=str)) for document in loaded]


def faults(value: object, schema: dict[str, Any]) -> list[str]:
    """What a schema says is wrong with a value, and where; of alternatives, what is wrong with each."""
    validator = Draft202012Validator(schema, format_checker=FormatChecker())
    return [f"{fault.json_path}: {fault.message}" for error in validator.iter_errors(value) for fault in leaves(error)]


def leaves(error: ValidationError) -> Iterator[ValidationError]:
    """An error, or all those that led to it."""
    if not error.context:
        yield error
    for each in error.context or ():
        yield from leaves(each)


def properties(schema: Any, place: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema of a key, with its place."""
    if isinstance(schema, list):
        for each in schema:
            yield from properties(each, place)
    elif isinstance(schema, dict):
        for name, inner in schema.items():
            if name == "properties" and "if" not in place:
                for key, value in inner.items():
                    yield f"{place}.{key}".lstrip("."), value
                    yield from properties(value, f"{place}.{key}")
            elif name == "$defs":
                for key, value in inner.items():
                    yield from properties(value, f"{place}.$defs.{key}".lstrip("."))
            elif name not in {"if", "examples", "default", "const", "enum", "discriminator"}:
                yield from properties(inner, place)
