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
        configuration = self.configuration(**given)
        hidden = {name: configuration.pop(name) for name in [*configuration] if name.startswith(".")}
        return {name: _extended(job, hidden) for name, job in configuration.items()}

    def configuration(self, **given: Any) -> dict[str, Any]:
        """Return the configuration with the inputs filled in, merged into that of included components."""
        assert given.keys() <= self.inputs.keys()
        values = {name: rules.get("default") for name, rules in self.inputs.items()} | given
        filled = _filled(self.body, values)
        whole: dict[str, Any] = {}
        for each in filled.pop("include", []):
            name = each["local"].removeprefix("/templates/").removesuffix(".yml")
            whole = merged(whole, read_component(name).configuration(**each["inputs"]))
        return dict(merged(whole, filled))


def merged(under: Any, over: Any) -> Any:
    """Merge two configurations as the service does: mappings key by key; anything else is replaced, also by null."""
    if not (isinstance(under, dict) and isinstance(over, dict)):
        return over
    both: Any = under | {key: merged(under.get(key), value) for key, value in over.items()}
    return both


def child_jobs(text: str) -> dict[str, dict[str, Any]]:
    """Return the jobs of the configuration of a child pipeline, each with what holds for all of them."""
    content = yaml.safe_load(text)
    content.pop("workflow")
    shared, variables = content.pop("default"), content.pop("variables")
    return {name: {**shared, "variables": variables, **job} for name, job in content.items()}


def child_workflow(text: str) -> dict[str, Any]:
    """Return what the configuration of a child pipeline says about that pipeline; the parent's does not apply to it."""
    workflow: dict[str, Any] = yaml.safe_load(text).get("workflow", {})
    return workflow


def _extended(job: dict[str, Any], hidden: Mapping[str, Any]) -> dict[str, Any]:
    """Return a job merged over those that it extends, with its script as a list."""
    names = job.get("extends", [])
    whole: Any = {}
    for name in [names] if isinstance(names, str) else names:
        whole = merged(whole, hidden[name])
    whole = merged(whole, {key: value for key, value in job.items() if key != "extends"})
    return dict(whole, script=[whole["script"]]) if "script" in whole else dict(whole)


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
