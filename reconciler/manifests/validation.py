"""Check values: pydantic's errors in plain words, names, and rules across fields.

Begin with `check_section`, for a section of a merged target; `check_alone` is for documents that have no target.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from itertools import groupby, product
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin
from unicodedata import normalize

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from reconciler.manifests.diagnostics import WRITTEN, Diagnostic
from reconciler.manifests.layers import OLD_NAMES, SectionSpec, Stack, has_placeholder
from reconciler.manifests.sources import Steps
from reconciler.manifests.trace import find
from reconciler.model.endpoints import Collection, as_json
from reconciler.model.foreign_keys import ENFORCE, Alias, ForeignKeys, foreign_keys, unknown_key
from reconciler.model.in_effect import PatternRule
from reconciler.model.renames import circles
from reconciler.model.resource import MOST_SHARED, POLICIES, Content, Resource, Wanted
from reconciler.model.targets import Key, Level, Target
from reconciler.model.wording import closest, listed, unknown

EXPECTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "none_required": "null",
    "date_type": "a day, YYYY-MM-DD",
    **dict.fromkeys(("dict_type", "mapping_type", "model_type", "model_attributes_type"), "a mapping"),
    **dict.fromkeys(("list_type", "tuple_type", "set_type", "frozen_set_type"), "a list"),
}
"""The expected type of a value, by pydantic's type of error."""

RULES = {
    "greater_than": "must be greater than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "too_short": "must have at least {min_length} entries",
    "too_long": "must have at most {max_length} entries",
    "string_pattern_mismatch": "must match the pattern {pattern}",
}
"""The broken rule, by pydantic's type of error."""

SYNONYMS = {"open": "active", "opened": "active", "reopened": "active", "close": "closed"}
"""Values that users write because other parts of GitLab use these words."""

TRUTHS = {"yes": "true", "on": "true", "true": "true", "no": "false", "off": "false", "false": "false"}
QUOTED = re.compile(r"'([^']*)'")
NOT_NULL = ", not null; to leave it alone, leave it out"


def diagnose(validation_error: ValidationError, value: Any, type_: Any) -> list[Diagnostic]:
    """Return pydantic's errors about a value, one for each part of the value."""
    entries = []
    for details in validation_error.errors(include_url=False):
        steps, at_key = _steps(details["loc"], value)
        entries.append((steps, at_key, details["loc"] if details["type"] == "missing" else (), details))
    entries.sort(key=lambda entry: [str(step) for step in entry[0]])
    groups = [
        (steps, at_key, [details for *_, details in group])
        for (steps, at_key, _), group in groupby(entries, key=lambda entry: entry[:3])
    ]
    beyond = {steps[:length] for steps, *_ in groups for length in range(len(steps))}
    return [
        _diagnostic(steps, at_key, errors, value, type_)
        for steps, at_key, errors in groups
        if steps not in beyond or not _is_about_form(errors)
    ]


def _steps(location: tuple[int | str, ...], value: Any) -> tuple[Steps, bool]:
    """Return the steps to the wrong value without the names of alternatives, and whether its key is wrong."""
    steps: list[Any] = []
    for step in location:
        if step in value if isinstance(value, dict) else isinstance(value, list) and isinstance(step, int):
            steps.append(step)
            value = value[step]
    return tuple(steps), location[-1:] == ("[key]",)


def _is_about_form(errors: list[Any]) -> bool:
    """Whether all errors say that a value has another form.

    They are omitted where an alternative of the type has errors deeper in the value.
    """
    return all(error["type"] in {*EXPECTED, "extra_forbidden", "literal_error"} for error in errors)


