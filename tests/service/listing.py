"""A server on a real socket that sends one list, in pages or not, with the page headers that a test chooses."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

HEADERS = ("link", "x-next-page", "x-total-pages", "x-total", "x-per-page")


@dataclass
class Listing:
    """How the list is sent.

    Attributes:
        entries: what is on it when so many requests were answered.
        cap: the most entries that a page takes.
        headers: which page headers are sent.
        paginated: whether the list comes in pages; if not, it is sent whole each time.
        past_the_end: what is sent for pages after the last: an empty one, or the last one again.
        cursor: whether a link leads to the next entries by what the last one was, as the lists by keyset do.
        base: what links begin with, up to `/api/v4`: what the server takes for its own address.
        asked: the target of each request.
    """

    entries: Callable[[int], Sequence[Any]] = lambda _: []
    cap: int = 100
    headers: frozenset[str] = frozenset()
    paginated: bool = True
    past_the_end: str = "empty"
    cursor: bool = False
    base: str = ""
    asked: list[str] = field(default_factory=list)

    def answer(self, target: str) -> tuple[list[Any], dict[str, str]]:
        """Return a page and its headers."""
        entries = list(self.entries(len(self.asked)))
        self.asked.append(target)
        query = {name: values[0] for name, values in parse_qs(urlsplit(target).query).items()}
        size = min(int(query["per_page"]), self.cap) if self.paginated else max(len(entries), 1)
        last = max(-(-len(entries) // size), 1)
        page = int(query.get("page", "1")) if self.paginated else 1
        page = 1 + int(query["after"]) // size if "after" in query else page
        page = min(page, last) if self.past_the_end == "last" else page
        rest = f"after={page * size}" if self.cursor else f"page={page + 1}"
        links = [f'<{self.base}{target.partition("?")[0]}?x=1&page=1&per_page={size}>; rel="first"']
        if page < last:
            links.insert(0, f'<{self.base}{target.partition("?")[0]}?{rest}&per_page={size}>; rel="next"')
        told = {
            "link": ", ".join(links),
            "x-next-page": str(page + 1) if page < last else "",
            "x-total-pages": str(last),
            "x-total": str(len(entries)),
            "x-per-page": str(size),
        }
        return entries[(page - 1) * size : page * size], {name: told[name] for name in self.headers}


@contextmanager
def served() -> Iterator[tuple[str, list[Listing]]]:
    """Serve the only element of the yielded list, which a test replaces, under the yielded URL."""
    listings = [Listing()]

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # head and body in one piece

        def do_GET(self) -> None:
            entries, headers = listings[0].answer(self.path.removeprefix("/api/v4/"))
            body = json.dumps(entries).encode()
            self.send_response(200)
            for name, value in {"content-type": "application/json", **headers, "content-length": len(body)}.items():
                self.send_header(name, str(value))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/api/v4", listings
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
