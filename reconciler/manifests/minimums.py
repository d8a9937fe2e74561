"""Minimums: values of profiles and sets that later layers may make stricter and not looser. Pure.

`Stack` collects a `Bid` of each layer, and `join` decides which value wins: the strictest minimum, or a lock that is as
strict.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import ValidationError

from reconciler.model.direction import Strictness, compare_field
from reconciler.model.endpoints import as_json
from reconciler.model.protocols import Json
from reconciler.model.resource import Resource

NO_FIELDS: frozenset[str] = frozenset()

AS_STRICT = {Strictness.STRICTER, Strictness.EQUAL}
NOT_STRICTER = {Strictness.LOOSER, Strictness.EQUAL}


@dataclass(frozen=True, slots=True, eq=False)
class Bid:
    """One layer's declaration of an item, or of a section of fields.

    Attributes:
        layer: the layer.
        fields: as declared, with canonical names; None if the item must not exist.
        locked: the fields that it locks.
        minimum: the fields of which it declares a minimum; None if neither the item nor a field of it is a minimum.
    """

    layer: Any
    fields: Mapping[str, Any] | None
    locked: frozenset[str] = NO_FIELDS
    minimum: frozenset[str] | None = None

    @property
    def at_least(self) -> frozenset[str]:
        """The fields of which it declares a minimum."""
        return self.minimum or NO_FIELDS


Fault = Literal["looser", "incomparable", "locked looser"]


@dataclass(frozen=True, slots=True)
class Breach:
    """A value of a layer that conflicts with the minimum of another one.

    Attributes:
        layer: the layer.
        against: the layer with the conflicting value.
        steps: to the value, from the item or the section; to an entry of a list that unites, with `repr`.
        fault: `looser`: the value is looser than the minimum. `incomparable`: both values are minimums, and neither is
            stricter. `locked looser`: the value is a minimum, and the locked value of the other layer is not as strict.
    """

    layer: Any
    against: Any
    steps: tuple[str, ...]
    fault: Fault


@dataclass(slots=True)
class Joined:
    """The outcome for an item, or for a section of fields.

    Attributes:
        minimums: the fields that may be stricter on the service.
        winners: the fields whose value is not that of the last layer that declares it, each with layer and value.
        breaches: the values that conflict.
    """

    minimums: frozenset[str]
    winners: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    breaches: list[Breach] = field(default_factory=list)


def join(model: type[Resource], bids: Sequence[Bid], uniting: Collection[str]) -> Joined:
    """Decide which layer's value of each field wins.

    Args:
        model: of the item, or of the section.
        bids: of all layers that declare the item or section, lowest first.
        uniting: the fields whose lists unite, whatever the order: any entry that is not in a minimum is looser.
    """
    minimum_fields = frozenset(name for bid in bids for name in bid.at_least)
    joined = Joined(minimum_fields - {name for bid in bids for name in bid.locked})
    in_order = minimum_fields - {*uniting}
    _join_values(model, [*bids], in_order, joined)
    for name in sorted(minimum_fields & {*uniting}):
        _join_lists(model, [bid for bid in bids if bid.fields and isinstance(bid.fields.get(name), list)], name, joined)
    return joined


def _join_values(model: type[Resource], bids: Iterable[Bid], minimum_fields: frozenset[str], joined: Joined) -> None:
    current: dict[str, Any] = {}
    holders: dict[str, Bid] = {}
    lowest: Bid | None = None
    for bid in bids:
        if bid.fields is None:
            # Null: the item must not exist. That is looser than a minimum of a lower layer; later layers begin anew.
            joined.breaches += [Breach(bid.layer, lowest.layer, (), "looser")] if lowest else []
            current, holders, lowest = {}, {}, None
            joined.winners.clear()
            continue
        lowest = lowest if bid.minimum is None else lowest or bid
        # a copy: all fields of a layer are compared with lower layers, whatever their order in the layer
        below = dict(current)
        for name, value in bid.fields.items():
            holder = holders.get(name)
            if holder is not None:
                strictness = compare(model, name, {**below, **bid.fields}, below)
                is_taken, fault = _takes_over(holder, bid, name, strictness)
                joined.breaches += [Breach(bid.layer, holder.layer, (name,), fault)] if fault else []
                if not is_taken:
                    joined.winners[name] = holder.layer, current[name]
                    continue
                joined.winners.pop(name, None)
                if fault or name in holder.locked:  # later layers are compared with the same value
                    continue
            current[name] = value
            if name in minimum_fields and (holder or name in bid.at_least | bid.locked):
                holders[name] = bid


def _join_lists(model: type[Resource], bids: Sequence[Bid], name: str, joined: Joined) -> None:
    holder, *others = (bid for bid in bids if name in bid.at_least | bid.locked)
    for bid in others:
        strictness = compare(model, name, bid.fields or {}, holder.fields or {})
        is_taken, fault = _takes_over(holder, bid, name, strictness)
        joined.breaches += [Breach(bid.layer, holder.layer, (name,), fault)] if fault else []
        holder = bid if is_taken else holder
    value = (holder.fields or {})[name]
    joined.winners[name] = holder.layer, value
    for bid in bids:
        if name not in bid.at_least | bid.locked:
            added = [entry for entry in (bid.fields or {})[name] if entry not in value]
            joined.breaches += [Breach(bid.layer, holder.layer, (name, repr(entry)), "looser") for entry in added]


def _takes_over(holder: Bid, bid: Bid, name: str, strictness: Strictness) -> tuple[bool, Fault | None]:
    """Return whether a layer's value replaces that of the lower layer `holder`, and the fault, if any.

    A changed value of a lock is no fault here: `locks` reports it.
    """
    if name in holder.locked:
        if name not in bid.at_least:
            return True, None
        return False, None if strictness in NOT_STRICTER else "locked looser"
    if name in bid.at_least:
        return strictness in AS_STRICT, "incomparable" if strictness is Strictness.INCOMPARABLE else None
    return True, None if strictness in AS_STRICT else "looser"


def compare(model: type[Resource], name: str, this: Mapping[str, Json], that: Mapping[str, Json]) -> Strictness:
    """Compare a field of two objects; values of a wrong form, which are errors of their own, count as equal."""
    one, other = _canonical(model, this), _canonical(model, that)
    if one is None or other is None:
        return Strictness.EQUAL
    return compare_field(model.directions, name, one, other)


def _canonical(model: type[Resource], fields: Mapping[str, Json]) -> Mapping[str, Json] | None:
    try:
        return as_json(model.model_validate(dict(fields)))
    except ValidationError:
        return None
