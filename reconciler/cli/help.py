"""The two helps of each command: `-h` has what people use weekly, `--help` everything. Begin with `Command`."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import click

from reconciler.cli.stdout import write_stdout


class Command(click.Command):
    """A command with two helps.

    Args:
        weekly: the options that `-h` shows, in this order; all options of the command itself, if left out.
    """

    def __init__(self, *arguments: Any, weekly: Sequence[str] = (), **attributes: Any) -> None:
        super().__init__(*arguments, **attributes)
        self.weekly = weekly or [option.opts[-1] for option in self.params if isinstance(option, click.Option)]
        self.params.append(short_option(self.short_help_text, "Show the everyday options and exit."))

    def get_help_option(self, ctx: click.Context) -> click.Option:
        """Return the option `--help`."""
        del ctx
        return HELP_OPTION

    def short_help_text(self, context: click.Context) -> str:
        """Return the text of `-h`: the first paragraph, the weekly options and one example."""
        options = {name: option for option in self.params for name in option.opts if isinstance(option, click.Option)}
        formatter = context.make_formatter()
        self.format_usage(context, formatter)
        write_text(formatter, (self.help or "").partition("\n\n")[0])
        if self.weekly:
            with formatter.section("Options"):
                formatter.write_dl(records(context, (options[name] for name in self.weekly)))
        formatter.write_paragraph()
        formatter.write(f"Example: {first_example(self)}\nEverything: {context.command_path} --help")
        return formatter.getvalue()

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples, one on each line."""
        del ctx
        heading, _, examples = (self.epilog or "").partition(": ")
        with formatter.section(heading):
            formatter.write("".join(f"  {example}\n" for example in examples.split(";  ")))


def short_option(text_of: Callable[[click.Context], str], words: str) -> click.Option:
    """Return the option `-h`, which prints a text and ends the command; `words` explain it."""
    return text_option(["-h", "short_help"], text_of, words)


def text_option(flags: list[str], text_of: Callable[[click.Context], str], words: str) -> click.Option:
    """Return an option that prints a text and ends the command; `words` explain the option.

    If the text cannot be written, the command fails as for any result; click's own option would not.
    """

    def show(context: click.Context, _option: click.Parameter, is_set: bool) -> None:
        if is_set and not context.resilient_parsing:
            write_stdout(f"{text_of(context)}\n")
            context.exit()

    return click.Option(flags, is_flag=True, is_eager=True, expose_value=False, callback=show, help=words)


HELP_OPTION = text_option(["--help"], click.Context.get_help, "Show this message and exit.")


def first_example(command: click.Command) -> str:
    """Return the first example in a command's epilog; empty if it has none."""
    return (command.epilog or "").partition(": ")[2].partition(";  ")[0]


def write_text(formatter: click.HelpFormatter, text: str) -> None:
    """Write a paragraph of help."""
    formatter.write_paragraph()
    with formatter.indentation():
        formatter.write_text(" ".join(text.split()))


def records(context: click.Context, parameters: Iterable[click.Parameter]) -> list[tuple[str, str]]:
    """Return the lines about options."""
    return [record for option in parameters if (record := option.get_help_record(context))]
