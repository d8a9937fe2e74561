"""The order in which the objects of a collection are planned, so that references exist: `arranged`. Pure."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from reconciler.model import endpoints
from reconciler.model.resource import LiveRecord, Resource
from reconciler.model.targets import Key


def arranged(
    collection: endpoints.Collection, wanted: Mapping[Key, Resource | None], live: Sequence[LiveRecord]
) -> Mapping[Key, Resource | None]:
    """Return the wanted objects in planning order, under the names that live objects have."""
    by_name = {name: wanted[name] for name in sorted(wanted, key=_numbers_last)}
    if collection.names.arrange:
        return collection.names.arrange(by_name, live)
    # A request by a short name may reach an object with a longer one: the shorter name is created first.
    if collection.names.leads_to:
        return {name: by_name[name] for name in sorted(by_name, key=lambda name: len(str(name)))}
    if not collection.relations.refers:
        return by_name
    shown = {collection.identity(record.names[0]): record.resource for record in live}
    declared = {collection.identity(name): resource for name, resource in by_name.items() if resource is not None}
    above = {name: set(collection.references(resource).values()) for name, resource in (shown | declared).items()}
    for name, resource in declared.items():
        unsaid = set(collection.relations.refers) - resource.model_fields_set
        refers = collection.references(shown[name]) if name in shown else {}
        above[name] |= {other for field, other in refers.items() if field in unsaid}
    depths = {name: depth for depth, names in enumerate(topological(above, above)) for name in names}

    def place(name: Key) -> tuple[bool, int]:
        resource, depth = wanted[name], depths.get(collection.identity(name), 0)
        is_first = resource is not None and collection.relations.reversed(resource)
        return not is_first, -depth if is_first else depth

    return {name: by_name[name] for name in sorted(by_name, key=place)}


def topological(names: Iterable[Key], references: Mapping[Key, Collection[Key]]) -> list[list[Key]]:
    """Return names in generations: each name refers only to names of earlier generations, or outside.

    The last generation has the names that refer to themselves in a circle, and the names that refer to these.
    """
    places = {name: place for place, name in enumerate(names)}
    above = {name: places.keys() & references[name] for name in places}
    below: dict[Key, list[Key]] = {}
    for name, others in above.items():
        for other in others:
            below.setdefault(other, []).append(name)
    generations = []
    ready = [name for name, others in above.items() if not others]
    while ready:
        generations.append(ready)
        freed = []
        for name in ready:
            del places[name]
            for child in below.get(name, ()):
                above[child].discard(name)
                freed += [] if above[child] else [child]
        ready = sorted(freed, key=places.__getitem__)
    return [*generations, [*places]] if places else generations


def _numbers_last(name: Key) -> tuple[bool, Key]:
    return isinstance(name, int), name
