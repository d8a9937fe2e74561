"""The JSON Schemas (draft 2020-12) of manifests, the configuration and outputs, for editors and other programs.

Begin with `schema_of`. Manifests come from the models of documents and kinds, everything else from its own type.
"""

import json
from collections.abc import Collection, Mapping
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any, get_args

from pydantic import TypeAdapter, with_config
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core.core_schema import (
    BeforeValidatorFunctionSchema,
    ComputedField,
    DataclassField,
    ModelField,
    TypedDictField,
    TypedDictSchema,
    WithDefaultSchema,
)
from typing_extensions import get_original_bases, is_typeddict

from reconciler import SCHEMAS, __version__
from reconciler.configuration import Configuration
from reconciler.document.checksum import DOCUMENT
from reconciler.document.compare import StoredComparison
from reconciler.document.diagnosis import Diagnosis
from reconciler.document.document import PLAN, REPORT, Head
from reconciler.document.stored import StoredPlan, StoredReport
from reconciler.errors import ConfigurationError
from reconciler.manifests.documents import DOCUMENTS, LEVEL_OF, LEVELS_OF
from reconciler.manifests.layers import ALL, PRUNE, UNMANAGED, section_specs
from reconciler.model.item import DATA
from reconciler.model.kind import Kind, Kinds
from reconciler.model.resource import Item, Resource
from reconciler.model.targets import Level
from reconciler.model.wording import one
from reconciler.reports.history import History
from reconciler.reports.json import Validation
from reconciler.reports.log import Log
from reconciler.system.files import save

Schema = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"

CHECKSUM = {
    "title": "Checksum",
    "description": "SHA-256 of the rest of the document; an edited document is refused.",
    "type": "string",
}


class OutputSchemas(GenerateJsonSchema):
    """Turns dataclasses into schemas of outputs, which have every key."""

    def default_schema(self, schema: WithDefaultSchema) -> JsonSchemaValue:
        """Return a schema without the default: outputs have every key."""
        return self.generate_inner(schema["schema"])

    def computed_field_schema(self, schema: ComputedField) -> JsonSchemaValue:
        """Return the schema of a computed field as that of any other field."""
        return self.generate_inner(schema["return_schema"])

    def typed_dict_schema(self, schema: TypedDictSchema) -> JsonSchemaValue:
        """Return a schema that also describes inherited keys."""
        # pydantic reads attribute docstrings only from the body of the class itself
        written = super().typed_dict_schema(schema)
        for base in get_original_bases(schema["cls"]):
            described = _described(base)["properties"] if is_typeddict(base) else {}
            for name, inherited in described.items():
                written["properties"][name].setdefault("description", inherited["description"])
        return written

    def field_is_required(self, field: ModelField | DataclassField | TypedDictField, total: bool) -> bool:
        """Return whether a key is required: all keys except `NotRequired` ones."""
        del total
        return bool(field.get("required", True))


class InputSchemas(GenerateJsonSchema):
    """Turns models into schemas of files that people write."""

    def default_schema(self, schema: WithDefaultSchema) -> JsonSchemaValue:
        """Return a schema without the default: an editor would fill it in, and so make an omitted field managed."""
        return self.generate_inner(schema["schema"])

    def function_before_schema(self, schema: BeforeValidatorFunctionSchema) -> JsonSchemaValue:
        """Return the schema of the checked type if it has a format: dates are written as text."""
        checked = self.generate_inner(schema["schema"])
        if any("format" in option for option in checked.get("anyOf", [checked])):
            return checked
        return super().function_before_schema(schema)


OUTPUTS: Mapping[str, type] = {
    "plan": StoredPlan,
    "report": StoredReport,
    "comparison": StoredComparison,
    "validation": Validation,
    "diagnosis": Diagnosis,
    "history": History,
    "log": Log,
}
"""The types of the documents that commands write, by the name of their schema."""

FLAT: Mapping[type, str] = {StoredPlan: PLAN, StoredReport: REPORT}
"""The documents with a head and a list of items, with their formats."""

EDITED_FILES = ("manifest", "config")
"""The schemas of files that people write."""

NAMES = (*EDITED_FILES, *OUTPUTS)
"""Every schema."""


def schema_of(name: str, kinds: Kinds) -> Schema:
    """Return the schema of a name."""
    if name == "manifest":
        return manifest_schema(kinds)
    if name == "config":
        return head(name) | Configuration.model_json_schema(schema_generator=InputSchemas)
    return head(name) | _document(OUTPUTS[name])


def file_of(name: str) -> str:
    """Return the name of the file of a schema."""
    return f"{name}.schema.json"


def all_schemas(kinds: Kinds) -> dict[str, Schema]:
    """Return every schema by the name of its file."""
    return {file_of(name): schema_of(name, kinds) for name in NAMES}


