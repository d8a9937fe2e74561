"""Imports of projects from GitHub and Bitbucket Server: who may, what is refused and in which words, and how they go on."""

from typing import Any

import pytest

from .sandbox_client import Answer, SandboxClient, a_service

SOURCES = ["github", "bitbucket_server"]
TAKEN = "Project namespace name has already been taken, Name has already been taken, Path has already been taken"
NO_ACCESS = (
    "Your GitHub personal access token does not have read access to the repository. Please use a classic GitHub "
    "personal access token with the `repo` scope. Fine-grained tokens are not supported."
)
LINT = "https://bitbucket.example.com/projects/TOOLS/repos/lint"
REPOSITORIES = [
    {
        "github": 42,
        "name": "octo/api",
        "looks": 2,
        "holds": {"milestones": [{"title": "1.0", "due_date": "2026-12-31"}]},
    },
    {"github": 43, "private": False, "fails": "Octokit::NotFound: 404"},
    {"github": 44, "endless": True},
    {"bitbucket_server": "TOOLS/lint", "name": LINT},
]


@pytest.fixture
def acme(service: SandboxClient, dialect: str) -> SandboxClient:
    """The small service, in each dialect, with both sources enabled."""
    state = a_service(dialect, acme={"visibility": "internal"})
    state["groups"][0]["members"].append({"user": "pia", "role": "developer"})
    state["instance"] |= {
        "import_sources": SOURCES,
        "imports": {"tokens": ["theirs"], "repositories": REPOSITORIES, "per_minute": 0},
    }
    return service.given(state)


def github(acme: SandboxClient, user: str = "ada", **values: Any) -> Answer:
    sent = {"personal_access_token": "theirs", "repo_id": 42, "target_namespace": "acme", **values}
    return acme.ask("POST /import/github", {name: each for name, each in sent.items() if each is not None}, user=user)


def bitbucket(acme: SandboxClient, user: str = "ada", **values: Any) -> Answer:
    sent = {
        "bitbucket_server_url": "https://bitbucket.example.com",
        "bitbucket_server_username": "ada",
        "personal_access_token": "theirs",
        "bitbucket_server_project": "TOOLS",
        "bitbucket_server_repo": "lint",
        "target_namespace": "acme",
        **values,
    }
    return acme.ask("POST /import/bitbucket_server", {name: each for name, each in sent.items() if each}, user=user)


def test_an_import_goes_on_with_each_look(acme: SandboxClient, dialect: str) -> None:
    deployed = dialect == "deployed"
    made = {
        "id": 103,
        "name": "moved",
        "full_path": "/acme/team/moved",
        "full_name": "acme / team / moved",
        "refs_url": "/acme/team/moved/refs",
        "import_source": "octo/api",
        "import_status": "scheduled",
        "human_import_status_name": "scheduled",
        "provider_link": "/octo/api",
        "relation_type": None,
        **({"forked": False} if deployed else {"import_warning": None}),
    }
    space = "acme/team" if deployed else "/acme/team"
    assert github(acme, target_namespace=space, new_name="moved") == (201, made)
    assert acme.sandbox.log()[-1]["body"]["personal_access_token"] == "[REDACTED]"
    look = "GET /projects/acme%2Fteam%2Fmoved/import"
    counts = {"milestone": 1}
    seen = [acme.ask(look)[1] for _ in range(3)]
    assert [(each["import_status"], each["stats"]["fetched"], each["stats"]["imported"]) for each in seen] == [
        ("scheduled", {}, {}),
        ("started", counts, {}),
        ("finished", counts, counts),
    ]
    assert [each["title"] for each in acme.ask("GET /projects/103/milestones")[1]] == ["1.0"]
    assert acme.ask(look) == (200, seen[-1])
    assert seen[-1]["import_type"] == "github"
    assert github(acme, target_namespace=space, new_name="Moved")[1] == {"errors": TAKEN[TAKEN.index("Path") :]}
    assert github(acme, target_namespace=space, new_name="moved") == (422, {"errors": TAKEN})
    assert acme.ask("GET /projects/103")[1]["visibility"] == "private"

    # all of it is in a state
    acme.sandbox.replace_state(acme.sandbox.state())
    assert acme.ask(look) == (200, seen[-1])
    assert len(acme.ask("GET /projects/103/milestones")[1]) == 1
    assert acme.ask("POST /import/github/cancel", {"project_id": 103}) == (
        400,
        {"message": "The import cannot be canceled because it is finished"},
    )


