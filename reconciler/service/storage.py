"""Files that the service keeps elsewhere, such as in object storage: its redirects lead there.

A redirect may carry a signature in its query: no error shows more of it than the host. No token of ours is sent.
"""

from urllib.parse import urljoin, urlsplit

import httpx

from reconciler import __version__
from reconciler.errors import ServiceError, Unsendable
from reconciler.model.protocols import Begin
from reconciler.service.connection import Connection, is_loopback, tls_context
from reconciler.service.policy import DEFAULT_POLICY, Clock
from reconciler.service.responses import Response, plain, read_response
from reconciler.service.transport import open_transport

HEADERS = {"User-Agent": f"reconciler/{__version__}"}


def fetch_elsewhere(base: str, location: str, begin: Begin, ca_file: str | None) -> None:
    """Fetch a file from where a redirect leads; see `Client.download`.

    Args:
        base: the URL that redirects.
        location: where to.
        begin: gets the headers of the response that has the file.
        ca_file: certificates to trust beside the system's.

    Raises:
        ServiceError: it cannot be fetched; names the host and no more of the URL.
    """
    try:
        url = urljoin(base, location)
        parts = urlsplit(url)
        request = f"GET {plain(parts.hostname or '')}"
        usable = (parts.scheme == "https" or is_loopback(url)) and parts.username is None
    except ValueError:
        raise Unsendable("GET elsewhere", "the service redirects to what is no URL") from None
    if not usable:
        raise Unsendable(request, "the service redirects there, and only https is followed")
    origin = f"{parts.scheme}://{parts.netloc}"
    path = parts.path.removeprefix("/") + (f"?{parts.query}" if parts.query else "")
    try:
        tls = tls_context(url, ca_file, besides=True)
        connection = Connection(origin, DEFAULT_POLICY, Clock(), tls, open_transport)
        try:
            read_download(request, connection.exchange("GET", path, HEADERS, None, begin))
        finally:
            connection.close()
    except ServiceError as error:
        raise type(error)(request, error.reason, error.status) from None
    except (httpx.InvalidURL, ValueError):
        raise Unsendable(request, "the proxy of the environment cannot be used") from None


def read_download(request: str, response: Response) -> None:
    """See that a response had the file.

    Raises:
        ServiceError: it had something else.
    """
    if not 200 <= response.status < 300:
        read_response(request, response)
