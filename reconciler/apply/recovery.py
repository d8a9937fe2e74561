"""After a run that was killed: what it had done, what was in doubt, and the settling of the doubt."""

from collections.abc import Iterator

from reconciler.address import Address
from reconciler.apply.outcomes import Deliver
from reconciler.endpoints import Collection
from reconciler.errors import OutputFailed, ServiceError
from reconciler.journal import Intent, Interrupted, settle
from reconciler.kind import Kinds
from reconciler.live import decode
from reconciler.matching import identity
from reconciler.plan import Plan
from reconciler.wire import Reader


def recover(
    interrupted: Interrupted, plan: Plan, reader: Reader, kinds: Kinds, deliver: Deliver | None
) -> Iterator[str]:
    """Yield sentences about a run that was cut off, delivering values that it created and may not have delivered.

    Args:
        plan: a new one, drawn up after that run.
        reader: reads such a value, which its owner can.
    """
    yield (
        f"The run that began at {interrupted.began_at} was cut off: {interrupted.done} writes were certainly carried "
        f"out, {len(interrupted.doubtful)} were in doubt."
    )
    for intent, carried_out in settle(interrupted, plan):
        verdict = "was carried out" if carried_out else "was not carried out, or not wholly, and is planned again"
        yield f"In doubt was {intent}: it {verdict}."
        part = kinds[intent.section].part(intent.part) if intent.section in kinds else None
        if carried_out and isinstance(part, Collection) and part.delivers and intent.request.startswith("POST "):
            yield f"Its value may not have been delivered: {_deliver(intent, part, reader, deliver)}."


def _deliver(intent: Intent, part: Collection, reader: Reader, deliver: Deliver | None) -> str:
    """Deliver the value of an object that a killed run created, if it can be told which it is and it can be read."""
    if deliver is None or part.delivers is None or intent.name is None:
        return "there is nowhere to deliver it to; delete the object, and the next run creates it anew"
    try:
        entries = [(entry, decode(part, intent.scope, entry)) for entry in reader.pages(intent.request[len("POST ") :])]
        wanted = identity(part, intent.name)
        values = [entry[part.delivers] for entry, found in entries if wanted in map(part.canonical_key, found.names)]
        if len(values) != 1 or not part.shown_whole(values[0]):
            return "it cannot be read any more; delete the object, and the next run creates it anew"
        deliver(Address(intent.scope, intent.section, intent.part, part.title, intent.name), values[0])
    except (ServiceError, OutputFailed) as error:
        return str(error)
    return "it was delivered now"
