"""What is said of values by rules that no kind has yet: kinds to come may use all of pydantic."""

from collections.abc import Iterator
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field

from reconciler.model.endpoints import Singleton
from reconciler.model.kind import Kind, Kinds
from reconciler.model.resource import Resource
from reconciler.model.targets import Level
from tests.manifests.conftest import Folder


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    deep: int = 0


class Outer(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    inside: Inner = Inner()


class Wiki(Resource):
    """A section that has every sort of field."""

    size: Annotated[int, Field(ge=1, le=9)] = 1
    ratio: Annotated[float, Field(lt=1)] = 0.5
    word: Annotated[str, Field(min_length=2, max_length=3, pattern="^[a-z]+$", examples=["abc"])] = "ab"
    list_: Annotated[list[str], Field(alias="list", min_length=1, max_length=2)] = Field(default=[])
    pairs: Annotated[list[int], Field(min_length=2)] = Field(default=[])
    inner: Inner = Inner()
    either: bool | list[int] | dict[str, Annotated[Inner, "for people"]] = False
    form: Inner | Outer = Inner()
    nothing: None = None
    mode: Literal["only"] = "only"
    level: Literal[1, 2] = 1
    callable_: Annotated[type, Field(alias="callable")] = int
    needed: str
    needed_too: Annotated[str, Field()]

    def errors(self) -> Iterator[tuple[str, str]]:
        """A rule about a field that need not be declared."""
        if self.needed == self.needed_too:
            yield "size", "one of the two has to differ"


WIKI = Kind(
    name="wiki",
    summary="A wiki.",
    models={Level.PROJECT: Wiki},
    parts=(Singleton("wiki", "wiki", "wiki", Wiki),),
)
KINDS: Kinds = {"wiki": WIKI}

HEAD = "apiVersion: reconciler/v1\nkind: Project\nmetadata: {path: acme/api}\nspec:\n  wiki:\n    needed: a\n    needed_too: b\n    "

SAID = {
    "size: 0": "must be at least 1",
    "size: 10": "must be at most 9",
    "size: a": "must be a whole number, not `a`",
    "size: '3'": "must be a whole number: leave the quotes out",
    "ratio: 2.5": "must be less than 1.0",
    "ratio: x": "must be a number, not `x`",
    "word: a": "must have at least 2 characters",
    "word: abcd": "must have at most 3 characters",
    "word: ABC": "must match the pattern ^[a-z]+$, such as `abc`",
    f"word: {{{'x' * 5}: y}}": "must be text, not a mapping",
    "list: []": "must not be empty",
    "list: [a, b, c]": "must have at most 2 entries",
    "pairs: [1]": "must have at least 2 entries",
    "inner: {deap: 1}": "unknown key `deap`; did you mean `deep`?",
    "inner: 3": "must be a mapping, not `3`",
    "either: {a: {dep: 1}}": "unknown key `dep`; did you mean `deep`?",
    "either: [{}]": "must be a whole number, not a mapping",
    "form: {inside: {dep: 1}}": "unknown key `dep`; did you mean `deep`?",
    f"either: {'x' * 70}": f"must be true or false, a list or a mapping: [{'x' * 60}...]",
    "nothing: 1": "must be null, not `1`",
    "mode: every": "must be only",
    "level: 3": "must be 1 or 2",
    "callable: 1": "Input should be a type",
}


@pytest.mark.parametrize("field", SAID)
def test_what_is_said_of(field: str, folder: Folder) -> None:
    folder.put("a.yaml", HEAD + field)
    assert SAID[field] in [line.split(": ", 1)[1] for line in folder.faults(kinds=KINDS).splitlines() if line[0] == "a"]


def test_a_rule_about_a_field_that_is_not_written_is_shown_at_what_is(folder: Folder) -> None:
    folder.put("a.yaml", HEAD.replace("needed_too: b", "needed_too: a"))
    said = "a.yaml:5:3: one of the two has to differ\n      wiki:\n      ^"
    assert folder.faults(kinds=KINDS) == said


def test_missing_keys_are_said_of_what_lacks_them_but_not_of_a_profile(folder: Folder) -> None:
    profile = "apiVersion: reconciler/v1\nkind: Profile\nmetadata: {name: base}\nspec: {wiki: {size: 1}}\n"
    folder.write(a_yaml=profile)
    assert folder.read(kinds=KINDS).desired.targets == ()
    folder.write(b_yaml="apiVersion: reconciler/v1\nkind: Project\nmetadata: {path: a/b}\nspec:\n  wiki: {size: 1}\n")
    assert folder.faults(kinds=KINDS) == (
        "b.yaml:5:3: the key `needed_too` is missing\n      wiki: {size: 1}\n      ^\n"
        "b.yaml:5:3: the key `needed` is missing\n      wiki: {size: 1}\n      ^"
    )
