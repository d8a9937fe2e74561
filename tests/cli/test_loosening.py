"""What loosens protection comes first in every format, and can be limited."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.canned import answer, canned
from tests.cli_runner import BREAK, CliRunner
from tests.states import a_small_service

MAINTAINERS = [{"access_level": 40}]

MANIFESTS = """\
apiVersion: reconciler/v1
kind: ProjectSet
metadata: {name: all}
select: {group: acme}
spec:
  protected_branches: {main: {allow_force_push: true}}
  trigger_tokens: {old: null}
---
apiVersion: reconciler/v1
kind: Project
metadata: {path: acme/api}
spec:
  protected_branches: {main: null}
  milestones: {a: {}}
"""

TEXT = """\
Loosens protection:
3 projects                                                           (acme/lib, acme/tools/cli and 1 more)
  ~ protected branch "main"                   allow_force_push: false -> true, loosens     manifests/all.yaml:6
project acme/api
  - protected branch "main"                   loosens     manifests/all.yaml:13
All else:
4 projects                                                           (acme/api, acme/lib and 2 more)
  - trigger token "old"                       tightens     manifests/all.yaml:7
project acme/api
  + milestone "a"     manifests/all.yaml:14
Plan: 1 to create, 3 to update, 5 to delete, 4 loosening, 4 tightening. 9 writes to apply; 10 requests were made to plan.
"""

NOTE = """\
### Loosens protection

