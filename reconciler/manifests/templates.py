"""Jinja2 templates to the text they render to; imported only where there is one."""

import os
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from traceback import walk_tb
from typing import Any

from jinja2 import FunctionLoader, StrictUndefined, Template, TemplateNotFound, TemplateSyntaxError
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension
from jinja2.lexer import Token, TokenStream
from jinja2.sandbox import SandboxedEnvironment
from jinja2.utils import missing

from reconciler.errors import ConfigurationError
from reconciler.manifests.files import LARGEST, Unreadable
from reconciler.manifests.sources import Source, fault
from reconciler.manifests.syntax import LINE_BREAK, line_at

MOST_NUMBERS = 1_000_000
"""What all `range()`s of one template may come to."""

SHORTEST_SECRET = 4
"""Characters from which on a line of an environment variable is kept out of messages."""

ENVIRONMENT = "env"
OPEN, CLOSE = "\ue000", "\ue001"
MARK = re.compile(f"{OPEN}([0-9]+){CLOSE}")


class Templates:
    """Renders templates with given values, and no more of the environment than is named."""

    def __init__(self, values: Mapping[str, Any], env_names: Sequence[str]) -> None:
        """Take the values; see `read_manifests`.

        Raises:
            ConfigurationError: a value is called `env`, and environment variables are named too.
        """
        if env_names and ENVIRONMENT in values:
            raise ConfigurationError("a template value may not be called `env` beside --env, which it would hide")
        self._environment = _Environment(env_names)
        self._values = {ENVIRONMENT: self._environment, **values}

    def source(self, path: str, text: str) -> Source:
        """Return what a template renders to.

        Raises:
            Unreadable: it cannot be rendered; names the template's own line.
        """
        secrets = self._environment.secrets
        written = Source(path, text, secrets)
        rendered = self._render(written, _Sandbox())

        @cache
        def marks() -> tuple[tuple[int, int], ...]:
            try:
                return _marks(self._render(written, _Sandbox(extensions=[_Marking])), rendered)
            except Unreadable:
                return ()

        def own_line(line: int, column: int) -> int | None:
            offset = _offset(rendered, line, column)
            before = bisect_right(marks(), offset, key=lambda mark: mark[0])
            return marks()[before - 1][1] if before else None

        return Source(path, rendered, secrets, own_line)

    def _render(self, written: Source, sandbox: "_Sandbox") -> str:
        try:
            code = sandbox.compile(written.text, name=written.path, filename=written.path)
            template = Template.from_code(sandbox, code, sandbox.make_globals(None))
            return "".join(_bounded(template.generate({"range": _Numbers(), **self._values})))
        except Exception as error:  # noqa: BLE001 - a template may raise whatever Python does
            line = _line_of(error, written.path)
            if line:
                raise Unreadable(written.fault(line, _indent(written.text, line), _words(error))) from None
            raise Unreadable(fault(written.path, 0, 0, _words(error))) from None


