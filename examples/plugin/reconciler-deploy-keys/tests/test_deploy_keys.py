"""The life of a deploy key on the sandbox."""

from pathlib import Path

from reconciler_deploy_keys import KIND, route

from reconciler.testing import check_kind

EXAMPLE = Path(__file__).parent.parent / "deploy_keys.yaml"


def test_the_life_of_a_deploy_key() -> None:
    """Everything that can be done with one is done, in both dialects."""
    check_kind(KIND, EXAMPLE, route)
