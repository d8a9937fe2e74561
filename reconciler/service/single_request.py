"""One request to another address than that of the API: a webhook, a file storage, the trigger of a pipeline.

URL and body contain all credentials: the token is not sent, no redirect is followed, and the request is never retried.
"""

import ssl
from collections.abc import Mapping
from urllib.parse import urlsplit

import httpx

from reconciler.errors import ServiceError, Unsendable
from reconciler.model.protocols import Begin, Json
from reconciler.service.connection import Connection
from reconciler.service.policy import DEFAULT_POLICY, Clock, Policy
from reconciler.service.responses import Response
from reconciler.service.transport import open_transport


def ask_once(
    method: str,
    url: str,
    headers: Mapping[str, str],
    tls: ssl.SSLContext,
    *,
    name: str,
    body: Json = None,
    policy: Policy = DEFAULT_POLICY,
    begin: Begin | None = None,
) -> Response:
    """Send one request on a connection of its own, and return the response, whatever its status.

    Args:
        method: such as POST.
        url: http or https, without credentials.
        headers: of the request.
        tls: verifies the server.
        name: the text that errors show instead of the URL, which may be a secret.
        body: sent as JSON; None for none.
        policy: timeouts and bounds; there is no retry.
        begin: takes a successful response; see `Connection.exchange`.

    Raises:
        ServiceError: there was no usable response.
    """
    parts = urlsplit(url)
    path = parts.path.removeprefix("/") + (f"?{parts.query}" if parts.query else "")
    try:
        connection = Connection(f"{parts.scheme}://{parts.netloc}", policy, Clock(), tls, open_transport)
        try:
            return connection.exchange(method, path, headers, body, begin)
        finally:
            connection.close()
    except ServiceError as error:
        raise error.about(f"{method} {name}") from None
    except (httpx.InvalidURL, ValueError):
        raise Unsendable(f"{method} {name}", "the proxy of the environment cannot be used") from None
