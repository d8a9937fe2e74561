"""`--since` leaves out only targets of which nothing else is planned than at the revision: over random histories."""

import json
import re
import shutil
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cli_runner import CliRunner
from tests.fleet.repository import Repository
from tests.items import changes_of, findings_of

pytestmark = pytest.mark.untraced

PATHS = {"a": "acme/api", "b": "acme/lib", "c": "acme/Web", "d": "acme/tools/cli"}
"""By file, the project that it usually declares."""
ARCHIVE = "archives/team.gz"
HEAD = "apiVersion: reconciler/v1\nkind: "

ITEMS = st.dictionaries(st.sampled_from("abc"), st.sampled_from(["{}", "{state: closed}", "null"]), max_size=2).map(
    lambda items: f"{{{', '.join(f'{name}: {item}' for name, item in items.items())}}}"
)
SPECS = st.one_of(
    ITEMS.map("{{milestones: {}}}".format),
    ITEMS.map("{{prune: [milestones], milestones: {}}}".format),
    st.sampled_from(
        ["acme/lib", "ACME/web", "acme/api", "102", "acme/tools", "acme/crew/web", "acme/crew/team/api"]
    ).map("{{job_token_scope: {{projects: [{}]}}}}".format),
    st.sampled_from(["{job_token_scope: {groups: [acme/tools]}}", "{milestones: {'{name}-1': {}}}"]),
)


def project(path: str) -> st.SearchStrategy[str]:
    metadata = st.sampled_from([f"path: {path}", f"path: {path}, profiles: [base]"])
    return st.tuples(metadata, SPECS).map(lambda drawn: f"{HEAD}Project\nmetadata: {{{drawn[0]}}}\nspec: {drawn[1]}\n")


def profile(word: str) -> st.SearchStrategy[str]:
    return ITEMS.map(lambda items: f"{HEAD}{word}\nmetadata: {{name: base}}\nspec: {{milestones: {items}}}\n")


def creation(kind: str, path: str) -> st.SearchStrategy[str]:
    sources = ["{}", "{visibility: internal}", "{name: '{name} 1'}"]
    archived = [f"{{from_archive: ../{ARCHIVE}}}"] * (2 if kind == "Group" else 0)
    create = st.sampled_from([*sources, *archived]).map("\ncreate: {}".format)
    spec = "notification_settings: {level: watch}" if kind == "Group" else "milestones: {a: {}}"
    return st.one_of(create, *[st.just("")] * (path == "acme/crew")).map(
        lambda words: f"{HEAD}{kind}\nmetadata: {{path: {path}}}{words}\nspec: {{{spec}}}\n"
    )


CREATED = {"m": creation("Group", "acme/crew"), "n": creation("Group", "acme/Crew/team")}
CREATED |= {"o": creation("Project", "acme/crew/team/api"), "p": creation("Project", "acme/crew/web")}
"""By file, the target that it creates."""
CREATIONS = st.sampled_from(sorted(CREATED)).flatmap(CREATED.__getitem__)
PROFILES = st.one_of(profile("Profile"), profile('"Profil\\x65"'))
OTHERS = st.one_of(
    st.sampled_from(sorted({*PATHS.values(), "acme/tools"})).flatmap(project),
    CREATIONS,
    PROFILES,
    st.sampled_from(["id: 102", "id: 100, profiles: [base]"]).flatmap(
        lambda metadata: SPECS.map(lambda spec: f"{HEAD}Project\nmetadata: {{{metadata}}}\nspec: {spec}\n")
    ),
    st.sampled_from(["projects: [acme/api, acme/lib]", "group: acme/tools", "group: acme", "group: acme/crew"]).flatmap(
        lambda which: ITEMS.map(
            lambda items: (
                f"{HEAD}ProjectSet\nmetadata: {{name: s}}\nselect: {{{which}}}\nspec: {{milestones: {items}}}\n"
            )
        )
    ),
    st.sampled_from(["acme", "acme/tools", "acme/lib"]).map(
        lambda path: f"{HEAD}Group\nmetadata: {{path: {path}}}\nspec: {{notification_settings: {{level: watch}}}}\n"
    ),
    st.sampled_from(["watch", "mention"]).map(
        lambda level: f"{HEAD}User\nspec: {{notification_settings: {{level: {level}}}}}\n"
    ),
    st.just(f"{HEAD}Project [\n"),
)
TEMPLATES = project("acme/more").map(lambda text: text.replace("milestones: {", "milestones: {'{{ title }}': {}, "))
FOLDER = st.fixed_dictionaries(
    {"base": PROFILES, **{name: project(path) for name, path in PATHS.items()}},
    optional={"e": st.one_of(*[OTHERS] * 5, TEMPLATES), **CREATED},
)


