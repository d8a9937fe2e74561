"""What has become of targets that no manifest mentions any more: gone, renamed, or now given by ID instead of path.

So that a rename is not taken for a removal, and nothing is asked of what is not there.
"""

from collections.abc import Iterable, Iterator, Mapping
from operator import index

from reconciler.errors import NotFound, ServiceError
from reconciler.live.read import ENDS_A_RUN, ask_for_record, path_in, side_by_side
from reconciler.model.protocols import Reader
from reconciler.model.state import Reference
from reconciler.model.targets import Level, Scope

Identity = tuple[Level, str | int | None]
"""See `Scope.identity`."""


def names_now(
    scopes: Iterable[Scope], reader: Reader, concurrency: int, known: Mapping[Reference, int]
) -> dict[Scope, frozenset[Identity]]:
    """Return all that each target is called now; nothing for one that is not there, or not visible.

    Args:
        scopes: the targets.
        reader: the service; it is asked for each target once.
        concurrency: how many requests at once.
        known: the numeric IDs of projects that need not be asked for.

    Raises:
        ServiceError: one that `ENDS_A_RUN`. After any other failure a target is called what it was.
    """
    paths = {number: reference.path for reference, number in known.items()}

    def ask(scope: Scope) -> frozenset[Identity]:
        if scope.level is Level.PROJECT and isinstance(scope.ref, int) and scope.ref in paths:
            return frozenset(_identities(scope, paths[scope.ref]))
        if isinstance(scope.ref, str) and (number := known.get(Reference(scope.level, scope.ref.casefold()))):
            return frozenset(_identities(scope, number))
        return frozenset({scope.identity} if scope.level is Level.USER else _asked(scope, reader))

    wanted = tuple(scopes)
    return dict(zip(wanted, side_by_side(ask, wanted, concurrency), strict=True))


def _asked(scope: Scope, reader: Reader) -> Iterable[Identity]:
    try:
        record = ask_for_record(scope, reader)
        return [*_identities(scope, index(record["id"])), *_identities(scope, path_in(record, scope.level))]
    except ENDS_A_RUN:
        raise
    except NotFound:
        return []
    except (ServiceError, LookupError, TypeError):
        return [scope.identity]


def _identities(scope: Scope, other: str | int) -> Iterator[Identity]:
    yield scope.identity
    yield Scope(scope.level, other).identity
