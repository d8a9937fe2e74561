"""Secrets in messages to a person: a token in place of a path or a URL is hidden, and so are our own.

See `concealed`.
"""

import os
import re

from reconciler.system.processes import LONG_ENOUGH, own_tokens

TOKEN_PATTERN = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"(?:gl(?:agent|cbt|dt|ffct|ft|imt|oas|pat|ptt|rt|rtr|soat|wt)-|GR1348941|gh[a-z]_|github_pat_)[\w.=-]{10,}"
    r"|eyJ[\w-]{8,}\.[\w-]+(?:\.[\w-]*)?)"
    r"|(?<=://)[^/@\s]+(?=@)|(?<=:/)[^/@\s]+(?=@)",
    re.IGNORECASE,
)
"""Tokens of GitLab and GitHub by their beginnings, JSON web tokens, and credentials in URLs.

The beginnings are listed: a message names files, which may be called `global-settings`. A path has one slash for the
two of a URL.
"""

HIDDEN = "[a secret]"


def concealed(text: str) -> str:
    """Return text without anything that looks like a token, and without our own tokens of the environment."""
    for secret in sorted(own_tokens(os.environ), key=len, reverse=True):
        if len(secret) >= LONG_ENOUGH:
            text = text.replace(secret, HIDDEN)
    return TOKEN_PATTERN.sub(HIDDEN, text)
