"""An export of any live state validates, plans empty and without problems, and repeats itself."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from reconciler.edit.export import Layout, run_export
from reconciler.sandbox import Sandbox
from tests.building import KINDS
from tests.export.exporting import EVERYTHING, client_of, exported, planned
from tests.export.lives import LIVES, service
from tests.test_fewest_calls import PROJECTS

pytestmark = pytest.mark.untraced

thorough = settings(
    max_examples=2,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)


@thorough
@given(live=LIVES, later=LIVES)
def test_an_export_plans_empty_on_the_service_on_a_copy_of_it_and_over_an_earlier_export(
    sandbox: Sandbox, dialect: str, live: dict[str, Any], later: dict[str, Any]
) -> None:
    with TemporaryDirectory() as place:
        folder, state = Path(place) / "manifests", Path(place) / "state.json"
        with client_of(sandbox, service(live, dialect)) as client:
            done = exported(client, folder)
            assert (done.whole, done.targets) == (True, 6)
            assert planned(client, folder) == ([], [])
            run_export(EVERYTHING, client, KINDS, folder=folder, state=state)
        with client_of(sandbox, json.loads(state.read_text()), "rehearsal") as client:
            assert planned(client, folder) == ([], [])
        with client_of(sandbox, service(later, dialect)) as client:
            exported(client, folder)
            changes, problems = planned(client, folder)
            unreadable = [
                problem
                for problem in problems
                if problem.reason.startswith("cannot be read: switched off in the project")
            ]
            assert (changes, problems) == ([], unreadable)


@thorough
@given(live=LIVES, later=LIVES, alike=st.booleans(), all_fields=st.booleans(), prune=st.booleans())
def test_a_group_can_become_a_set_in_which_projects_deviate_and_deviate_again(
    sandbox: Sandbox, dialect: str, live: dict[str, Any], later: dict[str, Any], alike: bool, **options: bool
) -> None:
    if alike:
        live["projects"] = {number: copied(live["projects"][100], number) for number in (100, 101, 102, 103)}
    layout = Layout(None, True, options["all_fields"], options["prune"])
    with TemporaryDirectory() as place:
        folder = Path(place)
        with client_of(sandbox, service(live, dialect)) as client:
            exported(client, folder, layout=layout)
            assert planned(client, folder) == ([], [])
        with client_of(sandbox, service(later, dialect)) as client:
            exported(client, folder, layout=layout)
            changes, problems = planned(client, folder)
            assert changes == []
            assert [each.reason for each in problems if "switched off in the project" not in each.reason] == []


@thorough
@given(live=LIVES, alike=st.booleans())
def test_what_projects_share_can_be_hoisted_into_a_profile(
    sandbox: Sandbox, dialect: str, live: dict[str, Any], alike: bool
) -> None:
    if alike:
        live["projects"] = {number: copied(live["projects"][100], number) for number in (100, 101, 102, 103)}
    with client_of(sandbox, service(live, dialect)) as client, TemporaryDirectory() as folder:
        exported(client, Path(folder), layout=Layout("baseline"))
        assert planned(client, Path(folder)) == ([], [])


def copied(project: dict[str, Any], number: int) -> dict[str, Any]:
    """Return the contents for another project, with patterns that begin with its own path."""
    rules = [
        {**rule, "repository_path_pattern": rule["repository_path_pattern"].replace("acme/api", PROJECTS[number])}
        for rule in project["container_repository_protection_rules"]
    ]
    return {**project, "container_repository_protection_rules": rules}
