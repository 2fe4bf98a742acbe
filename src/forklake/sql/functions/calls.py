"""Calling functions of ours by the name that a statement gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from forklake.api.scoped import scope_of
from forklake.errors import InvalidSql
from forklake.lazy.arrow import pa
from forklake.model.names import QualifiedName
from forklake.sql.functions.answers import answer
from forklake.sql.functions.function import Arguments, Caller, SqlFunction
from forklake.sql.functions.introspection import INTROSPECTION
from forklake.sql.functions.registry import FUNCTIONS
from forklake.sql.reach import SessionReach

if TYPE_CHECKING:
    from forklake.api.catalog import Catalog
    from forklake.model.entities import View
    from forklake.sql.statement import Running

_PREFIX = "ducklake_"


def call_function(
    running: Running,
    name: Sequence[str],
    positional: Sequence[Any],
    named: Mapping[str, Any],
    *,
    only_columns: bool = False,
) -> pa.Table | None:
    """What a function returns; None if there is none of this name.

    `snapshots()`, `shop.snapshots()` and `ducklake_snapshots('shop')` are the same. With `only_columns`,
    one that changes something does not, and returns no rows.
    """
    session = running.session
    handle, work = session.handle, None
    own = name[-1].lower()
    function = _named(own)
    if function is not None and own not in FUNCTIONS:
        if not function.of_lake:
            if not positional or not isinstance(positional[0], str):
                raise InvalidSql(f"{own}() takes the name of a catalog first")
            handle, work = _asked(running, positional[0])
            positional = positional[1:]
    elif function is not None and len(name) > 1:
        handle, work = _asked(running, name[0])
    if function is None:
        listing = INTROSPECTION.get(own)
        if listing is None or session.handle is None:
            return None
        return listing(_listing_caller(running, session.handle))
    if handle is None:
        raise InvalidSql("say in which catalog: USE a catalog first, or call sql() of the catalog")
    if function.is_change:
        _check_change(running, own, handle if work is handle else None)
    schema = session.schema if work is None else "main"
    caller = Caller(session.lake, handle, work or session.work, schema, reach=SessionReach(running))
    arguments = Arguments(list(positional), {key.lower(): value for key, value in named.items()})
    if only_columns and function.is_change and function.columns is not None:
        function.checked(arguments)
        return answer(function.columns, [])
    return function.run(caller, arguments)


def _check_change(running: Running, name: str, elsewhere: Catalog | None) -> None:
    """Refuse a change where only reading is allowed, and of a catalog that the transaction is not on."""
    if running.options.read_only:
        raise InvalidSql(f"{name}() changes something, and only reading is allowed here")
    session = running.session
    if elsewhere is not None and session.open is not None:
        raise InvalidSql(f'the transaction is on "{session.catalog}", and this changes "{elsewhere.name}"')


def _listing_caller(running: Running, catalog: Catalog) -> Caller:
    session = running.session
    names = {schema.id: schema.name for schema in scope_of(session.work).read().schemas()}

    def columns(view: View) -> Sequence[tuple[str, str]] | None:
        return running.view_columns(QualifiedName(names[view.schema_id], view.name))

    is_read_only = running.options.read_only
    return Caller(session.lake, catalog, session.work, session.schema, is_read_only, columns)


def hidden_columns(name: Sequence[str]) -> tuple[str, ...]:
    """Columns of what a function returns that `*` does not mean."""
    function = _named(name[-1].lower())
    return () if function is None else function.hidden


def changes_something(name: Sequence[str]) -> bool:
    """Whether a name is that of a function that changes something."""
    function = _named(name[-1].lower())
    return function is not None and function.is_change


def _named(name: str) -> SqlFunction | None:
    return FUNCTIONS.get(name) or FUNCTIONS.get(name.removeprefix(_PREFIX))


def _asked(running: Running, name: str) -> tuple[Catalog | None, Catalog | None]:
    """The catalog that a call names, and where changes take effect if that is not where the session is."""
    session = running.session
    if session.is_catalog(name):
        return session.handle, None
    if not session.is_of_lake:
        raise InvalidSql(f'"{name}" is another catalog: call the function there')
    other = session.lake.catalog(name)
    return other, other
