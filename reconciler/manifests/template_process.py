"""The process that renders templates: `templates` starts it, and it ends with its standard input.

A template can ask for any amount of time and memory, within one operation that only the operating system can interrupt.
This process has limits on both. The process that started it sends pickles. The answers are JSON, since templates
control their text, and reading a pickle can run code. The module imports little, so that the process starts fast.
"""

import json
import pickle
import resource
import signal
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from math import ceil
from traceback import walk_tb
from types import FrameType
from typing import Any

from jinja2 import FunctionLoader, StrictUndefined, Template, TemplateNotFound, TemplateSyntaxError
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension
from jinja2.lexer import Token, TokenStream
from jinja2.sandbox import SandboxedEnvironment
from jinja2.utils import missing

MOST_NUMBERS = 1_000_000
"""Numbers that all `range()`s of one template may have."""

ENVIRONMENT = "env"
OPEN, CLOSE = "\ue000", "\ue001"


def main() -> None:
    """Render templates until standard input ends.

    The first pickle has the limits and the values; each of the others is a template: its path, its text, and whether to
    mark lines. Each answer is a line of JSON: the text, or the error and its line.
    """
    # Ctrl-C reaches both processes: the one that started this one decides when to end it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    orders = sys.stdin.buffer
    seconds, memory, longest, given = pickle.load(orders)  # noqa: S301 - from the process that started this one
    # A core dump would write values of environment variables to the disk.
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_AS, memory)
    signal.signal(signal.SIGPROF, partial(_end, seconds))
    with suppress(EOFError):
        while True:
            path, text, marked = pickle.load(orders)  # noqa: S301 - as above
            answer: dict[str, str | int]
            sandbox = _Sandbox(longest, extensions=[_Marking] if marked else [])
            try:
                # The values are unpickled for each template: one template could change a list for the next.
                with _limited(seconds):
                    answer = {"text": _render(path, text, sandbox, *pickle.loads(given))}  # noqa: S301 - as above
            except Exception as error:  # noqa: BLE001 - a template may raise whatever Python does
                answer = {"wrong": _words(error, memory), "line": _line_of(error, path)}
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()


def _limit(what: int, amount: int) -> None:
    """Lower a limit, if the system has it."""
    _, hardest = resource.getrlimit(what)
    with suppress(ValueError, OSError):
        resource.setrlimit(what, (amount if hardest == resource.RLIM_INFINITY else min(amount, hardest), hardest))


