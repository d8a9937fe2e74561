"""One pipeline, started with a trigger token (spec 4.8; deployed behaviour, section i). See `PipelineTrigger`.

The trigger token is the only credential that is sent. A request is repeated only if the first one certainly started no
pipeline.
"""

import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from reconciler import __version__
from reconciler.errors import Refused, UsageError
from reconciler.model.protocols import Json
from reconciler.model.targets import Level, Target
from reconciler.service.connection import tls_context
from reconciler.service.policy import DEFAULT_POLICY
from reconciler.service.responses import plain, read_response, without_secrets
from reconciler.service.single_request import ask_once

POLICY = replace(DEFAULT_POLICY, read_timeout=60, total_timeout=60, largest_response=2**20)
"""Longer timeouts than those of other single requests: the service creates the pipeline before it answers."""

HEADERS = {
    "User-Agent": f"reconciler/{__version__}",
    "Accept": "application/json",
    "Content-Type": "application/json",
}

NO_VARIABLES = "Insufficient permissions to set pipeline variables"
"""A part of the refusal if the owner of the token may start pipelines, but not set variables."""


@dataclass(frozen=True, slots=True)
class PipelineTrigger:
    """The pipeline to start.

    Attributes:
        project: its path or numeric ID.
        ref: a branch or a tag.
        token: a trigger token of the project.
        inputs: by name.
    """

    project: str
    ref: str
    token: str = field(repr=False)
    inputs: Mapping[str, str]

    @classmethod
    def read(cls, text: str, input_options: Sequence[str], token: str) -> Self:
        """Read `PROJECT@REF`, and inputs written `KEY=VALUE`.

        Raises:
            UsageError: they are written otherwise, or there is no token.
        """
        project, _, ref = text.partition("@")
        if not (project and ref and project.isprintable() and ref.isprintable()):
            raise UsageError(f"--trigger takes PROJECT@REF, such as acme/deploy@main, not {text!r}")
        pairs = [option.partition("=") for option in input_options]
        wrong = next(
            (option for option, (key, equals, _) in zip(input_options, pairs, strict=True) if not (key and equals)),
            None,
        )
        if wrong is not None:
            raise UsageError(f"--trigger-input takes KEY=VALUE, not {wrong!r}")
        if not token:
            raise UsageError(
                "--trigger needs a trigger token of that project; set the environment variable RECONCILER_TRIGGER_TOKEN"
            )
        return cls(project, ref, token, {key: value for key, _, value in pairs})

    def start(
        self, api_url: str, variables: Mapping[str, str], *, ca_file: str | None = None, besides: bool = False
    ) -> str:
        """Start the pipeline, and return its page; empty if the response has none.

        If the service refuses the variables, it has started nothing: the request is sent again without them.

        Raises:
            ServiceError: the pipeline was not started, or that is unknown.
        """
        tls = tls_context(api_url, ca_file, besides=besides)
        body: dict[str, Json] = {"ref": self.ref, "token": self.token}
        body |= {"inputs": dict(self.inputs)} if self.inputs else {}
        try:
            made = self._post(api_url, tls, body | ({"variables": dict(variables)} if variables else {}))
        except Refused as error:
            if not variables or NO_VARIABLES not in error.reason:
                raise
            made = self._post(api_url, tls, body)
        page = made.get("web_url") if isinstance(made, dict) else None
        return plain(page) if isinstance(page, str) and page.startswith(("https://", "http://")) else ""

    @property
    def _path(self) -> str:
        ref = int(self.project) if self.project.isdecimal() else self.project
        return f"{Target(Level.PROJECT, ref).url}trigger/pipeline"

    def _post(self, api_url: str, tls: ssl.SSLContext, body: Json) -> Json:
        response = ask_once("POST", f"{api_url}/{self._path}", HEADERS, tls, name=self._path, body=body, policy=POLICY)
        return read_response(f"POST {self._path}", without_secrets(response, [self.token]))
