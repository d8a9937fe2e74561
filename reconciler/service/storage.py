"""Files that the service keeps elsewhere, such as in object storage: the service redirects to them.

A redirect may have a signature in its query: errors show only the host. The token is not sent.
"""

from urllib.parse import urljoin, urlsplit

from reconciler import __version__
from reconciler.errors import Unsendable
from reconciler.model.protocols import Begin
from reconciler.service.connection import is_loopback, tls_context
from reconciler.service.responses import Response, plain, read_response
from reconciler.service.single_request import ask_once

HEADERS = {"User-Agent": f"reconciler/{__version__}"}


def fetch_redirected(base_url: str, redirect_url: str, begin: Begin, ca_file: str | None) -> None:
    """Fetch a file from the location of a redirect; see `Client.download`.

    Args:
        base_url: the URL that redirects.
        redirect_url: the location.
        begin: gets the headers of the response that has the file.
        ca_file: certificates to trust beside the system's.

    Raises:
        ServiceError: the file cannot be fetched; the error shows only the host of the URL.
    """
    try:
        url = urljoin(base_url, redirect_url)
        parts = urlsplit(url)
        host = plain(parts.hostname or "")
        usable = (parts.scheme == "https" or is_loopback(url)) and parts.username is None
    except ValueError:
        raise Unsendable("GET elsewhere", "the service redirects to an invalid URL") from None
    if not usable:
        raise Unsendable(f"GET {host}", "the service redirects there, and only https is followed")
    tls = tls_context(url, ca_file, besides=True)
    read_download(f"GET {host}", ask_once("GET", url, HEADERS, tls, name=host, begin=begin))


def read_download(request: str, response: Response) -> None:
    """Check that a response had the file.

    Raises:
        ServiceError: it had another body.
    """
    if not 200 <= response.status < 300:
        read_response(request, response)
