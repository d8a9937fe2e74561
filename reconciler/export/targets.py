"""Which targets an export is about: the groups with all projects below them, the projects, the user."""

from collections.abc import Iterable
from dataclasses import dataclass

from reconciler.errors import NotFound, ServiceError
from reconciler.live.discovery import discover
from reconciler.live.read import answer_or_error, ask_each
from reconciler.live.records import OTHER, TargetRecord, fetch_record, is_the_other
from reconciler.manifests import Hidden
from reconciler.manifests.documents import plausible_path
from reconciler.model.protocols import Reader
from reconciler.model.state import Reference
from reconciler.model.targets import Level, Target


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """What is to be exported.

    Attributes:
        groups: full paths or numeric IDs, as the user gave them.
        projects: likewise.
        user: whether the user behind the token is among it.
        sections: names of sections; none means all.
    """

    groups: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    user: bool = False
    sections: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Known:
    """A target of an export, as it is called now.

    Attributes:
        target: its full path, in the service's own spelling; its number where manifests take no such path.
        number: its numeric ID; None for the user.
    """

    target: Target
    number: int | None = None

    @property
    def path(self) -> str | None:
        """Its full path, as manifests give it and fill it in for placeholders."""
        return self.target.ref if isinstance(self.target.ref, str) else None


@dataclass(frozen=True, slots=True)
class Targets:
    """The targets of an export.

    Attributes:
        known: each once, in `Target.order`.
        hidden: for each target that cannot be asked for, and each group whose projects cannot be listed, why.
    """

    known: tuple[Known, ...]
    hidden: tuple[str, ...]


def paths_of(targets: Iterable[Known]) -> dict[Target, str]:
    """Return the paths of targets, for manifests that give them by ID."""
    return {
        Target(known.target.level, known.number): known.path
        for known in targets
        if known.path and known.number is not None
    }


def find_targets(asked: ExportRequest, reader: Reader, concurrency: int) -> Targets:
    """Ask for what is named, once each, and list the projects of each group.

    Raises:
        ServiceError: one that `ENDS_A_RUN`, or nothing that is named can be asked for.
    """
    named = dict.fromkeys(
        [(Level.GROUP, name) for name in asked.groups] + [(Level.PROJECT, name) for name in asked.projects]
    )

    def ask(name: tuple[Level, str]) -> tuple[str, int] | ServiceError:
        answer = answer_or_error(lambda: _path_and_id(fetch_record(Target(*name), reader)))
        if not isinstance(answer, NotFound):
            return answer
        level, other = name[0], OTHER[name[0]]
        why = f"no such {level}, or not visible to this token"
        if is_the_other(Target(*name), reader):
            why = f"this is a {other}, not a {level}; give it as --{other}"
        return NotFound(answer.request, f"{answer.reason}: {why}", answer.status)

    asked_for = ask_each(ask, named, concurrency)
    answers = {name: answer for name, answer in asked_for.items() if not isinstance(answer, ServiceError)}
    failures = {name: answer for name, answer in asked_for.items() if isinstance(answer, ServiceError)}
    if failures and not (answers or asked.user):
        raise next(iter(failures.values()))
    groups = [path for (level, _), (path, _) in answers.items() if level is Level.GROUP]
    discovery = discover(dict.fromkeys(groups, False), reader, concurrency)
    found = [Known(Target(Level.USER))] if asked.user else []
    found += [_known(level, path, number) for (level, _), (path, number) in answers.items()]
    hidden = [f"{Target(*name)} cannot be read and is left out ({error})" for name, error in failures.items()]
    for members in discovery.groups.values():
        if isinstance(members, Hidden):
            hidden.append(members.reason)
            continue
        for path in (member.path for member in members):
            found.append(_known(Level.PROJECT, path, discovery.ids[Reference(Level.PROJECT, path.casefold())]))
    return Targets(_each_once(found), tuple(hidden))


def _path_and_id(record: TargetRecord) -> tuple[str, int]:
    return record.path, record.id


def _known(level: Level, path: str, number: int) -> Known:
    try:
        return Known(Target(level, plausible_path(path)), number)
    except ValueError:
        return Known(Target(level, number), number)


def _each_once(found: Iterable[Known]) -> tuple[Known, ...]:
    by_identity = {known.target.identity: known for known in found}
    return tuple(sorted(by_identity.values(), key=lambda known: known.target.order))
