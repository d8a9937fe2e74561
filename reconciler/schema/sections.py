"""The schemas of sections, from the models of their kinds."""

from collections.abc import Iterable
from typing import Any, get_args

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core.core_schema import BeforeValidatorFunctionSchema, ComputedField, WithDefaultSchema

from reconciler.model.kind import Kind
from reconciler.model.resource import Item, Resource
from reconciler.model.targets import Level

Schema = dict[str, Any]


def definitions(kind: Kind) -> Schema:
    """Return the schemas of a section at all its levels, and of its items, by the names they are referred to by."""
    found: Schema = {}
    for level, model in kind.models.items():
        name = _name(kind, level)
        schema = TypeAdapter(model).json_schema(ref_template=f"#/$defs/{name}.{{model}}", schema_generator=Written)
        found |= {f"{name}.{inner}": definition for inner, definition in schema.pop("$defs", {}).items()}
        items = schema.get("additionalProperties")
        if items:
            items["description"] = "`{}`: it must exist; null: it must not; otherwise: it must exist and be like this."
        found[name] = schema
    return found


def section(kind: Kind, levels: Iterable[Level]) -> Schema:
    """Return the schema of a section where targets of these levels may hold it, with an example."""
    names = dict.fromkeys(_name(kind, level) for level in levels)
    references = [{"$ref": f"#/$defs/{name}"} for name in names]
    return {
        "title": kind.name.replace("_", " ").capitalize(),
        "description": kind.summary,
        **(references[0] if len(references) == 1 else {"anyOf": references}),
        "examples": [_example(kind, next(iter(levels)))],
    }


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
        """Show no defaults: what is left out of a manifest is not managed, and an editor would fill them in."""
        return self.generate_inner(schema["schema"])

    def function_before_schema(self, schema: BeforeValidatorFunctionSchema) -> JsonSchemaValue:
        """Show what is checked where it has a format: dates are written as text."""
        checked = self.generate_inner(schema["schema"])
        if any("format" in each for each in checked.get("anyOf", [checked])):
            return checked
        return super().function_before_schema(schema)


def _name(kind: Kind, level: Level) -> str:
    """What a section's schema is called; levels that share one model share one schema."""
    models = list(kind.models.values())
    return kind.name if all(model == models[0] for model in models) else f"{kind.name}.{level}"


def _example(kind: Kind, level: Level) -> Schema:
    model = kind.models[level]
    items = [each for each in get_args(get_args(model)[-1]) if issubclass(each, Item)] if get_args(model) else []
    if items:
        return {f"a {kind.parts[0].title}": _together(items[0])}
    return _together(model)


def _together(model: type[Resource]) -> Schema:
    """The examples of a model's fields, as many as do not contradict each other."""
    chosen: Schema = {}
    for name, field in model.model_fields.items():
        if name not in Item.model_fields and field.examples:
            tried = chosen | {name: field.examples[0]}
            chosen = chosen if any(model.model_validate(tried).errors()) else tried
    return chosen