def test_an_import_that_fails_or_never_ends(acme: SandboxClient, dialect: str) -> None:
    assert github(acme, repo_id=43)[1]["full_path"] == "/acme/repository-43"
    assert acme.ask("GET /projects/103")[1]["visibility"] == "internal"
    assert [acme.ask("GET /projects/103/import", user=user)[1]["import_error"] for user in ("ada", "pia")] == [
        "Octokit::NotFound: 404",
        "Ask a maintainer to check the import status for more details.",
    ]
    assert acme.ask("GET /projects/103/import")[1]["import_status"] == "failed"

    assert github(acme, repo_id=44)[0] == 201
    assert [acme.ask("GET /projects/104/import")[1]["import_status"] for _ in range(3)] == [
        "scheduled",
        "started",
        "started",
    ]
    cancel = "POST /import/github/cancel"
    assert acme.ask(cancel, {"project_id": 104}, user="pia") == (403, {"message": "Unauthorized access"})
    assert acme.ask(cancel, {"project_id": 104}, user="eve") == (404, {"message": "Not Found"})
    status, canceled = acme.ask(cancel, {"project_id": 104})
    assert (status, canceled["import_status"]) == (200, "canceled")
    assert ("refs_url" in canceled, "relation_type" in canceled) == (dialect == "deployed",) * 2
    assert acme.ask("GET /projects/104/import")[1]["import_status"] == "canceled"
    for number in (100, 999):
        assert acme.ask(cancel, {"project_id": number}) == (404, {"message": "404 Not found"})
    none = acme.ask("GET /projects/100/import")[1]
    assert (none["import_status"], none["import_type"], none["stats"]) == ("none", None, None)


def test_an_import_that_leaves_something_out_has_finished(acme: SandboxClient) -> None:
    state = acme.sandbox.state()
    api, *_, lint = state["instance"]["imports"]["repositories"]
    errors = [{"relation_name": "issues"}, {"source": "Importer", "exception_message": "too long"}]
    api |= {"left_out": {"milestone": 2, "issue": 1}, "failed_relations": errors[:1]}
    lint |= {"left_out": {"issue": 1}, "failed_relations": errors}
    acme.sandbox.replace_state(state)
    assert (github(acme)[0], bitbucket(acme)[0]) == (201, 201)
    seen = [acme.ask("GET /projects/103/import")[1] for _ in range(3)]
    assert [len(each["failed_relations"]) for each in seen] == [0, 0, 1]
    assert seen[-1]["stats"] == {"fetched": {"milestone": 3, "issue": 1}, "imported": {"milestone": 1}}
    ended = acme.ask("GET /projects/104/import")[1]
    assert (ended["import_status"], ended["stats"]) == ("finished", None)
    common = {"created_at": ended["created_at"], "line_number": None, "exception_class": "ActiveRecord::RecordInvalid"}
    assert ended["failed_relations"] == [
        {"id": 1, "relation_name": "issues", "source": None, "exception_message": "Validation failed", **common},
        {"id": 2, "relation_name": None, "source": "Importer", "exception_message": "too long", **common},
    ]


def test_what_github_imports_are_refused_for(acme: SandboxClient, dialect: str) -> None:
    nowhere = "Namespace or group to import repository into does not exist."
    forbidden = "You are not allowed to import projects in this namespace."
    assert github(acme, target_namespace="acme/none") == (422, {"errors": nowhere})
    for user, namespace in (("pia", "acme"), ("ada", "far"), ("ada", "dev")):
        assert github(acme, user, target_namespace=namespace) == (422, {"errors": forbidden})
    assert github(acme, personal_access_token="wrong", repo_id=9) == (422, {"errors": NO_ACCESS})
    assert github(acme, repo_id=9) == (
        422,
        {"errors": 'Import failed because of a GitHub error: {"message": "Not Found"} (HTTP 404)'},
    )
    assert github(acme, github_hostname="http://10.0.0.1") == (400, {"errors": "Invalid URL: http://10.0.0.1"})
    assert github(acme, new_name="a b")[0] == 422
    for values in ({"target_namespace": " "}, {"repo_id": None}, {"timeout_strategy": "x"}):
        assert github(acme, **values)[0] == 400
    assert github(acme, optional_stages="all")[0] == 400
    assert github(acme, optional_stages={"attachments_import": True}, pagination_limit=50)[0] == 201
    assert github(acme, target_namespace="ada")[1]["full_path"] == "/ada/api"

    state = acme.sandbox.state()
    state["instance"]["imports"] = {}
    del state["instance"]["import_sources"]
    acme.given(state)
    off = {"errors": ["github import source is disabled"]}
    answers = [github(acme, repo_id=number, personal_access_token="any") for number in range(1, 8)]
    usual = (403, off) if dialect == "deployed" else answers[0]
    assert answers[0] == usual
    assert [status for status, _ in answers] == [usual[0]] * 6 + [429]
    assert answers[-1][1] == {"errors": "This endpoint has been requested too many times. Try again later."}
    again = [github(acme, repo_id=1, personal_access_token="any", target_namespace="none")[0] for _ in range(60)]
    assert (again[0], 422 in again) == (429, True)  # by this sandbox's clock, each attempt takes a second
    sources = {"import_sources": "github,bitbucket"}
    assert acme.ask("PUT /application/settings", sources, user="root")[1]["import_sources"] == ["github", "bitbucket"]
    assert acme.ask("PUT /application/settings", {"import_sources": ["svn"]}, user="root")[0] == 400
    assert github(acme, "dev", target_namespace="dev")[0] == 201


