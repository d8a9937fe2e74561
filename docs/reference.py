"""The pages of the reference, generated from the kinds, the schemas and the commands."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from inspect import cleandoc, get_annotations, getdoc
from pathlib import Path

import click

from docs.messages import messages
from docs.tables import Schema, example, in_yaml, keys, table, type_words
from reconciler.cli import COMMANDS, cli
from reconciler.cli import GROUPS as COMMAND_GROUPS
from reconciler.cli.apply import revert
from reconciler.cli.options import (
    CONNECTION,
    FLEET,
    INVENTORY,
    LIMITS,
    MANIFESTS,
    NOTICE,
    OUTPUT,
    PLACES,
    PROBLEMS,
    SELECTION,
    SERVICE,
    VERBOSITY,
)
from reconciler.configuration import Configuration
from reconciler.kinds import all_kinds
from reconciler.model.codes import CODES
from reconciler.model.endpoints import Collection
from reconciler.model.item import DATA
from reconciler.model.kind import Kind
from reconciler.model.targets import Level
from reconciler.reports import FORMATS
from reconciler.schema import schema_of

ROOT = Path(__file__).parent.parent

WARNING = "<!-- Written by `python -m docs` from the code; edit that instead. -->\n\n"
"""Below the heading, because the site takes the name of a page from its first line."""

WRITES = ("no_verify", "tokens_to", "tokens_command", "journal")
"""The options of commands that write."""

GROUPS: Mapping[str, Sequence[click.Option]] = {
    "Manifests": MANIFESTS.options,
    "Targets": PLACES.options,
    "Selection": SELECTION.options,
    "Fleet": FLEET.options,
    "Inventory": INVENTORY.options,
    "Limits": LIMITS.options,
    "Problems": PROBLEMS.options,
    "Writes": [option for option in revert.params if isinstance(option, click.Option) and option.name in WRITES],
    "Service": SERVICE.options,
    "Connection": CONNECTION.options,
    "Output": OUTPUT.options,
    "Messages": VERBOSITY.options,
    "Chat": NOTICE.options,
}
"""Options that several commands share; some are among others."""

LISTS = {"prune": "list of sections", "unmanaged": "`all`, or list of sections"}
"""The keys of `spec` that name sections."""

INNER = {
    "AcceptedDeviation": "an entry of `exceptions`",
    "ImportSource": "`import`",
    "GitHubSource": "`github`",
    "OptionalStages": "`optional_stages`",
    "BitbucketServerSource": "`bitbucket_server`",
}
"""Parts of documents with a table of their own."""

DOCUMENTS = {
    "plan": "`plan --out`, `plan`, `drift`",
    "report": "`apply`",
    "comparison": "`show --since`",
    "validation": "`validate`",
    "diagnosis": "`doctor`",
    "history": "`--report fleet=`, beside the page",
    "log": "`log`",
}
"""The commands that write each JSON document."""

EXIT_CODES = {
    0: "In order: nothing to do, or all done.",
    1: "An error: no plan could be made, or nothing was applied (invalid manifests, unreachable service, refused token "
    "or plan). `apply` exits with 1 only if it began no write and refused no change as stale.",
    2: "Changes are pending (`drift`, and `plan --detailed-exitcode`), whether or not there are problems too.",
    3: "Partly done: the plan has problems (with `--allow-problems`: 0), or some changes were not made.",
    64: "The command line is wrong; no request was made.",
    **dict.fromkeys(
        (129, 130, 143),
        "Ended by SIGHUP, SIGINT (Ctrl-C) or SIGTERM (a cancelled CI job), after the report. A signal after everything "
        "was done changes nothing.",
    ),
}

ENVIRONMENT = {
    "RECONCILER_TOKEN": "The token. It has no flag, because flags are visible in the list of processes.",
    "CI_API_V4_URL": "The API URL of the service that runs a CI job; the default of `api_url` there. A different "
    "origin in `reconciler.yaml` is refused in the job.",
    **dict.fromkeys(
        (
            "CI_COMMIT_SHA",
            "CI_JOB_URL",
            "CI_MERGE_REQUEST_PROJECT_URL",
            "CI_PIPELINE_URL",
            "CI_PROJECT_URL",
            "CI_SERVER_URL",
        ),
        "In CI jobs, the links of reports and messages; elsewhere, `web_url` and `repository_url`.",
    ),
    "RECONCILER_NOTE_TOKEN": "A token for notes and issues only, such as an access token of the project with the scope "
    "`api`. In a job of GitLab CI, `plan` and `drift` post with no other.",
    "RECONCILER_READ_TOKEN": "The token of `plan`, `drift` and `doctor --read-only`, instead of `RECONCILER_TOKEN`.",
    "CI_PROJECT_PATH": "The project whose pipelines `doctor --pipeline` checks; without it, that of the "
    "remote `origin`.",
    "RECONCILER_SINCE": "In a job of GitLab CI, the default of `--since` of `plan`.",
    "RECONCILER_IMAGE": "In a job of GitLab CI, the image of the pipeline that applies a plan; without it, none is "
    "written.",
    "RECONCILER_ENVIRONMENT": "The environment of the pipeline that applies a plan; `reconciler` if it is not set.",
    "RECONCILER_APPLY": "If `auto`, the pipeline that applies a plan starts by itself.",
    "GITLAB_CI": "If set, and `CI` too, commands write and post [what a job needs](../../templates/README.md).",
    **dict.fromkeys(
        ("CI_MERGE_REQUEST_DIFF_BASE_SHA", "CI_MERGE_REQUEST_TARGET_BRANCH_SHA"),
        "The revision that `plan` compares with in a merge request; the second in pipelines of merged results.",
    ),
    **dict.fromkeys(
        ("CI_COMMIT_BRANCH", "CI_DEFAULT_BRANCH"),
        "If both are the same, `plan` writes the pipeline that applies the plan.",
    ),
    "CI_COMMIT_SHORT_SHA": "The commit that the note names if there is no plan.",
    "CI_RUNNER_TAGS": "The tags of the jobs in the pipeline that applies a plan.",
    "CI_SERVER_TLS_CA_FILE": "Certificates that every request of a job trusts besides the system's, where `ca_file` is "
    "not set; the runner sets it.",
    "RECONCILER_TRIGGER_TOKEN": "The trigger token with which `apply --trigger` starts a pipeline.",
    **dict.fromkeys(
        ("CI_NODE_INDEX", "CI_NODE_TOTAL"), "The default of `--shard I/N`. CI sets both in jobs with `parallel`."
    ),
    "CI": "If set, progress is one line in the log every ten seconds.",
    "FORCE_COLOR": "If set, text has colour everywhere, unless `NO_COLOR` is set.",
    "NO_COLOR": "If set, output has no colour and no progress display.",
    "TERM": "If `dumb`, the same as `NO_COLOR`.",
    "HTTPS_PROXY": "The proxy to the service. `HTTP_PROXY` and `NO_PROXY`, and all three in lower case, work too.",
}
"""Variables of the environment that no option stands for."""


def pages() -> dict[str, str]:
    """Return the text of each page by the name of its file."""
    texts = {
        "manifests.md": "".join(_manifests()),
        "editions.md": "".join(_editions()),
        "configuration.md": "".join(_configuration()),
        "commands.md": "".join(_commands()),
        "outputs.md": "".join(_outputs()),
        "messages.md": messages(),
    }
    return {name: text.replace("\n\n", f"\n\n{WARNING}", 1) for name, text in texts.items()}


def _manifests() -> Iterator[str]:
    kinds = all_kinds()
    schema = schema_of("manifest", kinds)
    definitions = schema["$defs"]
    documents = [name for name in definitions if "spec" in definitions[name].get("properties", {})]
    yield (
        "# Manifests\n\n"
        "Every document begins with `apiVersion: reconciler/v1` and a `kind`. A setting that is left out has no "
        "default: it is not managed, and keeps its value on the service. An item that is taken out later is [deleted]"
        "(../how-to/stop-managing.md). `null` clears a field, or states that an object must not exist. See [how "
        "manifests are read](../explanation/manifests.md).\n\n"
        "## Documents\n\n"
    )
    yield table(["kind", "is about"], ((f"`{name}`", definitions[name]["description"]) for name in documents))
    for part in ("metadata", "create", "select"):
        yield from _part(part, {name: definitions[name] for name in documents}, definitions)
    yield from _inner(definitions)
    yield from _sections(kinds, definitions)


def _inner(definitions: Mapping[str, Schema]) -> Iterator[str]:
    """Yield a table of each part; keys that it shares with one before are only named."""
    before: dict[str, tuple[Schema, str]] = {}
    for name, of in INNER.items():
        properties = definitions[name]["properties"]
        shared = {key: before[key][1] for key, schema in properties.items() if before.get(key, ({}, ""))[0] == schema}
        yield f"### {name}\n\n{definitions[name]['description']}"
        for other in dict.fromkeys(shared.values()):
            same = ", ".join(f"`{key}`" for key, of_key in shared.items() if of_key == other)
            yield f" {same} as in [{other}](#{other.lower()})."
        rest = {key: schema for key, schema in properties.items() if key not in shared}
        yield f"\n\n{keys({'properties': rest}, f'key of {of}')}"
        before |= {key: (schema, name) for key, schema in rest.items()}


def _sections(kinds: Mapping[str, Kind], definitions: Mapping[str, Schema]) -> Iterator[str]:
    spec = definitions["Project"]["properties"]["spec"]["properties"]
    yield (
        "## Sections\n\nSections are keys of `spec`, next to `prune` and `unmanaged`. "
        "[Editions and roles](editions.md) has what each needs: "
        f"{', '.join(f'[`{name}`](#{name})' for name in kinds)}.\n\n"
    )
    yield table(
        ["key", "takes", "means", "example"],
        ([f"`{name}`", takes, spec[name]["description"], example(spec[name])] for name, takes in LISTS.items()),
    )
    item = _defined("renamed_from", definitions)["properties"]["renamed_from"]
    yield (
        "In a section of items, each key is the name of an item. Its value is `null` if the item must not exist, "
        "else a mapping of the keys of the item's table, and of:\n\n"
    )
    yield keys({"properties": {"renamed_from": item}})
    subject = _defined("deploy_key", definitions)
    yield f"### Subject\n\n{subject['description']}\n\n{keys(subject, 'key of an entry')}"
    for kind in kinds.values():
        yield from _section(kind, definitions)


def _defined(key: str, definitions: Mapping[str, Schema]) -> Schema:
    """Return the first definition that has a key."""
    return next(schema for schema in definitions.values() if key in schema.get("properties", {}))


def _editions() -> Iterator[str]:
    """Yield who may read and write which section, by what the kinds say that the service asks for."""
    yield (
        "# Editions and roles\n\nThe token's owner needs this for each section. `reconciler doctor` checks it. "
        "Premium means the paid editions. SCIM identities and protected branches of groups are a part of the "
        "Enterprise Edition, with or without a licence.\n\n"
    )
    head = ["section", "edition", "in", "lowest role to read", "lowest role to write", "archived project", "needs"]
    yield table(head, (row for kind in all_kinds().values() for row in _asked(kind)))


def _asked(kind: Kind) -> Iterator[list[str]]:
    """Yield a row for each level of a section."""
    needs = kind.needs
    names = any(isinstance(part, Collection) and part.relations.entries for part in kind.parts)
    for level in kind.models:
        of_names = "all; users and groups: Premium" if names and level is Level.PROJECT else "all"
        writer = needs.roles.get(level)
        roles = [needs.readers.get(level, writer), writer]
        is_project = level is Level.PROJECT
        yield [
            f"[`{kind.name}`](manifests.md#{kind.name})",
            "Premium" if needs.licensed else of_names,
            f"top-level {level}" if level is Level.GROUP and needs.top_level else str(level),
            *(
                "Administrator" if level is Level.INSTANCE else role.name.capitalize() if role else "any"
                for role in roles
            ),
            str(needs.archived) if is_project else "",
            " or ".join(needs.switches.values()) if is_project else "",
        ]


def _part(part: str, documents: Mapping[str, Schema], definitions: Mapping[str, Schema]) -> Iterator[str]:
    """Yield the keys of a part that several kinds of documents have."""
    references = {
        name: schema["properties"][part] for name, schema in documents.items() if part in schema["properties"]
    }
    description = next(iter(references.values()))["description"]
    shapes = {name: definitions[each["$ref"].rpartition("/")[2]] for name, each in references.items()}
    yield f"### {part}\n\n{description}\n\n{_merged(shapes)}"


def _merged(shapes: Mapping[str, Schema]) -> str:
    """Return a table of the keys of several shapes, each once, with the shapes that take it unless all do."""
    takers: dict[tuple[str, ...], list[str]] = {}
    examples: dict[tuple[str, ...], str] = {}
    for name, shape in shapes.items():
        for key, schema in shape["properties"].items():
            if key != "renamed_from":
                row = (f"`{key}`", type_words(schema), schema["description"])
                takers.setdefault(row, []).append(f"`{name}`")
                examples.setdefault(row, example(schema))
    rows = [
        [*row, examples[row], "" if len(names) == len(shapes) else ", ".join(names)] for row, names in takers.items()
    ]
    return table(["key", "takes", "means", "example", "only in"], rows)


def _section(kind: Kind, definitions: Mapping[str, Schema]) -> Iterator[str]:
    """Yield a section's keys, those of all levels in one table."""
    documents = [str(level).capitalize() for level in kind.models]
    yield (
        f"### {kind.name}\n\n{kind.summary} In {_listed(documents)}; `prune` {'can' if kind.prunable else 'cannot'} "
        f"name it. [An example](../../examples/{kind.name}.yaml) has every key.\n\n"
    )
    sections = {name: definitions.get(f"{kind.name}.{name.lower()}") or definitions[kind.name] for name in documents}
    shapes = {name: _shape(schema, definitions) for name, schema in sections.items()}
    rows = _merged(shapes)
    if any("properties" not in schema for schema in sections.values()):
        yield f"Each {kind.parts[0].title} takes [`renamed_from`](#sections){' and:' if rows else ' alone.'}\n\n"
    yield rows
    yield from (f"{words}\n\n" for words in dict.fromkeys(_named_keys(shapes.values())))