def _diagnostic(steps: Steps, at_key: bool, errors: list[Any], value: Any, type_: Any) -> Diagnostic:
    code = errors[0]["type"]
    last = steps[-1] if steps else None
    key = str(last)
    match code:
        case "literal_error" if at_key:
            return Diagnostic(steps, unknown("key", key, _allowed(errors[0])), at_key=True, code=code, value=last)
        case "extra_forbidden":
            beside = [*_models_at(type_, steps[:-1])]
            message = unknown_key("key", key, _at(value, steps), _fields_of(beside), _foreign_keys(beside))
            return Diagnostic(steps, message, at_key=True, code=code)
        case "missing":
            name = errors[0]["loc"][-1]
            example = _example(type_, (*steps, name))
            such_as = f", such as `{name}: {example}`" if example else ""
            return Diagnostic(steps, f"the key `{name}` is missing{such_as}", at_key=True, code=code, value=name)
    value = last if at_key else _at(value, steps)
    if last == "enforce" and isinstance(value, bool):
        return Diagnostic(steps, ENFORCE, at_key=True, code=code, value=value)
    message = _message(errors, value, "" if at_key else _example(type_, steps), is_entry=isinstance(last, int))
    return Diagnostic(steps, message, at_key=at_key, code=code, value=value)


def _at(value: Any, steps: Steps) -> Any:
    for step in steps:
        value = value[step]
    return value


def _foreign_keys(models: list[type[BaseModel]]) -> ForeignKeys:
    """Return the foreign keys of some models, and the keys that belong elsewhere in a document."""
    found: dict[str, Alias | str] = {}
    for model in reversed(models):
        found.update(foreign_keys(model) if issubclass(model, Resource) else getattr(model, "misplaced", {}))
    return found


def _example(type_: Any, steps: Steps) -> str:
    """Return an example of the value at some steps of a type, as YAML on one line; empty if no field has one."""
    from reconciler.manifests.yaml_emitter import inline  # noqa: PLC0415 - slow to import; only errors need it

    beside = _models_at(type_, steps[:-1]) if steps else ()
    own = [field for model in beside if (field := _by_key(model).get(str(steps[-1]))) and field.examples]
    if own:
        return inline((own[0].examples or [])[0])
    fields = [each for model in _models_at(type_, steps) for each in _by_key(model).items() if each[1].examples]
    fields.sort(key=lambda named: (named[0] in POLICIES, named[0] == OLD_NAMES))
    return next((inline({name: (field.examples or [])[0]}) for name, field in fields), "")


def _fields_of(models: Iterator[type[BaseModel]] | list[type[BaseModel]]) -> tuple[str, ...]:
    """Return the known keys of a mapping that any of some models may be."""
    return tuple(dict.fromkeys(name for model in models for name in _by_key(model)))


def _by_key(model_type: type[BaseModel]) -> dict[str, FieldInfo]:
    """Return the fields of a model by the keys that people write."""
    return {field.alias or name: field for name, field in model_type.model_fields.items()}


def _models_at(type_: Any, steps: Steps) -> Iterator[type[BaseModel]]:
    """Yield the models at some steps of a value of a type."""
    origin, inner = get_origin(type_), get_args(type_)
    if origin in {Annotated, Union, UnionType}:
        for alternative in inner[:1] if origin is Annotated else inner:
            yield from _models_at(alternative, steps)
    elif isinstance(type_, type) and issubclass(type_, BaseModel):
        if not steps:
            yield type_
        elif steps[0] in (fields := _by_key(type_)):
            yield from _models_at(fields[steps[0]].annotation, steps[1:])
    elif steps and inner:
        yield from _models_at(inner[-1], steps[1:])


def _message(errors: list[Any], value: Any, example: str, *, is_entry: bool) -> str:
    """Return one message for pydantic's errors about a value: there is an error for each possible type."""
    rules = [error for error in errors if error["type"] not in EXPECTED]
    such_as = f" such as `{example}`" if example else ""
    if rules:
        is_pattern = rules[0]["type"] == "string_pattern_mismatch"
        return _broken_rule(rules[0], value) + (f",{such_as}" if is_pattern and example else "")
    expected = list(dict.fromkeys(EXPECTED[error["type"]] for error in errors))
    if example and value is not None and expected == ["a mapping"]:
        return f"must be a mapping{such_as}, not {'a list' if isinstance(value, list) else f'`{WRITTEN}`'}"
    if value is None and is_entry:
        return f"must be {listed(expected, 'or')}, not null"
    return f"must be {listed(expected, 'or')}{_mistake(expected, value)}"


