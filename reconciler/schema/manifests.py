"""The schema of a manifest: the envelope from the models of its documents, the sections from those of their kinds."""

from collections.abc import Collection
from typing import Any, get_args

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core.core_schema import BeforeValidatorFunctionSchema, ComputedField, WithDefaultSchema

from reconciler.manifests.documents import DOCUMENTS, levels_of
from reconciler.manifests.layers import PRUNE
from reconciler.model.kind import Kind, Kinds
from reconciler.model.resource import Item, Resource
from reconciler.model.targets import Level

Schema = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"


class Kept(GenerateJsonSchema):
    """Turns dataclasses into schemas of documents, in which every key is written."""

    def default_schema(self, schema: WithDefaultSchema) -> JsonSchemaValue:
        """Show no defaults: no key is left out."""
        return self.generate_inner(schema["schema"])

    def computed_field_schema(self, schema: ComputedField) -> JsonSchemaValue:
        """Do not tell apart what is computed."""
        return self.generate_inner(schema["return_schema"])


class Written(GenerateJsonSchema):
    """Turns models into schemas of what people write."""

    def default_schema(self, schema: WithDefaultSchema) -> JsonSchemaValue:
        """Show no defaults: an editor would fill them in, and a field that is left out is not managed."""
        return self.generate_inner(schema["schema"])

    def function_before_schema(self, schema: BeforeValidatorFunctionSchema) -> JsonSchemaValue:
        """Show the checked type if it has a format: dates are written as text."""
        checked = self.generate_inner(schema["schema"])
        if any("format" in each for each in checked.get("anyOf", [checked])):
            return checked
        return super().function_before_schema(schema)


def head(name: str) -> Schema:
    """Return what every schema begins with."""
    return {"$schema": DIALECT, "$id": f"urn:reconciler:schema:{name}:v1"}


def manifest_schema(kinds: Kinds) -> Schema:
    """Return the schema of one document of a manifest."""
    definitions: Schema = {}
    for name, model in DOCUMENTS.items():
        document = model.model_json_schema(ref_template="#/$defs/{model}", schema_generator=Written)
        definitions |= document.pop("$defs")
        document["properties"]["kind"] |= {"description": document["description"], "examples": [name]}
        document["properties"]["spec"] |= _spec(levels_of(name), kinds)
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


def _spec(levels: tuple[Level, ...], kinds: Kinds) -> Schema:
    """Return the schema of the spec of documents about targets of some levels."""
    prunable = [kind.name for kind in kinds.values() if kind.prunable]
    sections = {kind.name: _section(kind, held) for kind in kinds.values() if (held := kind.models.keys() & {*levels})}
    prune = {
        "title": "Prune",
        "description": "Sections that are authoritative: objects that are not listed in them are deleted.",
        "type": "array",
        "items": {"enum": prunable},
        "examples": [prunable[:1]],
    }
    return {
        "properties": {PRUNE: prune, **sections},
        "additionalProperties": False,
        "examples": [{name: schema["examples"][0] for name, schema in sections.items()}],
    }


def _section(kind: Kind, levels: Collection[Level]) -> Schema:
    """Return the schema of a section where targets of these levels may hold it, with an example."""
    held = [level for level in kind.models if level in levels]
    references = [{"$ref": f"#/$defs/{name}"} for name in dict.fromkeys(_name(kind, level) for level in held)]
    return {
        "title": kind.name.replace("_", " ").capitalize(),
        "description": kind.summary,
        **(references[0] if len(references) == 1 else {"anyOf": references}),
        "examples": [_example(kind, held[0])],
    }


def _definitions(kind: Kind) -> Schema:
    """Return the schemas of a section at all its levels, and of its items, by the names they are referred to by."""
    found: Schema = {}
    for level, model in kind.models.items():
        name = _name(kind, level)
        schema = TypeAdapter(model).json_schema(ref_template=f"#/$defs/{name}.{{model}}", schema_generator=Written)
        found |= {f"{name}.{inner}": definition for inner, definition in schema.pop("$defs", {}).items()}
        items = schema.get("additionalProperties")
        if items:
            items["description"] = (
                "`{}`: it must exist; null: it must not exist; otherwise: it must exist with these values."
            )
        found[name] = schema
    return found


def _name(kind: Kind, level: Level) -> str:
    """Return the name of a section's schema; levels that share one model share one schema."""
    models = list(kind.models.values())
    return kind.name if all(model == models[0] for model in models) else f"{kind.name}.{level}"


def _example(kind: Kind, level: Level) -> Schema:
    model = kind.models[level]
    items = [each for each in get_args(get_args(model)[-1]) if issubclass(each, Item)] if get_args(model) else []
    if items:
        title = kind.parts[0].title
        return {f"{'an' if title[0] in 'aeio' else 'a'} {title}": _together(items[0])}
    return _together(model)


def _together(model: type[Resource]) -> Schema:
    """The examples of a model's fields, as many as do not contradict each other."""
    chosen: Schema = {}
    for name, field in model.model_fields.items():
        if name not in Item.model_fields and field.examples:
            tried = chosen | {name: field.examples[0]}
            chosen = chosen if any(model.model_validate(tried).errors()) else tried
    return chosen
