"""Hosts and paths that mean to every server on the way what they say, so that no request ends up elsewhere."""

from ipaddress import ip_address
from urllib.parse import urlsplit


def is_loopback(url: str) -> bool:
    """Whether a URL leads to this machine, so that what is sent there needs no protection on the way."""
    host = urlsplit(url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def is_plain(path: str) -> bool:
    """Whether a percent-encoded path, with or without a query, stays where it is.

    It has no dot segments, in whatever encoding, no empty segments, no fragment, no backslashes, no blanks and nothing
    that is not ASCII. Some servers resolve `%2e` and `%2F` before they look where a request goes.
    """
    if not path.isascii() or not path.isprintable() or not {" ", "#", "\\"}.isdisjoint(path):
        return False
    path = path.partition("?")[0].lower()
    if path.find("//") >= 0:
        return False
    return {".", ".."}.isdisjoint(path.replace("%2e", ".").replace("%2f", "/").replace("%5c", "/").split("/"))