def _broken_rule(details: Mapping[str, Any], value: Any) -> str:
    context = details.get("ctx", {})
    match details["type"]:
        case "literal_error":
            allowed = _allowed(details)
            guess = (SYNONYMS.get(value) or closest(value, allowed)) if isinstance(value, str) else None
            hint = f"; did you mean `{guess}`?" if guess in allowed and len(allowed) > 1 else ""
            hint = NOT_NULL if value is None else hint
            return f"must be {'one of ' if len(allowed) > 1 else ''}{listed(allowed, 'or')}{hint}"
        case "value_error":
            return str(context["error"])
        case "string_too_short" | "too_short" if context["min_length"] == 1:
            return "must not be empty"
        case rule if rule in RULES:
            return RULES[rule].format_map(context)
    return str(details["msg"])


def _allowed(details: Mapping[str, Any]) -> list[str]:
    """Return the values of an enumeration."""
    expected = str(details["ctx"]["expected"])
    return QUOTED.findall(expected) or [expected]


def _mistake(expected_forms: list[str], value: Any) -> str:  # noqa: PLR0911 - a table of cases
    """Return the end of a message: the value as it is, or the remedy."""
    match value:
        case dict():
            return ", not a mapping"
        case list():
            return ", not a list" + (
                ": write `key: value`, without dashes or brackets" if "a mapping" in expected_forms else ""
            )
        case None:
            return NOT_NULL
        case bool() | int() | float() if expected_forms == ["text"]:
            return f": `{WRITTEN}` is {'true or false' if isinstance(value, bool) else 'a number'}, quote it"
        case "true" | "false" if "true or false" in expected_forms:
            return ": leave the quotes out"
        case str() if "true or false" in expected_forms and value.lower() in TRUTHS:
            return f": `{WRITTEN}` is text, write {TRUTHS[value.lower()]}"
        case str() if "a whole number" in expected_forms and value.isdecimal():
            return ": leave the quotes out"
        case str() if "a list" in expected_forms:
            return f": [{WRITTEN}]"
    return f", not `{WRITTEN}`"


@lru_cache(maxsize=MOST_SHARED)
def _checked(check: Callable[[Any], Any], spec_content: Content) -> Any:
    return check(spec_content.value)


def check_section(stack: Stack, spec: SectionSpec, target: Target) -> tuple[Any, list[Diagnostic]]:
    """Return a section of a target as its model, None if it has errors, and its errors and warnings.

    While placeholders wait for the target's path, values that depend on them are not checked.
    """
    name = spec.kind.name
    value = stack.sections[name]
    diagnostics = [each for each in _check_names(spec, target, value) if not _is_shared_entry(each, spec, stack)]
    section = None
    try:
        # cached by content: targets of one profile mostly have equal sections
        section = _checked(spec.check[target.level], Content(value))
    except ValidationError as error:
        diagnostics += [_with_owners(each, spec) for each in diagnose(error, value, spec.kind.models[target.level])]
        # rules of sound items too: all errors of a section are reported at once
        diagnostics += _rules(_sound_items(spec, value, target.level), spec)
        diagnostics = [each for each in diagnostics if each.severity == "error"]
    else:
        is_settled = name in stack.prune or name in stack.released  # a list may be empty because its entries are let go
        diagnostics += [*_rules(section, spec), *_advice(spec, target, value, pruned=is_settled)]
        diagnostics += _undermined(section, spec)
    diagnostics = [
        each.below("spec", name) for each in diagnostics if stack.values is not None or not _has_placeholder(each)
    ]
    return None if any(each.severity == "error" for each in diagnostics) else section, diagnostics


