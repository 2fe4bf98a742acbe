"""The kinds of indexes by name: those of forklake, and those that other packages offer.

A package offers a kind by an entry point of the group `forklake.index_kinds`: its name is that of the kind,
and it leads to a class of the shape of `forklake.index.kind.Kind`, which is made without arguments:

    [project.entry-points."forklake.index_kinds"]
    bitmap = "my_package.bitmap:Bitmap"

A kind is loaded when it is first asked for. No package can take the name of one that forklake has.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import cast

from forklake.errors import InvalidIndex, MissingDependency
from forklake.index.kind import Kind
from forklake.model.alike import nearest

GROUP = "forklake.index_kinds"

# In code and not as entry points: those of an environment that was set up before would lack the newest.
BUILT_IN = {
    "bm25": "forklake.index.bm25:Bm25",
    "btree": "forklake.index.btree:Btree",
    "hash": "forklake.index.hash:Hash",
    "rstar": "forklake.index.rstar.kind:Rstar",
    "vector": "forklake.index.vector:Vector",
}

_loaded: dict[str, Kind] = {}


def kind_of(name: str) -> Kind:
    """The kind of this name, or `InvalidIndex` that says which there are.

    Raises `MissingDependency` if what another package offers cannot be imported.
    """
    found = _loaded.get(name)
    if found is None:
        # Two threads may both make one: kinds have no state.
        found = _loaded[name] = _built_in(name) if name in BUILT_IN else _offered(name)
    return found


def kind_names() -> tuple[str, ...]:
    """The names of all kinds that there are, in order. Nothing is loaded."""
    return tuple(sorted(BUILT_IN.keys() | {point.name for point in _points()}))


def _built_in(name: str) -> Kind:
    module, _, attribute = BUILT_IN[name].partition(":")
    return cast("Kind", getattr(import_module(module), attribute)())


def _offered(name: str) -> Kind:
    offers = [point for point in _points() if point.name == name]
    if not offers:
        names = kind_names()
        close = nearest(name, names)
        meant = "" if close is None else f'did you mean "{close}"? '
        raise InvalidIndex(f'no kind of index is called "{name[:80]}": {meant}there are {", ".join(names)}')
    # The same distribution may be found twice on the path; two of them are not for us to choose from.
    if len({point.value for point in offers}) > 1:
        shown = " and ".join(sorted(_owner(point) for point in offers))
        raise InvalidIndex(f'the kind of index "{name}" is offered by {shown}: uninstall one of them')
    return _load(offers[0])


def _load(point: EntryPoint) -> Kind:
    owner = _owner(point)
    try:
        made = point.load()()
    except ModuleNotFoundError as problem:
        raise MissingDependency(
            f'the kind of index "{point.name}" of {owner} needs the module {problem.name}, which is not '
            f"installed: install {owner} again, with all that it depends on"
        ) from problem
    except AttributeError as problem:
        raise InvalidIndex(
            f'{owner} offers the kind of index "{point.name}" and lacks it: {problem}'
        ) from None
    missing = [name for name in _members() if not hasattr(made, name)]
    if missing:
        raise InvalidIndex(
            f'the kind of index "{point.name}" of {owner} has no {", ".join(missing)}: '
            "it was made for another version of forklake"
        )
    return cast("Kind", made)


def _members() -> tuple[str, ...]:
    own = (name for name in vars(Kind) if not name.startswith("_"))
    return tuple(sorted({*own, "name", "maintain"}))


def _points() -> Iterable[EntryPoint]:
    return [point for point in entry_points(group=GROUP) if point.name not in BUILT_IN]


def _owner(point: EntryPoint) -> str:
    return f"the package {point.dist.name}" if point.dist is not None else f"{point.value}"
