"""The files of a new repository of manifests, except the manifests of a group: see `scaffold`. Pure."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from reconciler import CONFIGURATION, SCHEMAS, __version__

COMPONENTS = "tools/reconciler"
"""The project with the CI/CD components and the image, if none is named."""

PIPELINE_FILE = Path(".gitlab-ci.yml")

PIPELINE = """\
# Checks and plans the manifests in merge requests, applies them after the merge, and checks for drift on a schedule.
# The file templates/README.md of {components} explains the jobs, their inputs, and the variables that they need.
include:
  - component: {component}
    inputs:
      image: {image}

# Apply each merge, even if the next one follows soon.
workflow:
  rules:
    - if: $CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH
      auto_cancel: {{on_new_commit: none}}
    - when: always
"""

IGNORED = """\
# Values of created tokens: never commit them.
*.jsonl
# Saved plans, and reports of runs.
/.reconciler/
/public/
/plan*.json
/drift*.json
/report*.json
/applied*.json
/tfplan*.json
/junit*.xml
/gl-code-quality-report*.json
/plan*.md
/drift*.md
/report*.md
/note*.md
/*.html
/*.prom
"""

LEFT_OUT_FILE = Path("init-left-out.md")

HOOKS = """\
# Checks the manifests before each commit: pre-commit install
repos:
  - repo: local
    hooks:
      - id: reconciler-validate
        name: validate manifests
        entry: reconciler validate
        language: system
        pass_filenames: false
        files: \\.(yaml|yml|yaml\\.j2)$
      - id: reconciler-schema
        name: check copies of reconciler's schemas
        entry: reconciler schema --check schemas
        language: system
        pass_filenames: false
        files: \\.schema\\.json$
"""

EDITOR = {
    "yaml.schemas": {
        f"{SCHEMAS}/manifest.schema.json": ["manifests/**/*.yaml", "manifests/**/*.yml"],
        f"{SCHEMAS}/config.schema.json": CONFIGURATION,
    }
}

INVENTORY_LINES = """\
# Each apply records the objects that these manifests created or declare, on the branch reconciler/applied.
# An item that is removed from them later is deleted.
inventory: {remote: origin}
"""

UNDECIDED = """
# Worth deciding once, for people and for the pipeline; schemas/config.schema.json has every key.
# tokens_command: vault-put triggers   # stores the value of each trigger token that apply creates
# baseline: .reconciler/drift.json     # in the pipeline, drift reports only what is new since its last run
# issue: {}                            # in the pipeline, drift keeps an issue in this project
# allow_problems: true                 # exit code 0 instead of 3 if there are only problems
# concurrency: 4                       # requests in flight at most; without it, as many as the service can handle
# rate: 600/60                         # at most 600 requests in 60 seconds
# values: values.yaml                  # for templates (*.yaml.j2); set and env are for single values
"""

FIRST = """\
# Settings that others share by naming this profile: metadata: {profiles: [baseline]}
apiVersion: reconciler/v1
kind: Profile
metadata: {name: baseline}
spec: {}
"""


@dataclass(frozen=True, slots=True)
class Pieces:
    """The published pieces of the pipeline, both of this version.

    Attributes:
        components: the full path of the project with the CI/CD components.
        own_image: the image of the jobs; None for the image in the registry of that project.
    """

    components: str = COMPONENTS
    own_image: str | None = None

    @property
    def component(self) -> str:
        """The address of the component; its version is the tag of the release."""
        return f"$CI_SERVER_FQDN/{self.components}/gitops@v{__version__}"

    @property
    def image(self) -> str:
        """The image of the jobs."""
        return self.own_image or f"$CI_REGISTRY/{self.components}:{__version__}"


def scaffold(api_url: str | None, pieces: Pieces) -> dict[Path, str]:
    """Return the text of each file.

    Args:
        api_url: of the service; None to leave it to the environment.
        pieces: of the pipeline.
    """
    from reconciler.manifests.yaml_emitter import inline

    service = f"api_url: {inline(api_url)}" if api_url else "# api_url: https://gitlab.example.com/api/v4"
    configuration = (
        f"# yaml-language-server: $schema={SCHEMAS}/config.schema.json\n{service}\npaths: manifests\n{INVENTORY_LINES}"
        f"{UNDECIDED}"
    )
    return {
        Path(CONFIGURATION): configuration,
        Path(".gitignore"): IGNORED,
        PIPELINE_FILE: PIPELINE.format(
            components=pieces.components, component=pieces.component, image=inline(pieces.image)
        ),
        Path(".pre-commit-config.yaml"): HOOKS,
        Path(".vscode/settings.json"): json.dumps(EDITOR, indent=2) + "\n",
    }


def left_out_text(causes: Iterable[tuple[str, Iterable[str]]]) -> str:
    """Return the text of `LEFT_OUT_FILE`; names of the service are in blocks, where they are no Markdown.

    Args:
        causes: a heading for each cause, as inline code, and the lines about what was left out for that cause.
    """
    sections = (f"\n## {cause}\n\n" + "".join(f"    {line}\n" for line in lines) for cause, lines in causes)
    return f"# Live, and not in the manifests\n{''.join(sections)}"
