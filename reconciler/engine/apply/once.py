"""One creation, of an object as of a group or a project: nothing is created twice, and rivals are noticed.

The request is sent until it is known what it has led to. Where an answer is lost, the new item is looked for, and the
request is sent again only if there is none. Somebody else may create the same at the same time. Where the service
takes a name once, it refuses the second request: what the other has created is adopted, or the change is stale. Where
it takes a name twice, both runs look afterwards and agree on the elder: the run of the younger deletes it again.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from reconciler.errors import ServiceError

MAX_CREATE_ATTEMPTS = 3
"""How often a creation is sent whose answer is lost each time and that is found not to have been carried out."""

Item = TypeVar("Item")
Existing = TypeVar("Existing")


@dataclass(frozen=True, slots=True)
class CreateOnce(Generic[Item, Existing]):
    """One creation.

    Attributes:
        find: returns what has the name of the new item after a request that has failed; None if nothing has. Takes the
            error, and whether a request may have been carried out.
        send: sends the request, and returns the new item; None if the response does not show it.
        adopt: returns the item for what was found. Takes that, and whether it is ours: a request may have created it.
        tries: how often the request is sent at most, if each time its answer is lost and it was not carried out.
        waits: returns whether to send again, after a pause, what was certainly not carried out.
    """

    find: Callable[[ServiceError, bool], Existing | None]
    send: Callable[[], Item | None]
    adopt: Callable[[Existing, bool], Item]
    tries: int = MAX_CREATE_ATTEMPTS
    waits: Callable[[ServiceError], bool] = lambda _error: False

    def run(self) -> Item | None:
        """Create the item, and return it; None where it was created, and the response does not show it.

        Raises:
            ServiceError: it was not created. Ambiguous, if that is not certain.
        """
        left, is_in_doubt = self.tries, False
        while True:
            try:
                return self.send()
            except ServiceError as error:
                is_in_doubt = is_in_doubt or error.ambiguous
                if not is_in_doubt and self.waits(error):
                    continue
                existing = self.find(error, is_in_doubt)
                if existing is not None:
                    return self.adopt(existing, is_in_doubt)
                left -= 1
                if not (error.ambiguous and left):
                    error.ambiguous = is_in_doubt
                    raise


def elder(new: Iterable[int | None], made: int) -> int | None:
    """Return the ID of the item that stays of several new ones of a name, if that is not the one that was made here.

    The service counts its IDs up, so that of two that were made at once all see the same one as the elder.

    Args:
        new: the IDs of the items of the name that were not there before.
        made: the ID of the one that was made here.
    """
    return min((number for number in new if number is not None and number < made), default=None)
