"""What the acceptance tests make is removed, however a test ends."""

from pathlib import Path

import pytest

from tests.acceptance.installation import Installation


@pytest.mark.untraced
def test_ctrl_c_leaves_nothing_that_anybody_could_use(installation: Installation, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), installation.world(tmp_path) as world:
        world.group("sub")
        world.project("sub/app")
        world.user("other")
        raise KeyboardInterrupt
    assert [installation.ask("GET", f"groups/{world.at(path)}").status_code for path in ("", "sub")] == [404, 404]
    refused = [installation.ask("GET", "user", token=user.token).status_code for user in world.users]
    assert [status for status in refused if status not in (401, 403)] == []