@pytest.mark.parametrize("dialect", ["spec", "deployed"], indirect=True)
def test_a_repository_on_a_bitbucket_server(acme: SandboxClient, dialect: str) -> None:
    deployed = dialect == "deployed"
    status, made = bitbucket(acme, target_namespace="acme/team")
    assert (status, made["full_path"]) == (201, "/acme/team/lint")
    assert made["provider_link"] == made["import_source"] == LINT
    done = acme.ask(f"GET /projects/{made['id']}/import")[1]
    assert (done["import_status"], done["stats"]) == ("finished", None)
    assert bitbucket(acme, target_namespace="acme/team", new_name="lint") == (422, {"message": {"error": TAKEN}})
    assert bitbucket(acme, target_namespace=None)[1]["full_path"] == "/ada/lint"
    assert bitbucket(acme, target_namespace=None, new_namespace="acme", new_name="old")[1]["full_path"] == (
        "/acme/old" if deployed else "/ada/old"
    )

    # a namespace that is missing is made, or the caller's own is taken
    nowhere = {"message": {"error": "Namespace or group to import repository into does not exist."}}
    for path, instead in (
        ("acme/fresh/deep", "acme/fresh/deep"),
        ("acme/-bad", "ada"),
        ("far/fresh", "ada"),
        ("/acme", "ada"),
    ):
        status, made = bitbucket(acme, target_namespace=path, new_name=f"in{path.replace('/', '.')}")
        if deployed:
            assert (status, made["full_path"].rpartition("/")[0]) == (201, f"/{instead}")
        elif path == "/acme":
            assert status == 201
        else:
            assert (status, made) == (422, nowhere)
    assert acme.ask("GET /groups/acme%2Ffresh%2Fdeep")[0] == (200 if deployed else 404)

    def refusal(user: str = "ada", **values: Any) -> tuple[int, Any]:
        status, body = bitbucket(acme, user, **values)
        return status, body["message"]["error"]

    for url in ("http://localhost:7990", "http://127.0.0.1", "ftp://example.com", "https://[", "example.com"):
        assert refusal(bitbucket_server_url=url) == (400, f"Invalid URL: {url}")
    assert refusal("pia") == (401, "You don't have permissions to import this project")
    failed = "Import failed due to a BitBucket Server error: Error"
    assert refusal(personal_access_token="no")[1].startswith(f"{failed} 401: Authentication failed.")
    assert refusal(bitbucket_server_repo="x") == (400, f"{failed} 404: Repository TOOLS/x does not exist.")
    assert bitbucket(acme, bitbucket_server_project=None)[0] == 400
    assert acme.ask("PUT /application/settings", {"import_sources": []}, user="root")[0] == 200
    assert refusal() == (403, ["bitbucket_server import source is disabled"])


@pytest.mark.parametrize("repository", [{}, {"github": 1, "bitbucket_server": "A/b"}])
def test_a_repository_is_on_one_host(service: SandboxClient, repository: dict[str, Any]) -> None:
    answer = service.control("PUT /-/state", {"instance": {"imports": {"repositories": [repository]}}})
    assert answer.status_code == 400
    assert answer.json()["message"].endswith("must have either github or bitbucket_server")
