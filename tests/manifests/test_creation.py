"""`create`: a group or project that does not exist yet."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

import pytest

from reconciler.manifests import Manifests, Member
from reconciler.model.creation import Archive, Creation, Import
from reconciler.model.obstacle import Obstacle
from reconciler.model.targets import Level, Target
from tests.cli_runner import CliRunner
from tests.manifests.conftest import Folder

TEAM = """\
apiVersion: reconciler/v1
kind: Group
metadata: {path: acme/new-team}
create: {name: "Team {path}", from_archive: "../archives/{name}.tar.gz"}
---
apiVersion: reconciler/v1
kind: Group
metadata: {path: acme/new-team/sub}
create: {}
---
apiVersion: reconciler/v1
kind: Project
metadata: {path: acme/new-team/api}
create:
  name: api
  import:
    github:
      repo_id: 5
      token_env: GITHUB_TOKEN
      github_hostname: https://github.example.com
      optional_stages: {attachments_import: true, collaborators_import: false}
      timeout_strategy: optimistic
spec: {approval_settings: {allow_author_approval: false}}
---
apiVersion: reconciler/v1
kind: Project
metadata: {path: acme/new-team/web}
create:
  import:
    bitbucket_server:
      {url: "https://bitbucket.example.com", username: ada, token_env: BITBUCKET_TOKEN, project: PAY, repo: "{name}"}
---
apiVersion: reconciler/v1
kind: Project
metadata: {path: acme/new-team/docs}
create: {name: "{{path}}", visibility: internal}
"""

RENDERED = """\
apiVersion: reconciler/v1
kind: Group
metadata:
  path: acme/new-team
create:
  name: Team acme/new-team
  from_archive: archives/new-team.tar.gz
spec: {}
---
apiVersion: reconciler/v1
kind: Group
metadata:
  path: acme/new-team/sub
create: {}
spec: {}
---
apiVersion: reconciler/v1
kind: Project
metadata:
  path: acme/new-team/api
create:
  import:
    github:
      timeout_strategy: optimistic
      repo_id: 5
      github_hostname: "https://github.example.com"
      optional_stages:
        attachments_import: true
        collaborators_import: false
      token_env: GITHUB_TOKEN
spec:
  approval_settings:
    allow_author_approval: false
---
apiVersion: reconciler/v1
kind: Project
metadata:
  path: acme/new-team/docs
create:
  name: "{{path}}"
  visibility: internal
spec: {}
---
apiVersion: reconciler/v1
kind: Project
metadata:
  path: acme/new-team/web
create:
  import:
    bitbucket_server:
      url: "https://bitbucket.example.com"
      username: ada
      project: PAY
      repo: web
      token_env: BITBUCKET_TOKEN
