"""The schema of a manifest: only the documents around the sections are written down here."""

from collections.abc import Iterable

from reconciler.model.kind import Kinds
from reconciler.model.targets import LEVELS, Level
from reconciler.schema.sections import Schema, definitions, section

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def _explained(schema: Schema, title: str, description: str, *examples: object) -> Schema:
    return {"title": title, "description": description, **schema, "examples": list(examples)}


def _closed(properties: Schema, *required: str) -> Schema:
    """An object that has no other keys."""
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def _texts(item: Schema) -> Schema:
    return {"type": "array", "items": item}


TEXT = {"type": "string", "minLength": 1}

FULL_PATH = {"type": "string", "pattern": r"^(?![0-9]+$)[^\s/?#%\\]+(/[^\s/?#%\\]+)*$"}
"""No address, no slash at either end, and nothing that would be taken for an ID."""

NAME = {"name": _explained(TEXT, "Name", "What it is called; no two of a kind have one name.", "baseline")}

PRIORITY = {
    "priority": _explained(
        {"type": "integer"}, "Priority", "Sets of higher priority are merged over those of lower; 0 if left out.", 10
    )
}

SHARED = {
    "profiles": _explained(
        _texts(TEXT),
        "Profiles",
        "Names of profiles. They are merged in this order; the `spec` beside goes over them.",
        ["baseline"],
    ),
    "labels": _explained(
        {"type": "object", "additionalProperties": {"type": "string"}},
        "Labels",
        "Words of your own, by which `--selector team=payments` finds its targets.",
        {"team": "payments"},
    ),
}

SELECT = _explained(
    _closed(
        {
            "group": _explained(
                FULL_PATH, "Group", "All projects of this group, subgroups included, as they are when planning.", "acme"
            ),
            "projects": _explained(_texts(FULL_PATH), "Projects", "These projects, by full path.", ["a/b", "a/c"]),
            "include": _explained(
                _texts(TEXT), "Include", "Globs on the full path; everything if left out.", ["acme/services/**"]
            ),
            "exclude": _explained(
                _texts(TEXT), "Exclude", "Globs on the full path; nothing if left out.", ["acme/services/legacy-*"]
            ),
            "archived": _explained(
                {"type": "boolean"}, "Archived", "Whether archived projects are meant too; not if left out.", False
            ),
        }
    )
    | {"oneOf": [{"required": ["group"]}, {"required": ["projects"]}]},
    "Select",
    "Which projects the set is about: those of a group, or those listed.",
    {"group": "acme", "include": ["acme/services/**"]},
)


def _target(path: str) -> Schema:
    """The metadata of a group or a project: exactly one of path and ID."""
    properties = {
        "path": _explained(FULL_PATH, "Path", "The full path. Give this or `id`.", path),
        "id": _explained(
            {"type": "integer", "minimum": 1},
            "ID",
            "The numeric ID, which stays when the target moves. Give this or `path`.",
            1234,
        ),
        **SHARED,
    }
    return _closed(properties) | {"oneOf": [{"required": ["path"]}, {"required": ["id"]}]}


METADATA = {
    "User": (_closed(SHARED), {"profiles": ["baseline"]}),
    "Group": (_target("acme/payments"), {"path": "acme/payments"}),
    "Project": (_target("acme/payments/api"), {"path": "acme/payments/api", "profiles": ["baseline"]}),
    "Profile": (_closed(NAME, "name"), {"name": "baseline"}),
    "ProjectSet": (_closed(NAME | PRIORITY | SHARED, "name"), {"name": "services", "priority": 10}),
}
"""By kind of document, the schema and an example of its metadata."""

LEVELS_OF = {
    "User": [Level.USER],
    "Group": [Level.GROUP],
    "Project": [Level.PROJECT],
    "Profile": list(LEVELS),
    "ProjectSet": [Level.PROJECT],
}

ABOUT = {
    "User": "Settings of the user behind the token, wherever no group or project says otherwise.",
    "Group": "Settings of one group. Its notification settings are those of the user behind the token.",
    "Project": "Settings of one project. Its notification settings are those of the user behind the token.",
    "Profile": "Settings that others share by naming this profile.",
    "ProjectSet": "Settings of many projects.",
}


def manifest_schema(kinds: Kinds) -> Schema:
    """Return the schema of one document of a manifest."""
    return {
        **head("manifest"),
        "title": "Manifest",
        "description": "What should be true of a user, a group, a project, or many. What is left out stays as it is.",
        "type": "object",
        "required": ["apiVersion", "kind"],
        "properties": _envelope(ABOUT),
        "allOf": [
            {
                "if": {"properties": {"kind": {"const": name}}, "required": ["kind"]},
                "then": {"$ref": f"#/$defs/{name}"},
            }
            for name in ABOUT
        ],
        "$defs": {name: _document(name, kinds) for name in ABOUT}
        | {name: schema for kind in kinds.values() for name, schema in definitions(kind).items()},
    }


def head(name: str) -> Schema:
    """Return what every schema begins with."""
    return {"$schema": DIALECT, "$id": f"urn:reconciler:schema:{name}:v1"}


def _envelope(names: Iterable[str]) -> Schema:
    """What every document begins with."""
    what = " ".join(f"{name}: {ABOUT[name]}" for name in names)
    return {
        "apiVersion": _explained(
            {"const": "reconciler/v1"}, "API version", "The version of this format.", "reconciler/v1"
        ),
        "kind": _explained({"enum": list(names)}, "Kind", what, *names),
    }


def _document(name: str, kinds: Kinds) -> Schema:
    """One kind of document. Only the user needs no metadata; only a set selects."""
    metadata, example = METADATA[name]
    properties = _envelope([name]) | {
        "metadata": _explained(metadata, "Metadata", "Whom the document is about, and what is merged into it.", example)
    }
    required = [] if name == "User" else ["metadata"]
    if name == "ProjectSet":
        properties["select"] = SELECT
        required.append("select")
    properties["spec"] = _spec(LEVELS_OF[name], kinds)
    return {"title": name, "description": ABOUT[name], **_closed(properties, "apiVersion", "kind", *required)}


def _spec(levels: Iterable[Level], kinds: Kinds) -> Schema:
    prunable = [kind.name for kind in kinds.values() if kind.prunable]
    properties = {
        "prune": _explained(
            _texts({"enum": prunable}),
            "Prune",
            "Sections that are authoritative: objects that are not listed in them are deleted.",
            prunable[:1],
        )
    }
    for kind in kinds.values():
        if allowed := [level for level in levels if level in kind.models]:
            properties[kind.name] = section(kind, allowed)
    example = {name: schema["examples"][0] for name, schema in properties.items() if name != "prune"}
    return _explained(_closed(properties), "Spec", "The sections. What is left out is not managed.", example)