<details open>
<summary>3 projects (<code>acme/lib&#44; acme/tools/cli and 1 more</code>), each: 1 to update</summary>

`acme/lib`, `acme/tools/cli`, `acme/web`

```diff
~ protected branch "main"
-     allow_force_push: false
+     allow_force_push: true
!     loosens
```

</details>

<details open>
<summary><code>project acme/api</code>: 1 to delete</summary>

```diff
- protected branch "main"
-     allowed_to_push: maintainer
-     allowed_to_merge: maintainer
-     allowed_to_unprotect: maintainer
-     allow_force_push: false
-     code_owner_approval_required: false
!     loosens
-     branches that match no other rule are open to every Developer, force pushes and deletions included
-     each approval rule for it alone applies to all branches then
```

</details>

### All else

<details open>
<summary>4 projects (<code>acme/api&#44; acme/lib and 2 more</code>), each: 1 to delete</summary>
"""


@pytest.fixture
def loosening(cli_runner: CliRunner) -> CliRunner:
    """Return a user whose manifests loosen four projects, and tighten each."""
    state = a_small_service("deployed")
    for number, project in enumerate(state["projects"]):
        rule = {"name": "main", "push_access_levels": MAINTAINERS, "merge_access_levels": MAINTAINERS}
        project["protected_branches"] = [{"id": 50 + number, **rule}]
        project["trigger_tokens"] = [{"id": 60 + number, "description": "old", "owner": "ada"}]
    cli_runner.sandbox.replace_state(state)
    cli_runner.write("manifests/all.yaml", MANIFESTS)
    return cli_runner


def test_what_loosens_comes_first_under_its_heading(loosening: CliRunner) -> None:
    done = loosening("plan --out plan.json --report markdown=plan.md --report html=plan.html --report fleet=fleet.html")
    assert (done.code, done.out) == (0, TEXT)
    assert loosening("show plan.json").out == TEXT
    numbers = "Plan: 1 to create, 3 to update, 5 to delete, 4 loosening, 4 tightening"
    title, _, note = Path("plan.md").read_text().partition("\n")
    assert title == f"## Loosens 4 projects, tightens 4. {numbers}"
    assert note.partition("### Loosens")[2] == NOTE.partition("### Loosens")[2] + note.partition(NOTE)[2]
    page, fleet = (Path(name).read_text().replace(BREAK, "") for name in ("plan.html", "fleet.html"))
    assert "<h1>Loosens 4 projects, tightens 4; deletes 5 objects in 4 projects</h1>" in page
    assert (
        "Review first what loosens protection, then the deletions. Not all of a deleted object can be restored." in page
    )
    assert 'data-tone="care"' in page
    tiles = re.findall(r'class="number">(\d+)</span> .*?</span> ([^<]+)<', page)
    assert tiles == [
        ("4", "Loosens protection"),
        ("4", "Other deletions"),
        ("1", "Other creations"),
        ("0", "Other updates"),
    ]
    cards = json.loads(page.partition('<script type="application/json" id="data">')[2].partition("</script>")[0])[
        "cards"
    ]
    assert [(card["kind"], card["title"], card.get("state")) for card in cards] == [
        ("loosens", 'Update protected branch "main"', None),
        ("loosens", 'Delete protected branch "main"', "deletions"),
        ("delete", 'Delete trigger token "old"', None),
        ("create", 'Create milestone "a"', None),
    ]
    assert "Loosens 4 projects, tightens 4; 9 changes in 4 of 4 targets" in fleet


def test_a_plan_that_only_loosens_has_no_green_tick(cli_runner: CliRunner) -> None:
    cli_runner.service(merge_request_approval_settings={"allow_author_approval": False})
    cli_runner.project("{approval_settings: {allow_author_approval: true}}")
    assert cli_runner("plan --report html=plan.html").code == 0
    page = Path("plan.html").read_text().replace(BREAK, "")
    assert "<h1>Loosens 1 project; updates 1 object, deletes nothing</h1>" in page
    assert '<p class="advice">Review first what loosens protection.</p>' in page


def test_the_settings_of_a_group_count_once_with_the_projects_below(cli_runner: CliRunner) -> None:
    state = a_small_service("deployed")
    state["groups"][0]["merge_request_approval_settings"] = {"allow_author_approval": False}
    cli_runner.sandbox.replace_state(state)
    cli_runner.write(
        "manifests/all.yaml",
        "apiVersion: reconciler/v1\nkind: Group\nmetadata: {path: acme}\n"
        "spec: {approval_settings: {allow_author_approval: true}}\n---\n"
        "apiVersion: reconciler/v1\nkind: ProjectSet\nmetadata: {name: all}\nselect: {group: acme}\n"
        "spec: {milestones: {}, trigger_tokens: {t: {}}}\n",
    )
    title = cli_runner("plan --format markdown").out.partition("\n")[0]
    assert title.startswith("## Loosens 1 group with 4 projects below and 4 projects. Plan: ")


def test_a_limit_refuses_what_loosens_more(loosening: CliRunner) -> None:
    reason = "4 changes loosen protection, more than --max-loosening 3"
    done = loosening("plan --max-loosening 3 --out plan.json")
    assert (done.code, done.out.splitlines()[-2]) == (0, f"apply will refuse this plan: {reason}")
    refused = loosening("apply --plan plan.json --yes --quiet")
    assert (refused.code, refused.err) == (1, f"reconciler: the plan is refused, and nothing was changed: {reason}\n")
    loosening.write("reconciler.yaml", "max_loosening: 0\n")
    refused = loosening("apply --yes --quiet --section protected_branches --target acme/api")
    reason = "1 change loosens protection, more than --max-loosening 0"
    assert (refused.code, refused.err) == (1, f"reconciler: the plan is refused, and nothing was changed: {reason}\n")
    assert loosening("apply --plan plan.json --yes --quiet --max-loosening 4").code == 0


def test_a_chat_reads_what_loosens(loosening: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI_JOB_URL", raising=False)
    with canned(answer("200 OK", "ok")) as chat:
        monkeypatch.setenv("RECONCILER_NOTIFY", chat.api_url)
        assert loosening("plan --section protected_branches").code == 0
    (request,) = chat.requests
    text: Any = json.loads(request.partition("\r\n\r\n")[2])["text"]
    assert text.splitlines()[1] == "Loosens 4 projects. Plan: 3 to update, 1 to delete, 4 loosening"
