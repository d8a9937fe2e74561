"""`reconciler schema` and `reconciler completion`: what editors and shells complete from."""

from pathlib import Path

import click

from reconciler.cli import suggestions
from reconciler.cli.outputs import write_stdout


@click.command(epilog="Examples: reconciler schema manifest;  reconciler schema --write schemas")
@click.argument("name", required=False, shell_complete=suggestions.schemas)
@click.option(
    "--write",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write all schemas into DIR.",
)
@click.option(
    "--check",
    "copies",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Exit with 1 if a copy in DIR is not of this version.",
)
def schema(name: str | None, folder: Path | None, copies: Path | None) -> int:
    """Print the JSON Schemas of manifests and outputs.

    NAME prints one schema, such as config. Editors with the YAML language server complete and explain every key. Keep
    a copy beside the manifests, and begin each document with its path, also after each ---:

        # yaml-language-server: $schema=../schemas/manifest.schema.json

    reconciler.yaml may begin with the path of config.schema.json.

    --check reports copies that a newer version has changed; schemas without a copy are not checked.
    """
    import json

    from reconciler.errors import UsageError
    from reconciler.kinds import all_kinds
    from reconciler.model.wording import unknown
    from reconciler.schema import all_schemas, check_schemas, write_schemas

    if sum(each is not None for each in (name, folder, copies)) > 1:
        raise UsageError("schema takes one of NAME, --write and --check")
    if copies is not None:
        check_schemas(copies, all_kinds())
        return 0
    if folder is not None:
        write_schemas(folder, all_kinds())
        return 0
    schemas = all_schemas(all_kinds())
    if name is not None and f"{name}.schema.json" not in schemas:
        raise UsageError(unknown("schema", name, (file.removesuffix(".schema.json") for file in schemas)))
    chosen = schemas if name is None else schemas[f"{name}.schema.json"]
    write_stdout(json.dumps(chosen, indent=2, ensure_ascii=False) + "\n")
    return 0


@click.command(epilog="Example: reconciler completion bash")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> int:
    """Print the script for shell completion.

    \b
    bash (4.4 or newer), in ~/.bashrc:
        eval "$(reconciler completion bash)"
    zsh, in ~/.zshrc, after compinit:
        eval "$(reconciler completion zsh)"
    fish, in ~/.config/fish/config.fish:
        reconciler completion fish | source

    It completes commands, options, and the values of --section, --format, --report, --since, --target and --exclude.
    """  # noqa: D301 - click reads the backspace, which keeps the lines apart
    from click.shell_completion import BashComplete, FishComplete, ZshComplete

    shells = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}
    root = click.get_current_context().find_root().command
    write_stdout(shells[shell](root, {}, "reconciler", "_RECONCILER_COMPLETE").source() + "\n")
    return 0
