"""Whatever is live: what is exported validates, plans empty and without problems, and is exported again the same."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import HealthCheck, given, settings

from reconciler.sandbox import Sandbox
from tests.export.exporting import client_of, exported, planned
from tests.export.lives import LIVES, service

thorough = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)


@thorough
@given(live=LIVES)
def test_what_is_exported_plans_empty_and_without_problems(
    sandbox: Sandbox, dialect: str, live: dict[str, Any]
) -> None:
    with client_of(sandbox, service(live, dialect)) as client, TemporaryDirectory() as folder:
        done = exported(client, Path(folder))
        assert done.whole
        assert done.targets == 6
        assert planned(client, Path(folder)) == ([], [])
