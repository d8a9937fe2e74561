"""CI/CD components: what their files say, with the inputs filled in. The rules of jobs are for the service to interpret."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
INPUT = re.compile(r"\$\[\[ inputs\.([\w-]+) \]\]")


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
        """Return the jobs with the inputs filled in, those of included components first."""
        assert given.keys() <= self.inputs.keys()
        for name, value in given.items():
            allowed = self.inputs[name].get("options", [value])
            assert value in allowed, f"{name}: {value}"
        values = {name: rules.get("default") for name, rules in self.inputs.items()} | given
        filled = _filled(self.body, values)
        jobs: dict[str, dict[str, Any]] = {}
        for each in filled.pop("include", []):
            name = each["local"].removeprefix("/templates/").removesuffix(".yml")
            jobs |= read_component(name).jobs(**each["inputs"])
        jobs |= filled
        return {name: job | {"rules": _flat(job["rules"])} for name, job in jobs.items()}


def child_jobs(text: str) -> dict[str, dict[str, Any]]:
    """Return the jobs of the configuration of a child pipeline, with the hidden jobs that they extend merged into each."""
    content = yaml.safe_load(text)
    shared = {"image": content.pop("image")}
    content.pop("workflow", None)
    hidden = {name: content.pop(name) for name in [*content] if name.startswith(".")}
    return {name: shared | hidden.get(job.pop("extends", ""), {}) | job for name, job in content.items()}


def child_workflow(text: str) -> dict[str, Any]:
    """Return what the configuration of a child pipeline says about that pipeline; the parent's does not apply to it."""
    workflow: dict[str, Any] = yaml.safe_load(text).get("workflow", {})
    return workflow


def _flat(rules: Any) -> list[Any]:
    """Return rules with those in nested lists, as the service reads them."""
    return [each for rule in rules for each in (_flat(rule) if isinstance(rule, list) else [rule])]


def read_component(name: str) -> Component:
    """Read a component of this project."""
    header, body = yaml.safe_load_all((ROOT / "templates" / f"{name}.yml").read_text())
    return Component(header["spec"]["inputs"], body)


def _filled(node: Any, values: Mapping[str, Any]) -> Any:
    """Fill in the inputs: with their type where one is a whole value, else as text."""
    match node:
        case dict():
            return {_filled(key, values): _filled(inner, values) for key, inner in node.items()}
        case list():
            return [_filled(inner, values) for inner in node]
        case str():
            whole = INPUT.fullmatch(node)
            return values[whole[1]] if whole else INPUT.sub(lambda found: _text(values[found[1]]), node)
    return node


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
