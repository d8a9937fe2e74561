"""`reconciler.yaml`: its keys (`Configuration`), and `read_configuration`, whose errors have their places."""

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    PlainValidator,
    ValidationError,
    WithJsonSchema,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from reconciler.document.links import WEB_ADDRESS
from reconciler.errors import ConfigurationError, LocatedDiagnostic, ManifestErrors
from reconciler.manifests.diagnostics import Diagnostic
from reconciler.manifests.sources import Document, located, open_source, read_mapping
from reconciler.manifests.validation import diagnose
from reconciler.memory.store import BELOW, BRANCH_NAME, INVENTORY_BRANCH, is_branch
from reconciler.model.resource import read_duration
from reconciler.model.wording import closest, listed
from reconciler.reports import FORMATS

DURATION = "^[0-9]+[smhd]$"
RATE = r"^[0-9]+/[0-9]+(\.[0-9]+)?$"
VALUE = "^[^=]+$"


MAX_IN_FLIGHT = 64


def _matching(pattern: str, requirement: str) -> Callable[[Any], str]:
    """Return a validator of text that matches a pattern; its error is the requirement."""

    def check(value: Any) -> str:
        if not isinstance(value, str) or not re.fullmatch(pattern, value):
            raise ValueError(requirement)
        return value

    return check


def _in_flight(value: Any) -> Any:
    # not `isinstance`: a bool is an int in Python, and `true` is no number of requests
    if value == "auto" or (type(value) is int and 1 <= value <= MAX_IN_FLIGHT):
        return value
    raise ValueError(f"must be auto, or a whole number from 1 to {MAX_IN_FLIGHT}, without quotes")


def _duration(value: Any) -> str:
    try:
        read_duration(value)
    except ValueError as error:
        raise ValueError(f"is wrong: {error}") from None
    return str(value)


def _known_format(value: Any) -> str:
    if value in list(FORMATS):
        return str(value)
    guess = closest(value, FORMATS) if isinstance(value, str) else None
    raise ValueError(f"must be one of {listed(FORMATS, 'or')}" + (f"; did you mean `{guess}`?" if guess else ""))


def _title(name: str) -> str:
    return name.replace("_", " ").capitalize()


Text = Annotated[str, Field(min_length=1)]
Texts = Text | list[Text]
Name = Annotated[str, PlainValidator(_matching(VALUE, "must be the name of a value, without `=`"))]
Format = Annotated[str, PlainValidator(_known_format), WithJsonSchema({"type": "string", "enum": list(FORMATS)})]
Duration = Annotated[str, PlainValidator(_duration), WithJsonSchema({"type": "string", "pattern": DURATION})]
PerSeconds = Annotated[
    str,
    PlainValidator(_matching(RATE, "must be N/SECONDS, such as 600/60")),
    WithJsonSchema({"type": "string", "pattern": RATE}),
]


WebAddress = Annotated[
    str,
    PlainValidator(_matching(WEB_ADDRESS, "must be a web address, such as https://gitlab.example.com")),
    WithJsonSchema({"type": "string", "pattern": f"^{WEB_ADDRESS}$"}),
]

InFlight = Annotated[
    Any,
    PlainValidator(_in_flight),
    WithJsonSchema({"anyOf": [{"const": "auto"}, {"type": "integer", "minimum": 1, "maximum": MAX_IN_FLIGHT}]}),
]


def day(value: Any) -> date:
    """Return a day as YAML has it: a date, or text such as `2026-12-01`.

    Raises:
        ValueError: the value is not a day.
    """
    try:
        return date.fromisoformat(str(value))
    except ValueError:
        raise ValueError("must be a day, such as 2026-12-01") from None


Day = Annotated[date, PlainValidator(day), WithJsonSchema({"type": "string", "format": "date"})]


class AllowedDeletes(BaseModel):
    """A permission to delete that ends."""

    model_config = ConfigDict(strict=True, extra="forbid")

    count: int = Field(ge=0, description="How many deletions one run may make.", examples=[25])
    until: Day = Field(description="The last day on which it counts (UTC).", examples=["2026-12-01"])


class IssueSettings(BaseModel):
    """Settings of `reconciler issue`."""

    model_config = ConfigDict(strict=True, extra="forbid")

    assignees: dict[Text, dict[Text, list[Text]]] = Field(
        {},
        description="The usernames to assign where a target drifts, by a label of its `metadata.labels` and its value.",
        examples=[{"team": {"payments": ["alice"]}}],
    )


def _branch(value: Any) -> str:
    if not isinstance(value, str) or not is_branch(value):
        raise ValueError(f"must be the name of a branch below {BELOW}, such as {INVENTORY_BRANCH}")
    return value


Branch = Annotated[
    str, PlainValidator(_branch), WithJsonSchema({"type": "string", "pattern": f"^{BRANCH_NAME.pattern}$"})
]


class InventorySettings(BaseModel):
    """The place of the inventory."""

    model_config = ConfigDict(strict=True, extra="forbid")

    branch: Branch = Field(
        INVENTORY_BRANCH,
        description=f"The branch, below {BELOW}; each service needs its own.",
        examples=[INVENTORY_BRANCH],
    )
    remote: Text = Field(
        "", description="The remote that has the branch; the local repository if left out.", examples=["origin"]
    )


class _OrFalse:
    """A mapping or `false`, in the JSON schema."""

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [handler(schema), {"const": False}]}


def _unless_off(value: Any) -> Any:
    if value is True:
        raise ValueError("must be a mapping, or false")
    return {} if value is False else value


Inventory = Annotated[InventorySettings, BeforeValidator(_unless_off), _OrFalse()]