def _shape(section: Schema, definitions: Mapping[str, Schema]) -> Schema:
    """Return the keys of a section of settings, or of each item of a section of items."""
    match section:
        case {"additionalProperties": {"anyOf": [{"$ref": reference}, *_]}}:
            return definitions[reference.rpartition("/")[2]]
        case _:
            return section


def _named_keys(shapes: Iterable[Schema]) -> Iterator[str]:
    """Yield a sentence for each mapping with a fixed set of keys."""
    for shape in shapes:
        for key, inner in shape.get("properties", {}).items():
            if "propertyNames" in inner:
                yield f"Keys of `{key}`: " + ", ".join(f"`{name}`" for name in inner["propertyNames"]["enum"]) + "."


def _listed(words: list[str]) -> str:
    *others, last = [f"`{word}`" for word in words]
    return f"{', '.join(others)} or {last}" if others else last


def _configuration() -> Iterator[str]:
    yield (
        "# Configuration\n\n"
        "A flag overrides the environment; the environment overrides `reconciler.yaml` in the working directory.\n\n"
        "## reconciler.yaml\n\n"
        f"{getdoc(Configuration)}\n\n"
    )
    options = [option for name in COMMANDS for option in _command(name).params if isinstance(option, click.Option)]
    flags = {option.name: ", ".join(f"`{name}`" for name in _names(option)) for option in options}
    flags |= {"paths": "PATHS"}
    rows = []
    whole = Configuration.model_json_schema()
    for key, schema in whole["properties"].items():
        flag = flags.get(key, "")
        rows.append(
            [f"`{key}`", type_words(schema), schema["description"], f"`{in_yaml(schema['examples'][0])}`", flag]
        )
    yield table(["key", "takes", "means", "example", "flag, variable"], rows)
    for name, shape in whole["$defs"].items():
        yield f"### {name}\n\n{shape['description']}\n\n{keys(shape)}"
    yield "## Environment\n\n"
    yield "Besides the variables above:\n\n"
    variables: dict[str, str] = dict(ENVIRONMENT)
    for option in options:
        if option.name not in whole["properties"]:
            for variable in _names(option)[1:]:
                variables.setdefault(variable, f"Same as `{option.opts[-1]}`.")
    yield table(["variable", "means"], _alike(sorted(variables.items())))