def edit(files: dict[str, str], data: st.DataObject) -> dict[str, str]:
    """Change a few files."""
    edited = dict(files)
    for name in data.draw(st.lists(st.sampled_from(sorted(files)), min_size=1, max_size=2, unique=True)):
        match data.draw(
            st.sampled_from(["other", "append", "rename", "remove", "comment", "create", *["rewrite"] * 4])
        ):
            case "rewrite":
                edited[name] = data.draw(project(PATHS[name]) if name in PATHS else CREATED.get(name, OTHERS))
            case "other":
                edited[name] = data.draw(OTHERS)
            case "append":
                edited[name] += "---\n" + data.draw(OTHERS)
            case "create":
                edited |= {new: data.draw(created) for new, created in CREATED.items()}
            case "rename":
                edited[f"{name}-renamed"] = edited.pop(name)
            case "remove":
                del edited[name]
            case _:
                edited[name] = f"# changed\n{edited[name]}"
    return edited


def planned(cli_runner: CliRunner, line: str) -> dict[str, Any] | None:
    """Return what is planned of each target; None if there are errors in manifests.

    The places in manifests are left out, and whether a change is new since the revision, of which a whole plan knows
    nothing.
    """
    done = cli_runner(f"{line} --set title=x --format json")
    if not done.out:
        return None
    document = bare(json.loads(done.out))
    return {
        # which numbers a run learns depends on what it asks for
        each["target"]: {
            **each,
            "id": None,
            "items": [item for item in document["items"] if item["target"] == each["target"]],
        }
        for each in document["targets"]
    }


PLACE = re.compile(r"manifests/[\w.-]+:\d+")


def bare(value: Any) -> Any:
    if isinstance(value, str):
        return PLACE.sub("a place", value)
    if isinstance(value, dict):
        return {key: bare(inner) for key, inner in value.items() if key not in {"origin", "origins"}}
    if isinstance(value, list):
        return [bare(each) for each in value if not (isinstance(each, dict) and each.get("code") == "source")]
    return value


def creations(targets: dict[str, Any]) -> dict[str, Any]:
    """Return what is planned of each group and project that does not exist."""
    return {name: own for name, target in targets.items() if (own := changes_of(target, ""))}


def of_missing(files: dict[str, str]) -> list[str]:
    """Return the documents about what does not exist: why nothing can be created there, others say in their words."""
    documents = [text for file in files.values() for text in file.split("---\n")]
    return sorted(text for text in documents if "create" in text or "{path: acme/crew" in text.casefold())


TWIN = re.compile(r"is the same \w+ as .*, (ID \d+): keep one of these documents")


def twins(targets: dict[str, Any]) -> dict[str, str]:
    """Return the ID of each target that a plan calls the same as another one."""
    told = (
        (name, TWIN.fullmatch(item["reason"]))
        for name, target in targets.items()
        for item in findings_of(target, "problem")
    )
    return {name: match[1] for name, match in told if match}


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(then=FOLDER, data=st.data())
def test_what_a_revision_leaves_out_was_planned_alike_then(
    cli_runner: CliRunner, git: Repository, then: dict[str, str], data: st.DataObject
) -> None:
    def write(files: dict[str, str], archive: str) -> None:
        cli_runner.write(ARCHIVE, archive)
        shutil.rmtree(cli_runner.folder / "manifests", ignore_errors=True)
        for name, text in files.items():
            cli_runner.write(f"manifests/{name}.yaml{'.j2' if '{{ title' in text else ''}", text)

    cli_runner.service(milestones=[{"title": "a"}, {"title": "b"}])
    write(then, "a")
    git.commit()
    before = planned(cli_runner, "plan")
    now, archive = edit(then, data), data.draw(st.sampled_from("ab"))
    write(now, archive)
    changed, everything = planned(cli_runner, "plan --since HEAD"), planned(cli_runner, "plan")
    if changed is None or everything is None:
        assert changed is everything
        return
    assert changed.keys() <= everything.keys()
    alike = of_missing(then) == of_missing(now)
    if before is not None and alike and creations(before) == creations(everything):  # else what is below may differ
        # That a document of another name is, or was, about the same target shows where a section of both is read and
        # differs: no request is made for it.
        left_out = everything.keys() - changed.keys() - dict(twins(before).items() ^ twins(everything).items()).keys()
        assert {target: before[target] for target in left_out} == {target: everything[target] for target in left_out}
    if not any("create" in text for text in now.values()):  # else a run may lack the creation of a group above
        known, found = twins(changed), twins(everything)
        assert known.items() <= found.items()
        unseen = changed.keys() & (found.keys() - known.keys())
        assert {target: changed[target] for target in changed.keys() - unseen} == {
            target: everything[target] for target in changed.keys() - unseen
        }
        for target in unseen:  # nothing that the other document declares too is changed
            others = (everything[name] for name, number in found.items() if name != target and number == found[target])
            declared = {section for other in others for section in other["sections"]}
            assert declared.isdisjoint(change["section"] for change in changes_of(changed[target]))
    if before is not None and (now, archive) == (then, "a"):
        assert changed == {}
