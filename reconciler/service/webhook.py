"""One message to a webhook, such as that of Slack, Mattermost or Teams. See `Webhook`.

Everyone who knows the URL of a webhook may post to it: it is a secret, and messages and errors show only its host. The
token is not sent, no redirect is followed, and no message is sent twice.
"""

from dataclasses import replace
from urllib.parse import SplitResult, urlsplit

from reconciler import __version__
from reconciler.errors import ServiceError, UsageError
from reconciler.service.connection import is_loopback, tls_context
from reconciler.service.policy import DEFAULT_POLICY
from reconciler.service.responses import plain
from reconciler.service.single_request import ask_once

POLICY = replace(DEFAULT_POLICY, connect_timeout=5, read_timeout=10, total_timeout=15, largest_response=2**20)
"""Short timeouts: a chat that does not answer must not delay the run."""

HEADERS = {"User-Agent": f"reconciler/{__version__}", "Content-Type": "application/json"}


class Webhook:
    """A webhook.

    Args:
        url: its URL.
        insecure_http: whether a plain-http URL of another machine is allowed.
        ca_file: certificates to trust beside the system's.

    Attributes:
        host: of the URL; the only part of it that may be shown.

    Raises:
        UsageError: the URL is not usable.
        ConfigurationError: the certificates cannot be read.
    """

    def __init__(self, url: str, *, insecure_http: bool = False, ca_file: str | None = None) -> None:
        parts = _parts(url)
        self.host = plain(parts.hostname or "")
        if parts.scheme == "http" and not (insecure_http or is_loopback(url)):
            raise UsageError("--notify: http would send the URL, which is a secret, unprotected; use https")
        self._url = url
        self._tls = tls_context(url, ca_file, besides=True)

    def post(self, text: str) -> None:
        """Post a message.

        Raises:
            ServiceError: the message was not accepted, or that is unknown; the error shows only the host of the URL.
        """
        response = ask_once("POST", self._url, HEADERS, self._tls, name=self.host, body={"text": text}, policy=POLICY)
        if not 200 <= response.status < 300:
            why = ", and redirects are not followed" if 300 <= response.status < 400 else ""
            raise ServiceError(f"POST {self.host}", f"{response.status} {plain(response.phrase)}{why}", response.status)


def _parts(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0 and parts.username is None
    except ValueError:
        usable = False
    if not usable or not url.isascii() or not url.isprintable() or " " in url:
        raise UsageError("--notify takes the URL of a webhook, such as https://hooks.example.com/services/...")
    return parts