def _alike(meanings: Iterable[tuple[object, str]]) -> Iterator[list[str]]:
    """Yield a row for each meaning, with all names that have it."""
    names: dict[str, list[str]] = {}
    for name, words in meanings:
        names.setdefault(words, []).append(f"`{name}`")
    yield from ([", ".join(each), words] for words, each in names.items())


def _names(option: click.Option) -> list[str]:
    """Return an option's flag and its variables."""
    variables = option.envvar or ()
    return [option.opts[-1], *([variables] if isinstance(variables, str) else variables)]


def _commands() -> Iterator[str]:
    yield (
        "# Commands\n\n`COMMAND -h` shows the everyday options, `COMMAND --help` all of them. [Configuration]"
        "(configuration.md) has the options that `reconciler.yaml` or the environment can set.\n\n"
    )
    for heading, commands in COMMAND_GROUPS.items():
        yield f"- **{heading}**: {', '.join(f'[`{name}`](#{name})' for name in commands)}\n"
    yield "\n"
    yield "## Exit codes\n\n" + table(["code", "means"], _alike(EXIT_CODES.items()))
    for name in COMMANDS:
        yield from _help(name)
    yield "## Shared options\n\n"
    for title, options in GROUPS.items():
        yield f"### {title}\n\n{_options(options)}"


