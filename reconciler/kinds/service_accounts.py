"""Service accounts of the instance, each known by its username (spec 4.5)."""

import re
from collections.abc import Iterator
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field

from reconciler.model.endpoints import Collection, Deletion, Existing, Listing, Names, Reading, Writes
from reconciler.model.foreign_keys import Alias, ForeignKeys
from reconciler.model.kind import Kind, Needs
from reconciler.model.protocols import Json
from reconciler.model.resource import Item, LiveRecord, recognized
from reconciler.model.targets import Key, Level
from reconciler.model.wording import short

EMAIL_ADDRESS = re.compile("^[^@ ]+@[^@ ]+$")
USERNAME_TAKEN = "it belongs to a user who is no service account, such as a person, or to a group: choose another"
USERNAME = re.compile(r"(?!-)[\w.-]+(?<!\.)(?<!\.git)(?<!\.atom)", re.ASCII)


def _as_address(text: str) -> str:
    if not EMAIL_ADDRESS.fullmatch(text):
        raise ValueError(f"must be an e-mail address, such as deploy-bot@example.com, not `{short(text)}`")
    return text


class ServiceAccount(Item):
    """A user that belongs to no person."""

    admits: ClassVar[bool] = True

    foreign_keys: ClassVar[ForeignKeys] = {
        "username": "the username of a service account is its key",
        "unconfirmed_email": Alias("email"),
        "service_account_id": "the service sets this: leave it out",
        "skip_wait_for_deletion": "`apply` never waits for a deletion: leave it out",
    }

    name: str = Field(
        min_length=1, max_length=255, default="Service account user", description="Its name.", examples=["Deploy bot"]
    )
    email: Annotated[str, AfterValidator(_as_address)] = Field(
        default="",
        description="Its e-mail address, which receives the notifications about what the account does. If omitted, the "
        "service generates one.",
        examples=["deploy-bot@example.com"],
        json_schema_extra={"pattern": EMAIL_ADDRESS.pattern},
    )


def key_error(name: Key) -> str | None:
    """Return the reason why no server accepts a username; newer servers refuse a few more."""
    if USERNAME.fullmatch(str(name)):
        return None
    return (
        "a username consists of letters a to z, digits, `_`, `-` and `.`, does not begin with `-`, and does not end in "
        "`.`, `.git` or `.atom`, such as deploy-bot; the name to show is `name`"
    )


def complete(reading: Reading) -> Json:
    """Return the accounts.

    An address that waits for its confirmation is the address, or else it would be mailed again.
    """
    addresses = {
        name.casefold(): fields["email"] for name, fields in reading.wanted.items() if "email" in (fields or ())
    }

    def seen(entry: Json) -> Json:
        waiting = entry.get("unconfirmed_email")
        wanted = waiting is not None and addresses.get(entry["username"].casefold()) == waiting
        return {**entry, "email": waiting} if wanted else entry

    return [seen(entry) for entry in reading.answer]


def decode(entry: Json) -> LiveRecord:
    """Read one account. By the specification, lists show no address: then it is written along with the name."""
    shown = {name: entry[name] for name in ("name", "email") if name in entry}
    account, unknown = recognized(ServiceAccount, shown)
    return LiveRecord(account, unknown=unknown, unshown={} if "email" in entry else {"email": "name"})


def losses(_old: Existing) -> Iterator[str]:
    """Yield the losses in general: the list does not show what an account owns (deployed behaviour, section a)."""
    yield "its tokens stop working, its memberships end, and its contributions move to the ghost user"


ACCOUNTS = Collection(
    "service_accounts",
    ServiceAccount,
    title="service account",
    key="username",
    decode=decode,
    listing=Listing(query="order_by=id&sort=asc", complete=complete),
    names=Names(error=key_error, canonical=str.casefold, taken=USERNAME_TAKEN, who="user"),
    writes=Writes(method="PATCH"),
    # There is no DELETE of service accounts: an administrator deletes the user, and the account is listed until a job
    # of GitLab has run.
    deletion=Deletion(suffix="users", prunable=False, fades=True, lost="its memberships, tokens and contributions"),
    losses=losses,
)

KIND = Kind(
    name="service_accounts",
    foreign_names=("instance_service_account", "instance_service_accounts"),
    summary="Service accounts of the whole instance, by username; never pruned, since the list shows everybody's.",
    spec="4.5",
    models={Level.INSTANCE: dict[str, ServiceAccount | None]},
    parts=(ACCOUNTS,),
    order=7,
    needs=Needs(licensed=True),
    pages={Level.INSTANCE: "admin/application_settings/service_accounts"},
)
