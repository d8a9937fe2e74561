"""Service accounts of the instance (spec section 4.5): administrators list and create them.

The spec does not say how accounts are changed and deleted: by `PATCH`, which drops blank values, and like users, see
`users`. Production shows the address in the list too, has more errors about usernames, and deletes by a job, which here
has run after the next list.
"""

import re
from typing import Any

from ..answers import Answer, refused
from ..call import Call
from ..collection import RouteCollection
from ..parameters import text
from ..records import StoredItem
from ..state import Instance, User

_TEXTS = (text("name"), text("username"), text("email"))


_USERNAME = re.compile(r"(?![-_.])[\w.-]+(?<![-_.])(?<!\.git)(?<!\.atom)", re.ASCII)
_MALFORMED = (
    "Username can only include non-accented letters, digits, '_', '-' and '.'. It must not start with '-', '_', or "
    "'.', nor end with '-', '_', '.', '.git', or '.atom'.",
    "Username can contain only letters, digits, '_', '-' and '.'. "
    "Cannot start with '-' or end in '.', '.git' or '.atom'.",
)


class Account(StoredItem):
    """An account; `unconfirmed_email` is an address that waits for its confirmation."""

    counted_with = User

    username: str = ""
    name: str = "Service account user"
    email: str = ""
    unconfirmed_email: str | None = None
    fading: bool = False

    def complete(self) -> None:
        """Add the name and the address that the service makes up."""
        self.username = self.username or f"service_account_{self.id:032x}"
        self.email = self.email or f"service_account_{self.id:032x}@noreply.example.com"


class _Accounts(RouteCollection[Account]):
    def list_items(self, call: Call) -> Answer:
        """Answer with the accounts, after the job that deletes accounts."""
        answer, owner = super().list_items(call), call.state.instance
        self.section.put(owner, [item for item in self.section.of(owner) if not item.fading])
        return answer

    def make(self, call: Call, owner: Instance, sent: dict[str, Any]) -> Account:
        """Return a new account; blank values count as no values."""
        return super().make(call, owner, {name: value for name, value in sent.items() if value})

    def find(self, call: Call, owner: Instance, key: Any) -> Account:
        """Return the account; refuse other users with 400."""
        if key in call.state.users:
            raise refused(400, "400 Bad request - User is not a service account")
        return super().find(call, owner, key)

    def read_changes(self, call: Call) -> dict[str, Any]:
        """Return the attributes of a change, without blank values."""
        return {name: value for name, value in super().read_changes(call).items() if value}

    def remove(self, call: Call, owner: Instance, item: Account) -> None:
        """Remove the account; in production, leave that to the job."""
        if call.state.deployed:
            item.fading = call.changed = True
        else:
            super().remove(call, owner, item)

    def check(self, call: Call, owner: Instance, wanted: Account, before: Account | None) -> None:
        """Refuse a username or an address of another user, whatever its case, and a username of a group."""
        others: list[Account] = [account for account in self.section.of(owner) if account is not before]
        users = list(call.state.users_by_name.values())
        reasons = []
        if wanted.email and wanted.email in {account.email for account in others}.union(
            *(user.emails for user in users)
        ):
            reasons.append("Email has already been taken")
        names = {account.username for account in others} | {user.username for user in users}
        reasons += self._against(call, wanted.username, names)
        if reasons:
            raise refused(400, f"400 Bad request - {(' and ' if before is None else '. ').join(reasons)}")

    def _against(self, call: Call, username: str, names: set[str]) -> tuple[str, ...]:
        """Return the error about a username beside these names."""
        deployed = call.state.deployed
        if username in names or (not deployed and username.lower() in {name.lower() for name in names}):
            return ("Username has already been taken",)
        if username and username.lower() in {name.lower() for name in names} | call.state.groups_by_path.keys():
            return ("A user, alias, or group already exists with that username.",)
        return _MALFORMED if deployed and username and not _USERNAME.fullmatch(username) else ()

    def show(self, call: Call, owner: Instance, item: Account) -> dict[str, Any]:
        """Return the record (spec section 2): the address is only in the answer to a creation."""
        record = {"id": item.id, "username": item.username, "name": item.name}
        if call.state.deployed:
            waiting = {"unconfirmed_email": item.unconfirmed_email} if item.unconfirmed_email else {}
            return {**record, "public_email": None, "email": item.email, **waiting}
        return record | ({"email": item.email} if call.method == "POST" else {})


ACCOUNTS = _Accounts(
    "service_accounts",
    Account,
    "/service_accounts",
    part="user_id",
    order=("id", "username"),
    new=_TEXTS,
    changes=_TEXTS,
)
SECTIONS = (ACCOUNTS.section,)
ROUTES = ACCOUNTS.routes("list", "create", "update", update="PATCH")
