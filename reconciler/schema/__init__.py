"""The JSON Schemas (draft 2020-12) of manifests, the configuration and outputs: editors complete and explain by them.

Nothing here is written twice: the sections of manifests come from the kinds, all else from its shape.
"""

import json
from pathlib import Path
from typing import Literal

from pydantic import Field

from reconciler.configuration import Configuration
from reconciler.errors import OutputFailed
from reconciler.kind import Kinds
from reconciler.planfile import PlanDocument
from reconciler.report import ReportDocument
from reconciler.schema.manifests import head, manifest_schema
from reconciler.schema.sections import Schema, Written
from reconciler.sealed import Document


class FaultShape(Document):
    """One thing wrong, or doubtful, in the manifests."""

    path: str = Field(description="The file.")
    line: int = Field(ge=0, description="From 1; 0 where the file as a whole is meant.")
    column: int = Field(ge=0, description="From 1, in characters; 0 where the file as a whole is meant.")
    severity: Literal["error", "warning"] = Field(description="Whether it keeps the manifests from being applied.")
    message: str = Field(description="What is wrong, and what would be right.")


class ValidationDocument(Document):
    """What is wrong in the manifests."""

    format: Literal["reconciler.validation/v1"] = Field(description="What this document is.")
    valid: bool = Field(description="Whether there are no errors.")
    faults: list[FaultShape] = Field(description="Errors and warnings, by place.")
    targets: int = Field(ge=0, description="How many targets the manifests are about, as far as that is known.")


def all_schemas(kinds: Kinds) -> dict[str, Schema]:
    """Return every schema by the name of its file."""
    outputs: dict[str, type[Document]] = {
        "plan": PlanDocument,
        "report": ReportDocument,
        "validation": ValidationDocument,
    }
    return {
        "manifest.schema.json": manifest_schema(kinds),
        "config.schema.json": head("config") | Configuration.model_json_schema(schema_generator=Written),
        **{f"{name}.schema.json": head(name) | shape.model_json_schema() for name, shape in outputs.items()},
    }


def write_schemas(folder: Path, kinds: Kinds) -> None:
    """Write every schema to its file.

    Raises:
        OutputFailed: a file cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, schema in all_schemas(kinds).items():
            (folder / name).write_text(schema_text(schema), encoding="utf-8")
    except OSError as error:
        raise OutputFailed(f"{error.filename}: {error.strerror}") from error


def schema_text(schema: Schema) -> str:
    """Return a schema as its file holds it."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
