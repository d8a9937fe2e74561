"""Connections that break: resets, hangs and bodies cut short, on the real TCP connection."""

import asyncio
import socket
import struct
from contextlib import suppress
from typing import Any

from .faults import Fault
from .packet import Packet, Receive, Scope, Send

_LINGER_NOT = struct.pack("ii", 1, 0)


async def break_off(fault: Fault, packet: Packet, scope: Scope, receive: Receive, send: Send) -> None:
    """End a request without a whole answer, as the fault says; returns once the connection is gone.

    The request has been read to its end, so that all `receive` can still tell is that the client is gone.
    """
    transport = scope["state"]["connection"].transport
    if fault.kind == "hang-after":
        with suppress(TimeoutError):
            await asyncio.wait_for(receive(), fault.seconds)
        transport.abort()
    elif fault.kind == "truncate" and packet.body:
        await packet.send_start(send)
        half = packet.body[: len(packet.body) // 2]
        await send({"type": "http.response.body", "body": half, "more_body": True})
        transport.close()
    else:
        _reset(transport)
    await receive()


def _reset(transport: Any) -> None:
    """Make the peer see a reset, not an orderly end."""
    transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NOT)
    transport.abort()
