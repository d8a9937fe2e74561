"""The exit code of each job of each component, as real runners write scripts: orange and red depend on it."""

from dataclasses import replace

import pytest

from tests.gitops.conftest import Project
from tests.gitops.pipeline import Form
from tests.gitops.test_components import COMPONENTS, commands_of, jobs_of

pytestmark = pytest.mark.untraced

PROGRAM = """\
#!/bin/sh
test "$1" != "$FAILING" || exit "$CODE"
"""
"""Stands in for reconciler: one of its commands fails."""


@COMPONENTS
@pytest.mark.parametrize("form", Form, ids=[form.name for form in Form])
def test_a_job_ends_with_the_code_of_the_command_that_failed(name: str, form: Form, project: Project) -> None:
    project.commits()
    runner = replace(project.runner, form=form)
    (runner.folder / "bin" / "reconciler").write_text(PROGRAM)
    scripts = {job: content for job, content in jobs_of(name).items() if "script" in content}
    codes = {}
    for job, content in scripts.items():
        [command] = commands_of(content)
        failing = {**project.on_main().variables, "CI_JOB_NAME_SLUG": "any", "FAILING": command, "CODE": "3"}
        codes[job] = runner.run(content, failing, {}).code
    assert codes == dict.fromkeys(scripts, 3)