spec: {}
"""


def test_what_is_created(folder: Folder) -> None:
    folder.put("archives/new-team.tar.gz", b"archive")
    folder.put("manifests/team.yaml", TEAM)
    digest = hashlib.sha256(b"archive").hexdigest()
    read = folder.read("manifests")
    assert {str(each.target): each.creation for each in read.desired.targets} == {
        "group acme/new-team": Creation(
            "Team acme/new-team", archive=Archive(Path("archives/new-team.tar.gz"), digest)
        ),
        "group acme/new-team/sub": Creation("sub"),
        "project acme/new-team/api": Creation(
            "api",
            source=Import(
                "github",
                "GITHUB_TOKEN",
                {
                    "repo_id": 5,
                    "github_hostname": "https://github.example.com",
                    "optional_stages": {"attachments_import": True, "collaborators_import": False},
                    "timeout_strategy": "optimistic",
                },
            ),
        ),
        "project acme/new-team/docs": Creation("{path}", "internal"),
        "project acme/new-team/web": Creation(
            "web",
            source=Import(
                "bitbucket_server",
                "BITBUCKET_TOKEN",
                {
                    "url": "https://bitbucket.example.com",
                    "username": "ada",
                    "project": "PAY",
                    "repo": "web",
                },
            ),
        ),
    }
    origins = [each.creation.origin for each in read.desired.targets if each.creation]
    assert origins == [f"manifests/team.yaml:{line}" for line in (1, 6, 11, 33, 25)]
    places = [read.origin(each.target.address) for each in read.desired.targets]
    assert places == [f"manifests/team.yaml:{line}" for line in (4, 9, 14, 36, 28)]


def test_the_digest_takes_in_the_creation(folder: Folder) -> None:
    def digest(create: str) -> str:
        folder.put("m/a.yaml", f"apiVersion: reconciler/v1\nkind: Group\nmetadata: {{path: acme/team}}\n{create}")
        return folder.read("m").desired.digest

    folder.put("m/a.gz", b"1")
    folder.put("b.gz", b"1")
    plain = digest("create: {}")
    assert digest("create: {name: team}") == plain
    archived = digest("create: {from_archive: a.gz}")
    assert digest("create: {from_archive: ../b.gz}") == archived
    folder.put("m/a.gz", b"12")
    others = [digest(create) for create in ("create: {name: T}", "create: {visibility: public}", "spec: {}")]
    assert len({plain, archived, digest("create: {from_archive: a.gz}"), *others}) == 6


def test_it_is_rendered_and_the_result_means_the_same(cli_runner: CliRunner) -> None:
    cli_runner.write("archives/new-team.tar.gz", "archive")
    cli_runner.write("manifests/team.yaml", TEAM)
    rendered = cli_runner("render manifests")
    assert (rendered.code, rendered.out) == (0, RENDERED)
    cli_runner.write("again.yaml", RENDERED)
    assert cli_runner("render again.yaml").out == RENDERED


ONE = "apiVersion: reconciler/v1\nkind: Group\nmetadata: {path: acme/team}\ncreate: {from_archive: %s}\n"


def test_an_archive_must_be_one_that_can_be_sent(folder: Folder) -> None:
    folder.put("folder.gz/a.txt", b"")
    Path("device.gz").symlink_to("/dev/null")
    told = {}
    for written in ("../gone.gz", "../folder.gz", "../device.gz", "../team.tar", "/archives/team.gz"):
        folder.put("m/a.yaml", ONE % written)
        told[written] = folder.faults("m").splitlines()[0].removeprefix("m/a.yaml:4:24: ")
    assert told == {
        "../gone.gz": "gone.gz cannot be read: no such file or directory",
        "../folder.gz": "folder.gz is a folder, not an archive",
        "../device.gz": "device.gz is not a file",
        "../team.tar": "must be an archive of a group, whose name ends in `.gz`",
        "/archives/team.gz": "must be a path from the folder of this file, not an absolute one",
    }


def test_a_variable_with_a_token_of_ours_is_sent_to_nobody(
    cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECONCILER_NOTE_TOKEN", "a-token-of-ours")
    monkeypatch.setenv("MINE", "a-token-of-ours")
    monkeypatch.setenv("OTHERS", "another")
    manifest = "apiVersion: reconciler/v1\nkind: Project\nmetadata: {path: acme/%s}\ncreate:\n"
    for name in ("RECONCILER_NOTE_TOKEN", "MINE", "OTHERS"):
        source = f"  import: {{github: {{repo_id: 1, token_env: {name}}}}}\n"
        cli_runner.write(f"manifests/{name}.yaml", manifest % name.lower() + source)
    refused = "holds a token of reconciler, and would be sent to another service: use a variable for the import alone"
    for command in ("validate", "plan"):
        done = cli_runner(command)
        assert done.code == 1
        assert [line for line in (done.out + done.err).removeprefix("reconciler: ").splitlines() if "yaml" in line] == [
            f"manifests/MINE.yaml:5:44: the environment variable MINE {refused}",
            f"manifests/RECONCILER_NOTE_TOKEN.yaml:5:44: the environment variable RECONCILER_NOTE_TOKEN {refused}",
        ]


NEW = """\
apiVersion: reconciler/v1
kind: ProjectSet
metadata: {name: team, labels: {team: new}}
select: {group: acme/team, exclude: ["**/docs"]}
spec: {approval_settings: {allow_author_approval: false}}
---
apiVersion: reconciler/v1
kind: Group
metadata: {path: acme/team}
create: {}
---
apiVersion: reconciler/v1
kind: Project
metadata: {path: acme/team/docs}
create: {}
---
apiVersion: reconciler/v1
kind: Project
metadata: {path: acme/Team/Sub/Api}
create: {}
---
apiVersion: reconciler/v1
kind: Project
metadata: {path: acme/team/old}
create: {}
---
apiVersion: reconciler/v1
kind: Project
metadata: {path: acme/team/there}
spec: {milestones: {"1": {}}}
---
apiVersion: reconciler/v1
kind: Project
metadata: {path: acme/else}
create: {}
"""


def members(read: Manifests) -> dict[str, Mapping[str, str]]:
    """The labels of the projects that have sections."""
    return {str(each.target.ref): each.labels for each in read.desired.targets if each.sections}


@pytest.mark.parametrize("listed", [(), [Member("acme/team/web"), Member("acme/team/old", archived=True)]])
def test_projects_that_documents_create_are_members_of_sets(folder: Folder, listed: list[Member]) -> None:
    folder.put("new.yaml", NEW)
    read = folder.read().with_discovered({"acme/team": listed})
    team = {"team": "new"}
    web = {"acme/team/web": team} if listed else {}
    old = {} if listed else {"acme/team/old": team}  # it is there, and archived
    assert members(read) == {"acme/Team/Sub/Api": team, **old, "acme/team/there": {}, **web}
    assert read.archived_left_out == ({"acme/team/old"} if listed else set())


def test_a_group_that_cannot_be_listed_has_no_members(folder: Folder) -> None:
    folder.put("new.yaml", NEW)
    assert members(
        folder.read().with_discovered({"acme/team": Obstacle(Target(Level.GROUP, "acme/team").address, "403")})
    ) == {"acme/team/there": {}}


VISIBLE = """\
apiVersion: reconciler/v1
kind: Group
metadata: {path: acme/team}
create: {visibility: internal}
---
apiVersion: reconciler/v1
kind: Group
metadata: {path: acme/team/sub}
create: {}
---
apiVersion: reconciler/v1
kind: Group
metadata: {path: acme/team/sub/public}
create: {visibility: public}
---
apiVersion: reconciler/v1
kind: Project
metadata: {path: acme/team/api}
create: {visibility: public}
---
apiVersion: reconciler/v1
kind: Project
metadata: {path: acme/team/web}
create: {visibility: internal}
---
apiVersion: reconciler/v1
kind: Project
metadata: {path: acme/lib}
create: {visibility: public}
---
apiVersion: reconciler/v1
kind: Group
metadata: {path: nova}
create: {}
---
apiVersion: reconciler/v1
kind: Project
metadata: {path: nova/api}
create: {visibility: internal}
"""


def test_nothing_is_more_visible_than_the_group_around_it(folder: Folder) -> None:
    folder.put("a.yaml", VISIBLE)
    assert [str(each).splitlines()[0] for each in folder.read().advice] == [
        "a.yaml:14:22: warning: the service refuses `public` in group acme/team/sub, which is created internal (a.yaml:6)",
        "a.yaml:19:22: warning: the service lowers `public` in group acme/team, which is created internal (a.yaml:1)",
        "a.yaml:39:22: warning: the service lowers `internal` in group nova, which is created private (a.yaml:31)",
    ]