def _document(type_: type) -> Schema:
    """Return the schema of a document; the schema of a plan or a report is joined from its head and its lists."""
    if type_ in FLAT:
        head, content = _described(Head), _described(type_)
        schema = {
            **content,
            "properties": {**head["properties"], **content["properties"]},
            "required": [*head["required"], *content["required"]],
            "$defs": {**head.get("$defs", {}), **content.get("$defs", {})},
        }
        schema["properties"]["format"] = {
            name: value for name, value in head["properties"]["format"].items() if name != "enum"
        } | {"const": FLAT[type_]}
        _add_data_types(schema["$defs"])
    else:
        schema = _described(type_)
    if type_ in (*FLAT, History):
        schema["properties"]["checksum"] = CHECKSUM
        schema["required"].append("checksum")
    return schema


def _add_data_types(definitions: Schema) -> None:
    """Add the types of the data of notes and findings, by their codes; data of other codes may be anything."""
    for shape in DATA.values():
        described = _described(shape)
        definitions |= {**described.pop("$defs", {}), shape.__name__: described}
    for name, key in (("StoredFinding", "finding"), ("StoredNote", "code")):
        definitions[name]["allOf"] = [
            {
                "if": {"properties": {key: {"const": code}}},
                "then": {"properties": {"data": {"$ref": f"#/$defs/{shape.__name__}", "description": "The facts."}}},
            }
            for code, shape in DATA.items()
        ]


def _described(type_: type) -> Schema:
    """Return the schema of a type, for the caller to change."""
    return deepcopy(_described_once(type_))


@cache
def _described_once(type_: type) -> Schema:
    """Return the schema of a type."""
    # slow: pydantic reads the source of each class to find the docstrings of attributes
    described = with_config({**DOCUMENT, "use_attribute_docstrings": True})(type_)
    return TypeAdapter(described).json_schema(mode="serialization", schema_generator=OutputSchemas)


def editor_schemas(kinds: Kinds) -> dict[Path, str]:
    """Return the files with the schemas of manifests and configuration, for editors."""
    return {SCHEMAS / file_of(name): schema_text(schema_of(name, kinds)) for name in EDITED_FILES}


def write_schemas(folder: Path, kinds: Kinds) -> None:
    """Write every schema to its file.

    Raises:
        OutputFailed: a file cannot be written.
    """
    for name, schema in all_schemas(kinds).items():
        save(folder / name, schema_text(schema))


def check_schemas(folder: Path, kinds: Kinds) -> None:
    """Check that the copies of schemas in a folder are those of this version.

    Their layout does not matter: formatters may change it.

    Raises:
        ConfigurationError: a copy is of another version, or the folder has none.
    """
    copies = {name: folder / file_of(name) for name in NAMES if (folder / file_of(name)).is_file()}
    if not copies:
        raise ConfigurationError(f"{folder}: holds no schemas; write them with: reconciler schema --write {folder}")
    outdated = [file for name, file in copies.items() if _content(file) != schema_of(name, kinds)]
    if outdated:
        raise ConfigurationError(
            f"of another version than {__version__}: {', '.join(map(str, outdated))}; "
            f"renew them with: reconciler schema --write {folder}"
        )


