"""`--notify`: a message about the result of a run to a chat. Its success or failure does not change the result."""

import logging
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from reconciler.cli.exit_codes import signals_handled
from reconciler.cli.settings import trusted
from reconciler.errors import ServiceError

if TYPE_CHECKING:
    from reconciler.cli.options import ConnectionOptions
    from reconciler.document.document import RunDocument
    from reconciler.model.targets import Target
    from reconciler.service.webhook import Webhook

LOG = logging.getLogger("reconciler")

MAX_LISTED_NOTICES = 10
"""How many targets a message names."""

MEANINGFUL = re.compile(r"""[^\w .,:;/'"%()=+-]""")
"""Characters that may mean something to a chat: mentions, links, markup."""

MAX_NOTICE_LENGTH = 3000
"""Characters of a message; Slack shortens longer ones, and Mattermost refuses them."""


def webhook(webhook_url: str | None, connection: "ConnectionOptions") -> "Webhook | None":
    """Return the webhook of `--notify`, which trusts the same certificates as the client; None without a URL.

    Raises:
        UsageError: the URL is not usable; it is not shown.
        ConfigurationError: the certificates cannot be read.
    """
    if not webhook_url:
        return None
    from reconciler.service.webhook import Webhook

    return Webhook(webhook_url, insecure_http=connection.insecure_http, ca_file=trusted(connection)[0])


def notify_of_plan(hook: "Webhook | None", saved: "RunDocument") -> None:
    """Post the numbers of a plan, and the reasons for which `apply` will refuse the plan."""
    if hook is None:
        return
    from reconciler.document.wording import guard_notes, title_of

    targets = (seen.target for seen in saved.targets if seen.target in saved.differing)
    _post(hook, saved.service, [title_of(saved), _named("In", targets), *guard_notes(saved)])


def notify_of_drift(hook: "Webhook | None", saved: "RunDocument", news: "RunDocument") -> None:
    """Post what is new since the baseline, and how much is gone; nothing if nothing has changed since."""
    if hook is None:
        return
    from reconciler.document.wording import baseline_note, restored_heading, title_of
    from reconciler.model.item import changed_by, target_of
    from reconciler.model.wording import counted

    put_back = [*saved.findings("restored")]
    restored = restored_heading(len(put_back), saved.restored_since)
    number_gone = news.known.gone if news.known else 0
    has_changed = not news.is_empty or number_gone > 0
    if not has_changed and not restored:
        return
    targets = (seen.target for seen in news.targets if seen.target in news.differing)
    gone = f"{counted(number_gone, 'difference')} of the baseline gone" if number_gone else ""
    head = f"Drift: {title_of(news)}" if not saved.is_empty else "In order again" if has_changed else "In order"
    places = dict.fromkeys(map(target_of, put_back))
    again = _named(f"{restored} in", places) if restored else ""
    known = Counter(author.name for author in map(changed_by, news.changes) if author)
    people = ", ".join(f"{name} ({number:,})" for name, number in known.most_common())
    authors = people and f"Changed by {people}"
    _post(hook, saved.service, [head, _named("In", targets), authors, baseline_note(news), gone, again])


def notify_of_report(hook: "Webhook | None", report: "RunDocument") -> None:
    """Post the numbers of an apply, and the targets in which something is not done."""
    if hook is None:
        return
    from reconciler.document.wording import title_of
    from reconciler.model.item import Status, target_of

    undone = {outcome.change.address.target for outcome in report.outcomes if outcome.status is not Status.DONE}
    undone |= set(map(target_of, report.findings("problem")))
    targets = (seen.target for seen in report.targets if seen.target in undone)
    _post(hook, report.service, [title_of(report), _named("Not done, or a problem, in", targets)])


def _named(words: str, targets: "Iterable[Target]") -> str:
    """Return `In project acme/api and 3 more`; empty without targets."""
    names = [str(target) for target in targets]
    more = f" and {len(names) - MAX_LISTED_NOTICES:,} more" if len(names) > MAX_LISTED_NOTICES else ""
    return f"{words} {', '.join(names[:MAX_LISTED_NOTICES])}{more}" if names else ""


def _post(hook: "Webhook", service: str, sentences: Iterable[str]) -> None:
    """Post a message; log an error if that fails."""
    lines = [f"reconciler, {_harmless(service)}", *map(_harmless, filter(None, sentences)), *_job()]
    try:
        with signals_handled(grace_signals=1):
            hook.post("\n".join(lines)[:MAX_NOTICE_LENGTH])
    except ServiceError as error:
        LOG.error("%s was not notified: %s", hook.host, error.reason)  # noqa: TRY400 - a message, no traceback


def _harmless(text: str) -> str:
    """Return text in which nothing is a mention, a link or markup for a chat."""
    return MEANINGFUL.sub("?", text)


def _job() -> Iterator[str]:
    """Yield the URL of the CI job, if this run is a job."""
    url = os.environ.get("CI_JOB_URL", "")
    if url.startswith(("http://", "https://")):
        yield _harmless(url)