def _sound_items(spec: SectionSpec, section_value: Any, level: Level) -> dict[str, Resource | None]:
    """Return the items of a section that have the right form, if other items do not."""
    sound: dict[str, Resource | None] = {}
    for key, item in section_value.items() if spec.items and isinstance(section_value, dict) else ():
        with suppress(ValidationError):
            sound |= spec.check[level]({key: item})
    return sound


def _is_shared_entry(diagnostic: Diagnostic, spec: SectionSpec, stack: Stack) -> bool:
    """Whether a warning is about an entry that a profile or set lists for many targets: some may need it."""
    if diagnostic.severity == "error" or len(diagnostic.steps) != 2 or not spec.merges_as_set(diagnostic.steps[0]):
        return False
    layer, _ = find(stack, (spec.kind.name, *diagnostic.steps))
    return bool(layer.title)


def check_alone(spec: SectionSpec, section_value: Any, levels: tuple[Level, ...]) -> list[Diagnostic]:
    """Return the errors of form in a section of a document that is no target's, or not complete.

    Placeholders, missing keys and rules across fields are left to the check of targets. Of several possible levels, the
    errors of the one with the fewest are returned.
    """
    verdicts = [_verdict(spec, level, section_value) for level in levels if level in spec.check]
    # of equal verdicts that of the last level: most documents are about projects
    best = min(reversed(verdicts), key=_weight, default=[])
    return [each.below("spec", spec.kind.name) for each in best]


def _verdict(spec: SectionSpec, level: Level, value: Any) -> list[Diagnostic]:
    try:
        spec.check[level](value)
    except ValidationError as error:
        diagnostics = diagnose(error, value, spec.kind.models[level])
        return [each for each in diagnostics if each.code != "missing" and not _has_placeholder(each)]
    return []


def _weight(verdict: list[Diagnostic]) -> tuple[int, int]:
    return len(verdict), sum(each.code == "extra_forbidden" for each in verdict)


def _has_placeholder(diagnostic: Diagnostic) -> bool:
    return has_placeholder(diagnostic.value) or (diagnostic.at_key and has_placeholder(diagnostic.steps[-1]))


def _with_owners(diagnostic: Diagnostic, spec: SectionSpec) -> Diagnostic:
    """Name the document kinds that have a key which is unknown only here."""
    if diagnostic.code != "extra_forbidden":
        return diagnostic
    *above, key = diagnostic.steps
    models = spec.kind.models.items()
    owners = [level.document_kind for level, model in models if key in _fields_of(_models_at(model, tuple(above)))]
    if not owners:
        return diagnostic
    declared = f"the {spec.items.title}" if spec.items else "it"
    remedy = f"declare {declared} in a document of kind {listed(owners, 'or')}"
    return replace(diagnostic, message=f"`{key}` belongs to {listed(owners)}: {remedy}")


def _names(spec: SectionSpec, section_value: Mapping[str, Any]) -> list[tuple[Steps, Collection, Key]]:
    """Return the steps, collection and value of each name in a section."""
    if spec.items:
        return [((key,), spec.items, key) for key in section_value]
    return [
        ((field, index), spec.lists[field], entry)
        for field in spec.lists.keys() & section_value.keys()
        for index, entry in enumerate(section_value[field] if isinstance(section_value[field], list) else ())
        if isinstance(entry, str | int)
    ]


