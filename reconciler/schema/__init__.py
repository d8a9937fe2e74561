"""The JSON Schemas (draft 2020-12) of manifests, the configuration and outputs: editors complete and explain by them.

Manifests come from the models of documents and kinds, everything else from its own type.
"""

import json
from pathlib import Path

from pydantic import TypeAdapter, with_config

from reconciler import __version__
from reconciler.configuration import Configuration
from reconciler.doctor import Diagnosis
from reconciler.documents.checksum import DOCUMENT
from reconciler.documents.plan_file import SavedPlan
from reconciler.documents.report import Report
from reconciler.errors import ConfigurationError
from reconciler.model.kind import Kinds
from reconciler.render.json import Validation
from reconciler.schema.manifests import Kept, Schema, Written, head, manifest_schema
from reconciler.system.files import save

CHECKSUM = {
    "title": "Checksum",
    "description": "SHA-256 of all the rest; an edited document is refused.",
    "type": "string",
}


def all_schemas(kinds: Kinds) -> dict[str, Schema]:
    """Return every schema by the name of its file."""
    outputs: dict[str, type] = {
        "plan": SavedPlan,
        "report": Report,
        "validation": Validation,
        "diagnosis": Diagnosis,
    }
    return {
        "manifest.schema.json": manifest_schema(kinds),
        "config.schema.json": head("config") | Configuration.model_json_schema(schema_generator=Written),
        **{f"{name}.schema.json": head(name) | _document(type_) for name, type_ in outputs.items()},
    }


def _document(type_: type) -> Schema:
    described = with_config({**DOCUMENT, "use_attribute_docstrings": True})(type_)
    schema = TypeAdapter(described).json_schema(mode="serialization", schema_generator=Kept)
    if type_ in (SavedPlan, Report):
        schema["properties"]["checksum"] = CHECKSUM
        schema["required"].append("checksum")
    return schema


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
        ConfigurationError: some are not, or the folder has none.
    """
    copies = {folder / name: schema for name, schema in all_schemas(kinds).items() if (folder / name).is_file()}
    if not copies:
        raise ConfigurationError(f"{folder}: holds no schemas; write them with: reconciler schema --write {folder}")
    outdated = [file for file, schema in copies.items() if _content(file) != schema]
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
    """Return a schema as its file holds it."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