def _content(file: Path) -> object:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def schema_text(schema: Schema) -> str:
    """Return the text of the file of a schema."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def head(name: str) -> Schema:
    """Return the first keys of every schema."""
    return {"$schema": DIALECT, "$id": f"urn:reconciler:schema:{name}:v1"}


def manifest_schema(kinds: Kinds) -> Schema:
    """Return the schema of one document of a manifest."""
    definitions: Schema = {}
    for name, model in DOCUMENTS.items():
        document = model.model_json_schema(ref_template="#/$defs/{model}", schema_generator=InputSchemas)
        definitions |= document.pop("$defs")
        document["properties"]["kind"] |= {"description": document["description"], "examples": [name]}
        document["properties"]["spec"] |= _spec(name, kinds)
        definitions[name] = document | {"title": name}
    for kind in kinds.values():
        definitions |= _definitions(kind)
    about = " ".join(f"{name}: {definitions[name]['description']}" for name in DOCUMENTS)
    names = list(DOCUMENTS)
    return {
        **head("manifest"),
        "title": "Manifest",
        "description": "Settings of a user, a group, or projects. A setting that is left out keeps its value.",
        "type": "object",
        "required": ["apiVersion", "kind"],
        "properties": {
            "apiVersion": definitions[names[0]]["properties"]["apiVersion"],
            "kind": {"title": "Kind", "description": about, "enum": names, "examples": names},
        },
        "allOf": [
            {
                "if": {"properties": {"kind": {"const": name}}, "required": ["kind"]},
                "then": {"$ref": f"#/$defs/{name}"},
            }
            for name in names
        ],
        "$defs": definitions,
    }


def _spec(document_kind: str, kinds: Kinds) -> Schema:
    """Return the schema of the spec of a kind of document."""
    levels = LEVELS_OF[document_kind]
    allowed = {kind.name: kind for kind in kinds.values() if not kind.models.keys().isdisjoint(levels)}
    sections = {name: _section(kind, levels) for name, kind in allowed.items()}
    prunable = [name for name, kind in allowed.items() if kind.prunable]
    prune = {
        "title": "Prune",
        "description": "Sections that are authoritative: objects that are not listed in them are deleted.",
        "type": "array",
        "items": {"enum": prunable},
        "examples": [prunable[:1]],
    }
    unmanaged = {
        "title": "Unmanaged",
        "description": "Sections that this target does not manage, whatever its profiles and sets declare; `all` of "
        "them; or single items, such as `{milestones: [Beta]}`. Their objects stay as they are.",
        "anyOf": [
            {"const": ALL},
            {"type": "array", "items": {"anyOf": [{"enum": [*allowed]}, _let_go(allowed)]}},
        ],
        "examples": [[*allowed][:1]],
    }
    policies = {**({PRUNE: prune} if prunable else {}), **({UNMANAGED: unmanaged} if document_kind in LEVEL_OF else {})}
    return {
        "properties": {**policies, **sections},
        "additionalProperties": False,
        "examples": [{name: schema["examples"][0] for name, schema in sections.items()}],
    }


def _listed_names(name: str, *types: str) -> Schema:
    """Return the schema of a list of the names of items that a document leaves alone."""
    names = {"type": "array", "items": {"type": [*types] if len(types) > 1 else types[0]}}
    return {**_items_described(name), **names, "examples": [["NAME"]]}


def _items_described(name: str) -> Schema:
    title = name.replace("_", " ").capitalize()
    return {"title": title, "description": "The items that this target does not manage."}


def _let_go(kinds: Kinds) -> Schema:
    """Return the schema of single items that a document leaves alone, by section."""
    names: dict[str, Schema] = {}
    for name, spec in section_specs(kinds).items():
        lists = {
            part: _listed_names(part, "string", "integer")
            for part, listing in spec.lists.items()
            if listing.names.level is not None
        }
        if spec.items is not None:
            names[name] = _listed_names(name, "string")
        elif lists:
            example = {part: ["acme/lib"] for part in [*lists][:1]}
            form = {"type": "object", "properties": lists, "additionalProperties": False}
            names[name] = {**_items_described(name), **form, "examples": [example]}
    return {"type": "object", "properties": names, "additionalProperties": False}


def _section(kind: Kind, document_levels: Collection[Level]) -> Schema:
    """Return the schema of a section of targets of these levels, with an example."""
    own_levels = [level for level in kind.models if level in document_levels]
    references = [{"$ref": f"#/$defs/{name}"} for name in dict.fromkeys(_name(kind, level) for level in own_levels)]
    return {
        "title": kind.name.replace("_", " ").capitalize(),
        "description": kind.summary,
        **(references[0] if len(references) == 1 else {"anyOf": references}),
        "examples": [_example(kind, own_levels[0])],
    }


def _definitions(kind: Kind) -> Schema:
    """Return the schemas of a section at all its levels, and of its items, by the names they are referred to by."""
    definitions: Schema = {}
    for level, model in kind.models.items():
        name = _name(kind, level)
        schema = TypeAdapter(model).json_schema(ref_template=f"#/$defs/{name}.{{model}}", schema_generator=InputSchemas)
        definitions |= {f"{name}.{inner}": definition for inner, definition in schema.pop("$defs", {}).items()}
        items = schema.get("additionalProperties")
        if items:
            items["description"] = (
                "`{}`: it must exist; null: it must not exist; otherwise: it must exist with these values."
            )
        definitions[name] = schema
    return definitions


def _name(kind: Kind, level: Level) -> str:
    """Return the name of a section's schema; levels that share one model share one schema."""
    models = list(kind.models.values())
    return kind.name if all(model == models[0] for model in models) else f"{kind.name}.{level}"


def _example(kind: Kind, level: Level) -> Schema:
    model = kind.models[level]
    items = [item for item in get_args(get_args(model)[-1]) if issubclass(item, Item)] if get_args(model) else []
    if items:
        return {one(kind.parts[0].title): _compatible_examples(items[0])}
    return _compatible_examples(model)


def _compatible_examples(model: type[Resource]) -> Schema:
    """Return examples of a model's fields that do not contradict each other."""
    chosen: Schema = {}
    for name, field in model.model_fields.items():
        if name not in Item.model_fields and field.examples:
            tried = chosen | {name: field.examples[0]}
            chosen = chosen if any(model.model_validate(tried).errors()) else tried
    return chosen