def _help(name: str) -> Iterator[str]:
    """Yield the section of a command."""
    command = _command(name)
    context = click.Context(command, info_name=f"reconciler {name}")
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)[1:]])
    text = cleandoc(command.help or "").replace("\b\n", "")
    yield f"## {name}\n\n`{usage}`\n\n{_without_indented_code(text)}\n\n"
    own = {option.name: option for option in command.params if isinstance(option, click.Option)}
    shared = []
    for title, options in GROUPS.items():
        names = {option.name for option in options}
        if names <= own.keys():
            shared.append(f"[{title.lower()}](#{title.lower().replace(' ', '-')})")
            own = {name: option for name, option in own.items() if name not in names}
    yield _options(option for option in own.values() if option.opts != ["-h"])
    if shared:
        yield f"[Shared options](#shared-options): {', '.join(shared)}.\n\n"
    heading, _, examples = (command.epilog or "").partition(": ")
    yield f"{heading}: {', '.join(f'`{example}`' for example in examples.split(';  '))}\n\n"


def _without_indented_code(text: str) -> str:
    """Fence the indented blocks of a help text, so that they are not read as lines to type in this order."""
    lines: list[str] = []
    inside = False
    for line in text.splitlines():
        indented = line.startswith("    ") or (inside and not line)
        if indented and not inside:
            lines += ["", "```text"]
        elif inside and not indented:
            lines += ["```", ""]
        inside = indented
        lines.append(line.removeprefix("    "))
    fenced = "\n".join([*lines, "```"] if inside else lines)
    return re.sub(r"\n{2,}(```\n|\n)", r"\n\1", fenced)


