"""One request, again and again, at each layer of the client: what the CPU time of a request is spent on.

A process of its own: `python -m benchmarks.layers API_URL PATH THREADS REQUESTS [CA_FILE]` prints, by layer, the
milliseconds of CPU and of wall time that a request takes with so many threads; of the client's own layers alone where
there is a certificate to trust.
"""

import json
import socket
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.client import HTTPConnection
from time import perf_counter, process_time
from urllib.parse import urlsplit

import click

from benchmarks.fleet import TOKEN
from reconciler.service import Client, Clock, Policy
from reconciler.service.connection import Connection, tls_context
from reconciler.service.transport import open_transport

HEADERS = {"PRIVATE-TOKEN": TOKEN, "Accept": "application/json", "Accept-Encoding": "gzip"}

OWN = "httptools, as in `service/transport.py`"

Ask = Callable[[], object]


def bare_socket(api_url: str, path: str) -> Ask:
    """Send the same bytes, and read what comes."""
    url = urlsplit(api_url)
    connection = socket.create_connection((url.hostname, url.port or 80))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    lines = "".join(f"{name}: {value}\r\n" for name, value in HEADERS.items())
    request = f"GET {url.path}/{path} HTTP/1.1\r\nHost: {url.netloc}\r\n{lines}\r\n".encode()

    def ask() -> object:
        connection.sendall(request)
        return connection.recv(65536)

    return ask


def standard_library(api_url: str, path: str) -> Ask:
    """Let `http.client` send and parse."""
    url = urlsplit(api_url)
    connection = HTTPConnection(url.netloc)

    def ask() -> object:
        connection.request("GET", f"{url.path}/{path}", headers=HEADERS)
        return connection.getresponse().read()

    return ask


def client_connection(api_url: str, path: str, ca_file: str | None = None) -> Ask:
    """Let the client's connection do so, with its deadlines."""
    connection = Connection(api_url, Policy(), Clock(), tls_context(api_url, ca_file), open_transport)
    return lambda: connection.exchange("GET", path, HEADERS, None)


LAYERS: Mapping[str, Callable[[str, str], Ask]] = {
    "a bare socket": bare_socket,
    "http.client": standard_library,
    OWN: client_connection,
}


def main(api_url: str, path: str, threads: int, requests: int, ca_file: str | None = None) -> None:
    """Measure all layers, or over TLS those of the client."""
    layers = LAYERS if ca_file is None else {OWN: partial(client_connection, ca_file=ca_file)}
    found = {
        name: _measured([layer(api_url, path) for _ in range(threads)], requests) for name, layer in layers.items()
    }
    with Client(api_url, TOKEN, policy=Policy(concurrency=threads), ca_file=ca_file) as client:
        found["the client, with JSON, retries and rates"] = _measured([lambda: client.get(path)] * threads, requests)
    click.echo(json.dumps(found))


def _measured(asks: list[Ask], requests: int) -> tuple[float, float]:
    def again(ask: Ask) -> None:
        for _ in range(requests // len(asks)):
            ask()

    for ask in asks:
        ask()
    cpu, wall = process_time(), perf_counter()
    with ThreadPoolExecutor(len(asks)) as pool:
        list(pool.map(again, asks))
    return 1000 * (process_time() - cpu) / requests, 1000 * (perf_counter() - wall) / requests


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), *sys.argv[5:])
