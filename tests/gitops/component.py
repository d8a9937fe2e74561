"""CI/CD components, read by the service's rules: a header with inputs, and a configuration in which they are filled in."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
INTERPOLATION = re.compile(r"\$\[\[\s*inputs\.([\w-]+)\s*\]\]")
TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "number": (int, float),
    "boolean": bool,
    "array": list,
}
KEYWORDS = {"default", "description", "options", "regex", "type"}


class ComponentError(Exception):
    """What the service would refuse to make a pipeline of."""


@dataclass(frozen=True)
class Component:
    """A component.

    Attributes:
        inputs: what it takes, by name.
        body: its configuration, with gaps.
    """

    inputs: Mapping[str, Mapping[str, Any]]
    body: Mapping[str, Any]

    def jobs(self, **given: Any) -> dict[str, dict[str, Any]]:
        """Return the jobs with the inputs filled in and `extends` resolved; hidden ones are left out."""
        values = self.values(given)
        filled = _filled(self.body, values)
        return {name: _extended(filled, name) for name in filled if not name.startswith(".")}

    def values(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the value of each input."""
        unknown = given.keys() - self.inputs.keys()
        if unknown:
            raise ComponentError(f"unknown inputs: {', '.join(sorted(unknown))}")
        return {name: _checked(name, rules, given) for name, rules in self.inputs.items()}


def read_component(name: str) -> Component:
    """Read a component of this project."""
    header, body = yaml.safe_load_all((ROOT / "templates" / f"{name}.yml").read_text())
    assert set(header) == {"spec"}
    assert set(header["spec"]) == {"inputs"}
    return Component(header["spec"]["inputs"], body)


def _checked(name: str, rules: Mapping[str, Any], given: Mapping[str, Any]) -> Any:
    if name not in given and "default" not in rules:
        raise ComponentError(f"`{name}` input: required value has not been provided")
    value = given.get(name, rules.get("default"))
    wanted = rules.get("type", "string")
    if not isinstance(value, TYPES[wanted]) or (wanted == "number" and isinstance(value, bool)):
        raise ComponentError(f"`{name}` input: provided value is not a {wanted}")
    if "options" in rules and value not in rules["options"]:
        raise ComponentError(f"`{name}` input: `{value}` cannot be used because it is not in the list of options")
    if "regex" in rules and not re.search(rules["regex"], str(value)):
        raise ComponentError(f"`{name}` input: provided value does not match required RegEx pattern")
    return value


def _filled(node: Any, values: Mapping[str, Any]) -> Any:
    """Fill in the inputs: with their type where one is a whole value, else as text."""
    if isinstance(node, dict):
        return {_text(key, values): _filled(inner, values) for key, inner in node.items()}
    if isinstance(node, list):
        return [_filled(inner, values) for inner in node]
    if not isinstance(node, str):
        return node
    whole = INTERPOLATION.fullmatch(node)
    return _value(whole[1], values) if whole else _text(node, values)


def _text(text: str, values: Mapping[str, Any]) -> str:
    def written(found: re.Match[str]) -> str:
        value = _value(found[1], values)
        return str(value).lower() if isinstance(value, bool) else str(value)

    filled = INTERPOLATION.sub(written, text)
    if "$[[" in filled:
        raise ComponentError(f"unknown interpolation in {text!r}")
    return filled


def _value(name: str, values: Mapping[str, Any]) -> Any:
    if name not in values:
        raise ComponentError(f"unknown interpolation key: `{name}`")
    return values[name]


def _extended(jobs: Mapping[str, Any], name: str) -> dict[str, Any]:
    job = dict(jobs[name])
    parent = job.pop("extends", None)
    return _merged(_extended(jobs, parent), job) if parent else job


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Mappings are merged, everything else is replaced."""
    both = {
        key: _merged(below[key], above[key])
        for key in below.keys() & above.keys()
        if isinstance(below[key], dict) and isinstance(above[key], dict)
    }
    return {**below, **above, **both}