class Configuration(BaseModel):
    """Settings of the tool itself, for runs in this folder. Flags and the environment win over them."""

    model_config = ConfigDict(
        strict=True, extra="forbid", defer_build=True, field_title_generator=lambda name, _: _title(name)
    )

    api_url: Text = Field(
        "", description="The service's whole API URL.", examples=["https://gitlab.example.com/api/v4"]
    )
    token_file: Text = Field(
        "",
        description="A file that holds the token and that only you can write. The token itself never belongs in this "
        "file.",
        examples=["token"],
    )
    ca_file: Text = Field("", description="Certificates to trust instead of the system's.", examples=["ca.pem"])
    insecure_http: bool = Field(
        False, description="Whether a plain-http URL to a host other than this one is allowed.", examples=[False]
    )
    paths: Texts = Field(
        "", description="Files and folders that hold the manifests; `manifests` if left out.", examples=[["manifests"]]
    )
    values: Texts = Field("", description="Files of values for templates; later ones win.", examples=["values.yaml"])
    set: dict[Name, str] = Field(
        {}, description="Single values for templates; they win over files of values.", examples=[{"stage": "live"}]
    )
    env: Texts = Field(
        "", description="Environment variables that templates may read as env.NAME.", examples=[["STAGE"]]
    )
    concurrency: InFlight = Field(
        "auto",
        description="Number of requests in flight at most; `auto`, the default, finds how many the service can handle.",
        examples=["auto"],
    )
    rate: PerSeconds = Field("", description="Limit of N requests in SECONDS seconds: N/SECONDS.", examples=["600/60"])
    max_wait: Duration = Field(
        "", description="End the run where the service asks for a longer wait; 5m if left out.", examples=["5m"]
    )
    max_age: Duration = Field(
        "", description="Refuse to apply a saved plan that is older; 24h if left out.", examples=["24h"]
    )
    grace: Duration = Field(
        "", description="Delete a rotated token once its successor is this old; 24h if left out.", examples=["24h"]
    )
    format: Format = Field("", description="Format of the result on stdout; text if left out.", examples=["text"])
    log_format: Literal["text", "json"] = Field(
        "text", description="Format of progress and warnings on stderr; text if left out.", examples=["json"]
    )
    allow_deletes: AllowedDeletes | None = Field(
        None,
        description="Permission for runs to delete up to `count` objects, until a day; `--allow-deletes` wins.",
        examples=[{"count": 25, "until": "2026-12-01"}],
    )
    max_loosening: Annotated[int, Field(ge=0)] | None = Field(
        None,
        description="Refuse a plan of which more changes loosen protection; any number if left out.",
        examples=[0],
    )
    allow_problems: bool = Field(
        False, description="Whether runs exit with 0 instead of 3 if there are problems.", examples=[True]
    )
    baseline: Text = Field(
        "",
        description="A JSON report; `drift` reports only what is new since. In the pipelines of the CI/CD components, "
        "`.reconciler/drift.json` is that of the last run.",
        examples=[".reconciler/drift.json"],
    )
    tokens_to: Text = Field(
        "", description="File to which `apply` appends created tokens, mode 0600.", examples=["tokens.jsonl"]
    )
    tokens_command: Text = Field(
        "",
        description="Command that `apply` runs for each created token, with one JSON line on stdin.",
        examples=["vault-put trigger-tokens"],
    )
    web_url: WebAddress = Field(
        "",
        description="The service's web interface, for links in reports. A CI job of the same service knows it.",
        examples=["https://gitlab.example.com"],
    )
    repository_url: WebAddress = Field(
        "",
        description="The web page of the project that holds the manifests, for links to their lines. CI jobs know it.",
        examples=["https://gitlab.example.com/acme/settings"],
    )
    inventory: Inventory = Field(
        InventorySettings(),
        description="Where to keep the inventory of applied objects: a plan deletes those that it lists and that are "
        "no longer declared; `false` for none.",
        examples=[{"remote": "origin"}],
    )
    issue: IssueSettings = Field(
        IssueSettings(),
        description="If given, such as `{}`, `drift` keeps an issue about drift in jobs of GitLab CI.",
        examples=[{"assignees": {"team": {"payments": ["alice"]}}}],
    )


def read_configuration(path: Path) -> dict[str, Any]:
    """Return the keys of a configuration file with their values.

    Raises:
        ConfigurationError: with all errors, each with its place.
    """
    try:
        source = open_source(str(path))
        given = read_mapping(source)
        Configuration.model_validate(given)
    except ManifestErrors as errors:
        # no line of the file is shown: someone may have written a token into it
        raise _configuration_error(replace(diagnostic, source="") for diagnostic in errors.diagnostics) from None
    except ValidationError as error:
        document = Document(source, 0, 1, given)
        raise _configuration_error(
            _located(diagnostic, document) for diagnostic in diagnose(error, given, Configuration)
        ) from None
    return given


def _configuration_error(errors: Iterable[LocatedDiagnostic]) -> ConfigurationError:
    return ConfigurationError("\n".join(str(error) for error in sorted(errors)))


def _located(diagnostic: Diagnostic, document: Document) -> LocatedDiagnostic:
    location = document.find(diagnostic.steps, at_key=diagnostic.at_key)
    message = diagnostic.text(location)
    if not diagnostic.at_key:
        message = f"`{diagnostic.steps[0]}` {message}"
    elif diagnostic.steps == ("token",):
        message = "a token does not belong here; set RECONCILER_TOKEN or token_file"
    position = location.position
    return located(document.source.path, message, line=position.line, column=position.column)
