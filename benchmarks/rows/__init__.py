"""The rows of the table, each in a module of its own: a function from a bench to figures."""

from collections.abc import Callable, Mapping

from benchmarks.bench import Bench
from benchmarks.figures import Figure
from benchmarks.rows import (
    browsing,
    counting,
    exporting,
    finding,
    history,
    memory,
    pacing,
    parts,
    peers,
    reading,
    rendering,
    sections,
    starting,
    waiting,
)

Row = Callable[[Bench], list[Figure]]

ROWS: Mapping[str, Row] = {
    "requests": counting.requests,
    "latency": waiting.latency,
    "auto": finding.auto,
    "cpu": waiting.cpu,
    "order": waiting.order,
    "layers": parts.layers,
    "tls": parts.tls,
    "reading": reading.reading,
    "cliff": reading.cliff,
    "memory": memory.memory,
    "export": exporting.exporting,
    "start": starting.start,
    "since": history.since,
    "rate": pacing.rate,
    "section": sections.section,
    "render": rendering.rendering,
    "show": rendering.showing,
    "browser": browsing.browsing,
    "peers": peers.peers,
}

NEEDY = ("browser", "peers")
"""The rows that need Chromium, or packages from PyPI, and more time for that than all others for their work."""