def _options(options: Iterable[click.Option]) -> str:
    """Return a table of options."""
    return table(["option", "means"], ([f"`{', '.join(each.opts)}{_takes(each)}`", _meaning(each)] for each in options))


def _takes(option: click.Option) -> str:
    if option.is_flag or option.count:
        return ""
    return f" {option.metavar or ('NAME' if isinstance(option.type, click.Choice) else 'N')}"


def _meaning(option: click.Option) -> str:
    words = (option.help or "").partition("  [")[0]
    if isinstance(option.type, click.Choice):
        words += f" One of {', '.join(f'`{each}`' for each in option.type.choices)}."
    return f"{words} Default: `{option.default}`." if option.show_default else words


def _command(name: str) -> click.Command:
    command = cli.get_command(click.Context(cli), name)
    if command is None:
        raise LookupError(name)
    return command


def _outputs() -> Iterator[str]:
    yield (
        "# Outputs\n\n"
        "`--format` selects the format on stdout; `--report FORMAT=FILE` writes further formats into files. See "
        "[the use of each format](../how-to/reports.md).\n\n"
    )
    subjects = {
        "plan": "`plan`, `drift`",
        "report": "`apply`",
        "comparison": "`show --since`",
        "validation": "`validate`",
        "diagnosis": "`doctor`",
    }
    rows = []
    for name in FORMATS:
        renderer = import_module(f"reconciler.{'' if name == 'text' else 'reports.'}{name.replace('-', '_')}")
        about = (getdoc(renderer) or "").partition("\n")[0]
        rows.append(
            [f"`{name}`", about, ", ".join(words for each, words in subjects.items() if hasattr(renderer, each))]
        )
    yield table(["format", "is", "from"], rows)
    yield (
        "## JSON\n\n"
        "Each document begins with its `format`. Its schema describes every key; `reconciler schema NAME` prints it. "
        "Within a format, keys are only added.\n\n"
    )
    schemas = {name: schema_of(name, all_kinds()) for name in DOCUMENTS}
    yield table(
        ["document", "is from", "schema"],
        (
            (
                schema["description"].removesuffix("."),
                DOCUMENTS[name],
                f"[{name}](../../schemas/{name}.schema.json)",
            )
            for name, schema in schemas.items()
        ),
    )
    yield from _items(schemas["report"])
    yield "## Words\n\nValues of these keys are among a few words; the [glossary](glossary.md) explains them.\n\n"
    known = {(key, words): means for key, words, means in reversed([*_words(schemas.values())])}
    yield table(["key", "is one of", "means"], reversed([(*each, means) for each, means in known.items()]))


