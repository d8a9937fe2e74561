"""After writes: what was sent is read, and planned again. What is still planned was dropped, or not carried out."""

from collections.abc import Iterable, Mapping

from reconciler.engine.apply.agree import Sent, dropped
from reconciler.engine.apply.verify import Reread, Verifier
from reconciler.model.endpoints import Collection
from reconciler.model.item import Delete
from reconciler.model.state import Unreadable


def still_planned(sent: Iterable[Sent], live: Reread, verifier: Verifier) -> Mapping[int, str]:
    """Return, by the `id` of each change that was sent, what planning it again would still do; empty if nothing.

    A change of a part that could not be read is left out. A deletion in doubt whose object may fade away is looked at
    once more: if the object is still there, nothing has deleted it.

    Args:
        sent: the changes.
        live: the parts that they are about, as they were read since.
        verifier: reads again.
    """
    readable = [one for one in sent if not isinstance(live[_place(one)], Unreadable)]
    left = dict(zip((id(one.change) for one in readable), dropped(readable, live, verifier.kinds), strict=True))
    for one in readable:
        if left[id(one.change)] and not one.is_accepted and isinstance(one.change, Delete) and _fades(one, verifier):
            del left[id(one.change)]
            once_more = verifier.again([one.change])
            if not isinstance(once_more[_place(one)], Unreadable):
                (left[id(one.change)],) = dropped([one], once_more, verifier.kinds)
    return left


def _place(sent: Sent) -> tuple[str, str]:
    return sent.change.address.section, sent.change.address.part


def _fades(sent: Sent, verifier: Verifier) -> bool:
    part = verifier.kinds[sent.change.address.section].part(sent.change.address.part)
    return isinstance(part, Collection) and part.deletion.fades