@contextmanager
def _limited(seconds: int) -> Iterator[None]:
    """Raise an error if a template takes longer; end the process if one operation does."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    # The timer interrupts the interpreter; this limit, a second later, ends an operation that never returns to it.
    _limit(resource.RLIMIT_CPU, ceil(used.ru_utime + used.ru_stime) + seconds + 1)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _end(seconds: int, _number: int, _frame: FrameType | None) -> None:
    raise _TooMuch(f"takes more than {seconds} s of processor time")


def _render(path: str, text: str, sandbox: "_Sandbox", values: Mapping[str, Any], env: tuple[Any, Any]) -> str:
    code = sandbox.compile(text, name=path, filename=path)
    template = Template.from_code(sandbox, code, sandbox.make_globals(None))
    everything = {"range": _BoundedRange(), ENVIRONMENT: _Environment(*env), **values}
    return "".join(_bounded(template.generate(everything), sandbox.longest))


class _Environment(dict[str, str]):
    """The named environment variables that are set."""

    def __init__(self, variables: Mapping[str, str], env_names: Collection[str]) -> None:
        super().__init__(variables)
        self._named = env_names

    def why_missing(self, name: str) -> str:
        """Return the reason for which a variable is missing."""
        if name in self._named:
            return f"the environment variable {name} is not set"
        return f"the environment variable {name} may not be read: name it by --env {name}"


class _BoundedRange:
    """`range()`, with a limit for the whole template."""

    def __init__(self) -> None:
        self._remaining = MOST_NUMBERS

    def __call__(self, *args: int) -> range:
        numbers = range(*args)
        if len(numbers) > self._remaining:
            raise _TooMuch(f"range() gives more than {MOST_NUMBERS:,} numbers")
        self._remaining -= len(numbers)
        return numbers


class _TooMuch(Exception):
    """A template exceeds a limit."""


class _Missing(StrictUndefined):
    """An undefined name: an error wherever it is used, with a message of our own."""

    __slots__ = ()

    def __init__(self, hint: str | None = None, obj: Any = missing, name: str | None = None, **rest: Any) -> None:
        if hint is None and obj is missing:
            hint = f"`{name}` is not defined: give it by --values or --set"
        elif hint is None and isinstance(obj, _Environment):
            hint = obj.why_missing(str(name))
        elif hint is None and isinstance(obj, str):
            hint = f"text has no `{name}`; --set gives text only: give lists and mappings by --values"
        super().__init__(hint, obj, name, **rest)


class _Sandbox(SandboxedEnvironment):
    """A sandbox without loading and random choice; costly operators have limits of their own.

    Attributes:
        longest: characters of what a template may render to.
    """

    intercepted_binops = frozenset({"*", "**", "%"})

    def __init__(self, longest: int, **options: Any) -> None:
        nothing = FunctionLoader(lambda _name: None)
        super().__init__(undefined=_Missing, keep_trailing_newline=True, loader=nothing, **options)
        self.longest = longest
        # Random text would make each plan another one.
        self.globals.pop("lipsum")
        self.filters.pop("random")

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """Refuse operations whose results no manifest can hold."""
        numbers = isinstance(left, int) and isinstance(right, int)
        if operator == "**" and not (numbers and 0 <= right <= 64 and abs(left) < 2**64):
            raise _TooMuch("`**` takes whole numbers, and an exponent from 0 to 64")
        if operator == "*" and not numbers and max(_length(left), 1) * max(_length(right), 1) > self.longest:
            raise _TooMuch(f"`*` gives more than {self.longest:,} characters")
        # A width such as `%999999999d` would take all memory.
        if operator == "%" and isinstance(left, str):
            raise _TooMuch("`%` is for numbers: use the filter `format` for text")
        return super().call_binop(context, operator, left, right)


class _Marking(Extension):
    """Puts the line number before each piece of a template's own text, and before each of its lines."""

    def filter_stream(self, stream: TokenStream) -> Iterable[Token]:
        """Mark the text; everything else stays as it is."""
        for token in stream:
            yield Token(token.lineno, token.type, _marked(token)) if token.type == "data" else token


def _marked(token: Token) -> str:
    lines = token.value.split("\n")
    return "\n".join(f"{OPEN}{token.lineno + index}{CLOSE}{line}" for index, line in enumerate(lines))


def _bounded(chunks: Iterable[str], longest: int) -> Iterator[str]:
    length = 0
    for chunk in chunks:
        length += len(chunk)
        if length > longest:
            raise _TooMuch(f"renders to more than {longest // 1024 // 1024} MiB")
        yield chunk


def _length(value: Any) -> int:
    if isinstance(value, int):
        return value
    return len(value) if isinstance(value, str | list | tuple) else 0


def _line_of(error: Exception, path: str) -> int:
    """Return the template's line of an error; 0 if it is not known."""
    if isinstance(error, TemplateSyntaxError):
        return error.lineno
    return next(
        (line for frame, line in reversed([*walk_tb(error.__traceback__)]) if frame.f_code.co_filename == path), 0
    )


def _words(error: Exception, memory: int) -> str:
    match error:
        case TemplateNotFound():
            return "a template cannot load other files"
        case SecurityError():
            return f"not allowed in a template: {error}"
        case TemplateSyntaxError():
            return f"template syntax: {error.message}"
        case MemoryError() | RecursionError():
            return f"the template is nested too deep, or takes more than {memory // 1024 // 1024} MiB of memory"
        case TypeError():
            return (
                f"{error}; --set gives text only: write `NAME | int`, or give numbers, lists and mappings by --values"
            )
    return str(error) or type(error).__name__
