"""The exit code of each job of each component, as real runners write scripts: orange and red depend on it."""

import re
from dataclasses import replace

import pytest

from tests.gitops.conftest import Project
from tests.gitops.pipeline import Form
from tests.gitops.test_components import COMPONENTS, jobs_of, lines_of

pytestmark = pytest.mark.untraced

PROGRAM = """\
#!/bin/sh
test "$1" != "$FAILING" || exit "$CODE"
"""
"""Stands in for reconciler: one of its commands fails."""

COMMAND = re.compile(r"(?<!! )reconciler ([a-z][a-z-]+) ")
"""A command whose code matters: not one that decides about another."""


@COMPONENTS
@pytest.mark.parametrize("form", Form, ids=[form.name for form in Form])
def test_a_job_ends_with_the_code_of_the_command_that_failed(name: str, form: Form, project: Project) -> None:
    project.commits()
    runner = replace(project.runner, form=form)
    (runner.folder / "bin" / "reconciler").write_text(PROGRAM)
    codes = {}
    for job, content in jobs_of(name).items():
        for command in COMMAND.findall("\n".join(lines_of(content | {"after_script": []}))):
            failing = {**project.on_main().variables, "FAILING": command, "CODE": "3"}
            codes[job, command] = runner.run(content, failing, {}).code
    assert codes == dict.fromkeys(codes, 3)
    scripts = [job for job, content in jobs_of(name).items() if "script" in content]
    assert [job for job, _ in codes] == scripts