def _check_names(spec: SectionSpec, target: Target, section_value: Any) -> Iterator[Diagnostic]:
    """Yield the errors in names; for wanted names that some servers refuse, and those that look the same, warnings."""
    if not isinstance(section_value, dict):
        return
    at_key = spec.items is not None
    first: dict[str, Key] = {}
    for steps, collection, name in _names(spec, section_value):
        error = collection.name_error(name)
        warning = None if error or (at_key and section_value[name] is None) else collection.names.warning(target, name)
        if at_key and not str(name).isascii() and first.setdefault(normalize("NFC", str(name)), name) != name:
            warning = f"`{name}` looks the same as another name here, but has other characters (Unicode NFC, NFD)"
        if error or warning:
            yield Diagnostic(steps, error or str(warning), "error" if error else "warning", at_key, value=name)
    if spec.items is not None:
        declared, most = [name for name, item in section_value.items() if item is not None], spec.items.writes.most
        if most and len(declared) > most:
            message = f"one too many: the service takes at most {most} in a {target.level}"
            yield Diagnostic((declared[most],), message, at_key=True, value=declared[most])
        yield from _old_name_errors(section_value, spec.items)


def _advice(spec: SectionSpec, target: Target, section_value: Any, *, pruned: bool) -> Iterator[Diagnostic]:
    """Yield advice for a section without errors.

    It is about a subgroup that declares what some servers have for groups at the top only, and about each empty list of
    an unpruned section, which reads as if nobody had access.
    """
    if section_value and spec.kind.needs.top_level and target.level is Level.GROUP and "/" in str(target.ref):
        top = str(target.ref).partition("/")[0]
        message = f"some servers have {spec.kind.name} for groups at the top only: declare them in {top}"
        yield Diagnostic((), message, "advice", at_key=True)
    for field in () if pruned else spec.lists.keys() & section_value.keys():
        if section_value[field] == []:
            message = (
                "an empty list removes only what an apply of these manifests has recorded; write "
                f"`prune: [{spec.kind.name}]` if nobody is to have access, or leave the list out"
            )
            yield Diagnostic((field,), message, "advice")


def _old_name_errors(items_by_name: Mapping[str, Any], collection: Collection) -> Iterator[Diagnostic]:
    """Yield the errors in former names of the items of a section."""
    claimed: dict[str, str] = {}
    for key, item in items_by_name.items():
        written = item.get(OLD_NAMES) if isinstance(item, dict) else None
        for index, old in enumerate(written if isinstance(written, list) else [written]):
            steps = (key, OLD_NAMES, index) if isinstance(written, list) else (key, OLD_NAMES)
            if not isinstance(old, str):
                continue
            if old == key:
                yield Diagnostic(steps, f"`{old}` cannot be renamed from itself: leave {OLD_NAMES} out", value=old)
            elif items_by_name.get(old) is not None and not (
                collection.writes.renames and _single_former_name(items_by_name[old])
            ):
                yield Diagnostic(steps, f"`{old}` is declared beside this: one of the two has to go", value=old)
            elif old in claimed:
                yield Diagnostic(steps, f"`{old}` is already the former name of `{claimed[old]}`", value=old)
            claimed.setdefault(old, key)
    if not collection.names.exchangeable:
        former = {key: _single_former_name(item) for key, item in items_by_name.items()}
        yield from _exchange_errors({key: old for key, old in former.items() if old})


def _single_former_name(item_value: Any) -> str:
    """Return the former name of an item; empty if it has none, or several."""
    written = item_value.get(OLD_NAMES) if isinstance(item_value, dict) else None
    names = written if isinstance(written, list) else [written]
    return names[0] if len(names) == 1 and isinstance(names[0], str) else ""


def _exchange_errors(former_by_name: Mapping[str, str]) -> Iterator[Diagnostic]:
    """Yield an error for each item that exchanges its name with others."""
    for circle in circles(former_by_name):
        names = listed(f"`{name}`" for name in circle)
        fix = f"leave {OLD_NAMES} out to exchange their fields, or use a third name first"
        for key in circle:
            yield Diagnostic((key, OLD_NAMES), f"{names} exchange names: {fix}", value=former_by_name[key])


