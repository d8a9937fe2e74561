"""Where an answer of the sandbox differs from a recorded one: in status, keys, types, values, order, or page headers."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

PAGES = ("x-page", "x-per-page", "x-prev-page", "x-next-page", "x-total", "x-total-pages", "retry-after", "allow")

OF_THE_INSTALLATION = re.compile(
    r".*(_at|_url|_ips?)|id|iid|.*_id|token|public_key|sentry_dsn|last_used|email|version|revision|.*_to_repo"
)
"""Keys whose values depend on the installation and on the moment."""


UNORDERED = re.compile(r".*_access_levels|users|groups|eligible_approvers|protected_branches")
"""Keys of lists that have no order."""

MADE_UP = re.compile(r"(?<=service_account_)[0-9a-f]{32}|(?<=deletion_scheduled-)\d+")
"""What the service makes up in names."""


def differences(recorded: Any, answered: Any, path: str = "") -> Iterator[str]:
    """Yield where two JSON values differ; of keys that only the recorded one has, see `lacking`."""
    if type(recorded) is not type(answered):
        yield f"{path}: {recorded!r:.60}, and here {answered!r:.60}"
    elif isinstance(recorded, dict):
        yield from (f"{path}.{key}: only here" for key in answered.keys() - recorded.keys())
        for key in filter(is_told_by_the_state, recorded.keys() & answered.keys()):
            yield from differences(recorded[key], answered[key], f"{path}.{key}")
        for key in filter(OF_THE_INSTALLATION.fullmatch, recorded.keys() & answered.keys()):
            if type(recorded[key]) is not type(answered[key]):
                yield f"{path}.{key}: {recorded[key]!r}, and here {answered[key]!r}"
    elif isinstance(recorded, list):
        if len(recorded) != len(answered):
            yield f"{path}: {len(recorded)} entries, and here {len(answered)}"
        for one, other in zip(recorded, answered, strict=False):
            yield from differences(one, other, f"{path}[]")
    elif without_made_up_names(recorded) != without_made_up_names(answered):
        yield f"{path}: {recorded!r:.200}, and here {answered!r:.200}"


def in_one_order(value: Any) -> Any:
    """Return a JSON value whose lists without an order are sorted: the service shows them in any."""
    if isinstance(value, dict):
        return {
            name: sorted(each, key=_subject) if UNORDERED.fullmatch(name) and isinstance(each, list) else each
            for name, each in ((name, in_one_order(each)) for name, each in value.items())
        }
    if isinstance(value, list):
        found = [in_one_order(each) for each in value]
        return sorted(found, key=_pattern) if found and _pattern(found[0]) else found
    return value


def _pattern(rule: Any) -> str:
    """Return the pattern of a rule that the service lists in any order; empty for all else."""
    names = [name for name in rule if name.endswith("_pattern")] if isinstance(rule, dict) else []
    return " ".join(str(rule[name]) for name in (*names, "package_type") if name in rule) if names else ""


def _subject(entry: Any) -> str:
    """Return what an entry is about: a role, a user, a group, a name."""
    keys = ("user_id", "group_id", "deploy_key_id", "access_level", "username", "full_path", "name")
    return str([str(entry.get(key) or "") for key in keys]) if isinstance(entry, dict) else str(entry)


def is_told_by_the_state(key: str) -> bool:
    """Whether the value of a key follows from the state before and the requests."""
    return not OF_THE_INSTALLATION.fullmatch(key)


def without_made_up_names(value: Any) -> Any:
    """Return a text with one name for all that the service makes up, and any other value as it is."""
    return MADE_UP.sub("0", value) if isinstance(value, str) else value


def lacking(recorded: Any, answered: Any) -> set[str]:
    """Return the keys that the recorded value has and the other lacks, at any depth."""
    if isinstance(recorded, list) and isinstance(answered, list):
        return {key for pair in zip(recorded, answered, strict=False) for key in lacking(*pair)}
    if not (isinstance(recorded, dict) and isinstance(answered, dict)):
        return set()
    shared = recorded.keys() & answered.keys()
    return {*(recorded.keys() - shared), *(key for name in shared for key in lacking(recorded[name], answered[name]))}


def pages(headers: Mapping[str, str]) -> dict[str, object]:
    """Return the headers about pages and limits: of a `link`, the pages it leads to; of a `location`, the path."""
    kept: dict[str, object] = {name: headers[name] for name in PAGES if name in headers}
    if "link" in headers:
        links = re.findall(r'<([^>]*)>; rel="(\w+)"', headers["link"])
        kept["link"] = {name: sorted(re.findall(r"[?&](page|per_page|cursor)=([^&]*)", url)) for url, name in links}
    if "location" in headers:
        kept["location"] = headers["location"].partition("/api/v4/")[2]
    return kept