class _Environment(dict[str, str]):
    """The environment variables that are named and set."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__({name: os.environ[name] for name in names if name in os.environ})
        self.named = frozenset(names)
        lines = {line for value in self.values() for line in value.splitlines() if len(line) >= SHORTEST_SECRET}
        self.secrets = tuple(sorted(lines, key=len, reverse=True))

    def fault_of(self, name: str) -> str:
        """Say why a variable is not here."""
        if name in self.named:
            return f"the environment variable {name} is not set"
        return f"the environment variable {name} may not be read: name it by --env {name}"


class _Numbers:
    """`range()`, of which one template gets only so much."""

    def __init__(self) -> None:
        self._left = MOST_NUMBERS

    def __call__(self, *args: int) -> range:
        numbers = range(*args)
        if len(numbers) > self._left:
            raise _TooMuch(f"range() comes to more than {MOST_NUMBERS:,} numbers")
        self._left -= len(numbers)
        return numbers


class _TooMuch(Exception):
    """A template wants more than it may have."""


class _Missing(StrictUndefined):
    """A name that stands for nothing: an error wherever it is used, in our words."""

    __slots__ = ()

    def __init__(self, hint: str | None = None, obj: Any = missing, name: str | None = None, **rest: Any) -> None:
        if hint is None and obj is missing:
            hint = f"`{name}` is not defined: give it by --values or --set"
        elif hint is None and isinstance(obj, _Environment):
            hint = obj.fault_of(str(name))
        super().__init__(hint, obj, name, **rest)


class _Sandbox(SandboxedEnvironment):
    """A sandbox in which nothing can be loaded, drawn by lot, or blown up by an operator."""

    intercepted_binops = frozenset({"*", "**", "%"})

    def __init__(self, **options: Any) -> None:
        nothing = FunctionLoader(lambda _name: None)
        super().__init__(undefined=_Missing, keep_trailing_newline=True, loader=nothing, **options)
        self.globals.pop("lipsum")
        self.filters.pop("random")

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """Refuse what would come to far more than a manifest can hold."""
        numbers = isinstance(left, int) and isinstance(right, int)
        if operator == "**" and not (numbers and 0 <= right <= 64 and abs(left) < 2**64):
            raise _TooMuch("`**` takes whole numbers, and an exponent from 0 to 64")
        if operator == "*" and not numbers and max(_length(left), 1) * max(_length(right), 1) > LARGEST:
            raise _TooMuch(f"`*` comes to more than {LARGEST:,} characters")
        if operator == "%" and isinstance(left, str):
            raise _TooMuch("`%` is for numbers: use the filter `format` for text")
        return super().call_binop(context, operator, left, right)


class _Marking(Extension):
    """Puts the line number before each piece of a template's own text, and at the beginning of each of its lines."""

    def filter_stream(self, stream: TokenStream) -> Iterable[Token]:
        """Mark the text; everything else stays as it is."""
        for token in stream:
            yield Token(token.lineno, token.type, _marked(token)) if token.type == "data" else token


def _marked(token: Token) -> str:
    lines = token.value.split("\n")
    return "\n".join(f"{OPEN}{token.lineno + index}{CLOSE}{line}" for index, line in enumerate(lines))


def _marks(marked: str, rendered: str) -> tuple[tuple[int, int], ...]:
    """Return, in order, offsets into the rendered text and the template's lines; none if the marks changed the text."""
    if MARK.sub("", marked) != rendered:
        return ()
    marks: list[tuple[int, int]] = []
    removed = 0
    for mark in MARK.finditer(marked):
        marks.append((mark.start() - removed, int(mark.group(1))))
        removed += len(mark.group())
    return tuple(marks)


def _bounded(chunks: Iterable[str]) -> Iterator[str]:
    length = 0
    for chunk in chunks:
        length += len(chunk)
        if length > LARGEST:
            raise _TooMuch(f"renders to more than {LARGEST // 1024 // 1024} MiB")
        yield chunk


def _length(value: Any) -> int:
    if isinstance(value, int):
        return value
    return len(value) if isinstance(value, str | list | tuple) else 0


def _offset(text: str, line: int, column: int) -> int:
    ends = [0, *(found.end() for found in LINE_BREAK.finditer(text))]
    return ends[line - 1] + column - 1


def _line_of(error: Exception, path: str) -> int:
    """Return the template's line at which an error arose; 0 where none is known."""
    if isinstance(error, TemplateSyntaxError):
        return error.lineno
    return next(
        (line for frame, line in reversed([*walk_tb(error.__traceback__)]) if frame.f_code.co_filename == path), 0
    )


def _indent(text: str, line: int) -> int:
    written = line_at(text, line)
    return len(written) - len(written.lstrip()) + 1


def _words(error: Exception) -> str:
    match error:
        case TemplateNotFound():
            return "a template cannot load other files"
        case SecurityError():
            return f"not allowed in a template: {error}"
        case TemplateSyntaxError():
            return f"template syntax: {error.message}"
        case MemoryError() | RecursionError():
            return "the template is nested too deep, or takes too much memory"
    return str(error) or type(error).__name__