def names_taken(items_by_name: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the names that are declared in a section, and the former ones there, each with the item that has it."""
    taken: dict[str, str] = {}
    for key, item in items_by_name.items():
        written = item.get(OLD_NAMES) if isinstance(item, dict) else None
        taken |= dict.fromkeys([written] if isinstance(written, str) else written or (), key)
    return taken | {key: key for key, item in items_by_name.items() if item is not None}


def may_be_renamed(
    spec: SectionSpec, name: str, item_value: Mapping[str, Any] | None, olds: list[str], level: Level
) -> bool:
    """Whether the rules of a section allow some names as former names of an item; see `names_taken` too."""
    renamed = {**(item_value or {}), OLD_NAMES: olds}
    return all(broken.severity != "error" for broken in _rules(_sound_items(spec, {name: renamed}, level), spec))


def _rules(section_model: Resource | Mapping[str, Resource | None], spec: SectionSpec) -> Iterator[Diagnostic]:
    """Yield the errors and warnings of rules across fields, and of those that depend on the name."""
    resources = {None: section_model} if isinstance(section_model, Resource) else section_model
    for key, resource in resources.items():
        if resource is None:
            continue
        above = () if key is None else (key,)
        model = type(resource)
        if model.errors is not Resource.errors:
            yield from (Diagnostic((*above, field), message) for field, message in resource.errors())
        if model.warnings is not Resource.warnings:
            yield from (Diagnostic((*above, field), message, "warning") for field, message in resource.warnings())
        if spec.items and key is not None:
            yield from (Diagnostic((key, field), message) for field, message in _name_rules(spec.items, key, resource))


def _undermined(section_model: Wanted, spec: SectionSpec) -> Iterator[Diagnostic]:
    """Yield a piece of advice about each item that another one undermines, as far as both say it."""
    in_effect = spec.kind.in_effect
    if in_effect is None:
        return
    rules = _pattern_rules(section_model)
    for rule in rules:
        others = (other for other in rules if other is not rule)
        for sentence in in_effect.undermined(spec.kind.parts[0].model.directions, rule, others):
            yield Diagnostic((rule.name,), f"{rule}: {sentence}", "advice", at_key=True)


@lru_cache(maxsize=MOST_SHARED)
def undermined_together(
    spec: SectionSpec, of_project: Content, of_group: Content, owner: str
) -> Sequence[tuple[str, str, str]]:
    """Return a sentence about each rule of a project and one of a group above it of which the other undermines the one.

    Args:
        spec: of their section.
        of_project, of_group: the section of each, without errors.
        owner: the group, in words.

    Returns:
        The name of the rule of the project, that of the rule of the group, and the sentence.
    """
    in_effect, directions = spec.kind.in_effect, spec.kind.parts[0].model.directions
    if in_effect is None:
        return ()
    rules = _pattern_rules(_checked(spec.check[Level.PROJECT], of_project))
    above = _pattern_rules(_checked(spec.check[Level.GROUP], of_group), owner)
    return tuple(
        (rule.name, rule_above.name, f"{one}: {sentence}")
        for rule, rule_above in product(rules, above)
        for one, other in ((rule, rule_above), (rule_above, rule))
        for sentence in in_effect.undermined(directions, one, [other])
    )


def _pattern_rules(section_model: Wanted, owner: str = "") -> list[PatternRule]:
    """Return the items of a section whose rules hold together."""
    items = {} if isinstance(section_model, Resource) else section_model
    return [PatternRule(str(name), as_json(item), owner) for name, item in items.items() if item is not None]


def _name_rules(collection: Collection, name: str, resource: Resource) -> Iterator[tuple[str, str]]:
    """Yield the fields that do not go with a name: an object whose name is fixed is never renamed."""
    yield from collection.names.rules(name, resource, False)
    if collection.names.fixed and OLD_NAMES in resource.model_fields_set:
        olds = [name, *getattr(resource, OLD_NAMES)]
        fixed = next((each for each in olds if each in collection.names.fixed), None)
        if fixed is not None:
            yield OLD_NAMES, f"`{fixed}` is another sort of {collection.title}, which is never renamed: leave it out"
