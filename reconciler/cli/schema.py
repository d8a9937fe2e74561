"""`reconciler schema`."""

from pathlib import Path

import click


@click.command(epilog="Example: reconciler schema --write schemas")
@click.argument("name", required=False)
@click.option(
    "--write", "folder", type=click.Path(path_type=Path, file_okay=False), metavar="DIR", help="Write all of them."
)
def schema(name: str | None, folder: Path | None) -> int:
    """Print the JSON Schemas of manifests, saved plans and reports, or the one of that NAME.

    Editors that know the YAML language server complete and explain manifests with it.
    """
    import json

    from reconciler.errors import UsageError
    from reconciler.kinds import all_kinds
    from reconciler.schema import all_schemas, write_schemas

    if folder is not None:
        write_schemas(folder, all_kinds())
        return 0
    schemas = all_schemas(all_kinds())
    if name is not None and f"{name}.schema.json" not in schemas:
        raise UsageError(f"no schema {name}; there are {', '.join(n.removesuffix('.schema.json') for n in schemas)}")
    chosen = schemas if name is None else schemas[f"{name}.schema.json"]
    click.echo(json.dumps(chosen, indent=2, ensure_ascii=False))
    return 0
