"""Where a difference is written: manifests and live state in, changed lines out."""

from collections.abc import Mapping
from typing import Any

from reconciler.accept import Acceptance
from reconciler.model.targets import Level, Target
from tests.accept.test_any_fleet import IDS, PROJECTS, accepted_by, read
from tests.building import live

Answers = Mapping[tuple[int, str], Any]


def accepted(text: str, answers: Answers, file: str = "manifests/fleet.yaml") -> Acceptance:
    """Accept what the service answers about projects, by ID and section."""
    found = {
        (Target(Level.PROJECT, ref), section, section): answer
        for (number, section), answer in answers.items()
        for ref in (number, PROJECTS[number])
    }
    return accepted_by(read({file: text}), live(found, IDS))


def changed(text: str, answers: Answers) -> str:
    """Return the lines that are removed and added, without the names of files."""
    lines = accepted(text, answers).diff()
    return "".join(line for line in lines if line[0] in "+-" and line[:3] not in {"+++", "---"})


def approvals(**fields: Any) -> Any:
    return {name: {"value": value, "locked": False} for name, value in fields.items()}


def profile(spec: str, name: str = "base") -> str:
    return f"apiVersion: reconciler/v1\nkind: Profile\nmetadata: {{name: {name}}}\nspec:\n{spec}---\n"


def project(path: str, spec: str = "", profiles: str = "base") -> str:
    head = f"apiVersion: reconciler/v1\nkind: Project\nmetadata: {{path: {path}, profiles: [{profiles}]}}\n"
    return head + (f"spec:\n{spec}" if spec else "") + "---\n"
