"""`reconciler completion`."""

import click

from reconciler.cli.outputs import write_stdout


@click.command(epilog="Example: reconciler completion bash")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> int:
    """Print what makes a shell complete commands, options and their values.

    \b
    bash (4.4 or newer), in ~/.bashrc:
        eval "$(reconciler completion bash)"
    zsh, in ~/.zshrc, after compinit:
        eval "$(reconciler completion zsh)"
    fish, in ~/.config/fish/config.fish:
        reconciler completion fish | source

    Of values, those of --section, --format, --report and --since are completed, and those of --target from the
    manifests.
    """  # noqa: D301 - click reads the backspace, which keeps the lines apart
    from click.shell_completion import BashComplete, FishComplete, ZshComplete

    shells = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}
    root = click.get_current_context().find_root().command
    write_stdout(shells[shell](root, {}, "reconciler", "_RECONCILER_COMPLETE").source() + "\n")
    return 0
