"""`sql` of the handles: what runs statements is loaded when it is first needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, TypedDict

from forklake.lazy import LazyModule

if TYPE_CHECKING:
    from forklake.api.catalog import Catalog
    from forklake.api.lake import Lake
    from forklake.api.sql_result import SqlResult
    from forklake.api.transaction import Transaction

# SQL is made of handles, so it stands above them.
_sessions: Any = LazyModule("forklake.sql.session")
_making = Lock()

Parameters = Sequence[Any] | Mapping[str, Any] | None


class SqlKeywords(TypedDict, total=False):
    """The options of `sql`."""

    read_only: bool
    allow: Sequence[str]
    one_transaction: bool
    max_rows: int | None
    max_seconds: float | None
    max_memory: int | str | None
    data: Mapping[str, Any]


def run_sql(
    kept: dict[str, Any],
    lake: Lake,
    catalog: Catalog | None,
    transaction: Transaction | None,
    text: str,
    params: Parameters,
    options: Mapping[str, Any],
) -> SqlResult:
    """Run SQL in the session of a handle, which keeps it."""
    session = _kept(kept, lake, catalog, transaction)
    return session.run(text, params, _sessions.checked_options(options))


def session_of_catalog(catalog: Catalog) -> Any:
    """The session that a catalog keeps."""
    return _kept(catalog._sql, lake_of(catalog), catalog, None)  # pyright: ignore[reportPrivateUsage]


def session_of_transaction(transaction: Transaction) -> Any:
    """The session that a transaction keeps."""
    catalog = transaction._catalog  # pyright: ignore[reportPrivateUsage]
    return _kept(transaction._sql, lake_of(catalog), catalog, transaction)  # pyright: ignore[reportPrivateUsage]


def _kept(kept: dict[str, Any], lake: Lake, catalog: Catalog | None, transaction: Transaction | None) -> Any:
    with _making:
        if "session" not in kept:
            kept["session"] = _sessions.session_of(lake, catalog, transaction)
    return kept["session"]


def lake_of(catalog: Catalog) -> Lake:
    """The lake that a catalog is in."""
    return catalog._lake  # pyright: ignore[reportPrivateUsage]
