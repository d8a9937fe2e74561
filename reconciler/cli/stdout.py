"""Writing to standard output."""

import sys

import click

from reconciler.errors import OutputFailed


def write_stdout(text: str) -> None:
    """Write a result to standard output.

    Raises:
        OutputFailed: the stream is closed or full; without a message if its reader has gone, as after `| head`.
    """
    if getattr(sys, "stdout", None) is None:
        raise OutputFailed("standard output is closed")
    try:
        click.echo(text, nl=False, color=True)
    except BrokenPipeError as error:
        raise OutputFailed("") from error
    except OSError as error:
        raise OutputFailed(f"standard output: {error.strerror}") from error