def _items(schema: Schema) -> Iterator[str]:
    """Yield what a plan and a report consist of: their targets, items and codes."""
    shapes = schema["$defs"]
    yield (
        "## Items\n\n"
        "A plan and the report of an apply are one document: a head, `summary` (its numbers), `targets` (what"
        " was looked at), and `items`, a flat list: `jq '.items[] | select(.action == \"delete\")' plan.json` "
        "lists the deletions. The order is that of the targets (instance, user, groups by depth, projects), "
        "of the sections, and then that in which changes are carried out. Items about the run come last. "
        "An entry of an allowlist is an item of its own, named by its path.\n\n"
        "A change has `action`: `create`, `update` or `delete`; in a report also `outcome`. `keep` is "
        "something declared that is in order, and named only where the inventory has no such line or another,"
        " or where a section is planned again after its group was changed. Everything else is a finding, with"
        " its code in `finding`. These keys stand in every item, or where they hold:\n\n"
    )
    of = {"create": "Create", "update": "Update", "delete": "Delete", "keep": "Keep", "finding": "Finding"}
    means: dict[tuple[str, str, str], list[str]] = {}
    for item, name in of.items():
        shape = shapes[f"Stored{name}"]
        for key, value in shape["properties"].items():
            if key != "action":
                always = "" if key in shape["required"] else "where it holds"
                means.setdefault((f"`{key}`", value["description"], always), []).append(f"`{item}`")
    rows = [
        [key, "all" if len(items) == len(of) else ", ".join(items), words, always]
        for (key, words, always), items in means.items()
    ]
    yield table(["key", "of", "means", ""], rows)
    yield "Each of `targets` has:\n\n"
    seen = shapes["StoredTarget"]
    yield table(
        ["key", "means", ""],
        (
            (f"`{key}`", value["description"], "" if key in seen["required"] else "where it holds")
            for key, value in seen["properties"].items()
        ),
    )
    yield (
        "`finding`, and `code` of a note on a change, are one of these; `data` has the facts. A reader may meet codes "
        "that it does not know, and shows their `reason`.\n\n"
    )
    yield table(["code", "is", "data"], ([f"`{code}`", row.noun, _data_keys(code)] for code, row in CODES.items()))


def _data_keys(code: str) -> str:
    return ", ".join(f"`{name}`" for name in get_annotations(DATA[code])) if code in DATA else ""


def _words(schemas: Iterable[Schema]) -> Iterator[tuple[str, str, str]]:
    """Yield each key whose value is one of a few words, with these and its meaning."""
    for schema in schemas:
        shapes = schema.get("$defs", {})
        for shape in (schema, *shapes.values()):
            for key, value in shape.get("properties", {}).items():
                for choice in (value, *value.get("anyOf", ())):
                    words = shapes.get(choice.get("$ref", "").rpartition("/")[2], choice)
                    if "enum" in words and key != "method":
                        means = value.get("description") or words["description"]
                        yield f"`{key}`", type_words(words).removeprefix("one of "), means
