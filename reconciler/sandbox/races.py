"""Creations held between their checks and their insertion, so that several pass the checks before one is there."""

import asyncio
from collections.abc import Callable

from .faults import Fault
from .packet import Packet

Finish = Callable[[], Packet]


class Races:
    """The creations that are held, by the path they create at."""

    def __init__(self) -> None:
        self._held: dict[str, list[tuple[Finish, asyncio.Future[Packet]]]] = {}

    async def join(self, path: str, fault: Fault, finish: Finish) -> Packet:
        """Wait until the fault's number of creations are held at that path or its patience is over; then finish all."""
        future: asyncio.Future[Packet] = asyncio.get_running_loop().create_future()
        held = self._held.setdefault(path, [])
        held.append((finish, future))
        if len(held) < fault.together:
            await asyncio.wait([future], timeout=fault.patience)
        if not future.done():
            for each, waiting in self._held.pop(path):
                waiting.set_result(each())
        return future.result()
