"""What notebooks show of handles: a few facts and the first rows, read by a fixed number of queries.

No data file is read. A handle that is stale, of a dropped catalog or a closed lake, says that it is.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

from forklake.commit.draft import Draft
from forklake.display import MOST_ROWS, html_message, html_record, html_table, html_title
from forklake.errors import ForklakeError
from forklake.model.changes import describe
from forklake.model.entities import Table
from forklake.model.snapshots import Head
from forklake.model.types.data_types import to_sql
from forklake.store.backend import Database
from forklake.store.files import totals_of
from forklake.store.first_rows import first_catalogs, first_tables
from forklake.store.lineages import fork_point, parent_of
from forklake.store.snapshots import latest_snapshot


def shown(handle: object, draw: Callable[[], str]) -> str:
    """What is drawn, or that nothing can be read any more, and why."""
    try:
        return draw()
    except ForklakeError as error:
        return html_title(repr(handle)) + html_message(str(error))


def lake_html(database: Database, data_path: str) -> str:
    """Where the lake is, how many catalogs it has, and the first of them."""
    total, rows = first_catalogs(database, MOST_ROWS)
    facts = {
        "data path": data_path,
        "latest snapshot": latest_snapshot(database),
        "catalogs": f"{total:,}",
    }
    names = ("catalog", "parent", "forked at", "created", "expires")
    return html_title("Lake", database.url) + html_record(facts) + html_table(names, rows, total)


def catalog_html(database: Database, name: str, head: Head) -> str:
    """Where a catalog stands, whose fork it is, and the first of its tables."""
    parent, point = parent_of(database, head.catalog_id), fork_point(database, head.catalog_id)
    total, rows = first_tables(database, head, MOST_ROWS)
    facts = {
        "snapshot": f"{head.snapshot_id} of {head.snapshot_time:%Y-%m-%d %H:%M:%S} UTC",
        "parent": f"{parent[1]}, forked at {point}" if parent and point is not None else None,
        "tables": f"{total:,}",
    }
    return html_title("Catalog", name) + html_record(facts) + html_table(("schema", "table"), rows, total)


def table_html(
    draft: Draft, table: Table, catalog: str, partitioning: tuple[str, ...], sort_order: tuple[str, ...]
) -> str:
    """What a table is: its columns, and how many rows and files the metadata count."""
    head, tags = draft.head, draft.column_tags(table.id)
    facts: dict[str, object] = {"catalog": catalog, "snapshot": head.snapshot_id}
    if table.id >= 0:
        totals = totals_of(draft.state.database, head.catalog_id, table.id, head.snapshot_id)
        facts |= {
            "rows": f"{totals.record_count:,}",
            "files": f"{totals.files:,}",
            "bytes": f"{totals.file_size_bytes:,}",
        }
    facts |= {
        "partitioned by": ", ".join(partitioning),
        "sorted by": ", ".join(sort_order),
        "comment": draft.tags(table.id).get("comment"),
        "in this transaction": _staged(draft, table),
    }
    columns = [
        (
            column.name,
            to_sql(column.data_type),
            column.nullable,
            None if column.default is None else column.default.value,
            tags.get(column.id, {}).get("comment"),
        )
        for column in table.columns[:MOST_ROWS]
    ]
    names = ("column", "type", "nullable", "default", "comment")
    listed = html_table(names, columns, len(table.columns))
    return html_title("Table", str(draft.name_of(table))) + html_record(facts) + listed


def _staged(draft: Draft, table: Table) -> str | None:
    """What a transaction has done to the rows so far."""
    for changed, rows in draft.staged_rows():
        if changed.id == table.id:
            added = sum(file.written.record_count for file in rows.added.values())
            added += 0 if rows.buffer is None else rows.buffer.num_rows
            return f"{added:,} rows added, {rows.removed:,} removed"
    return None


def transaction_html(draft: Draft | None, facts: dict[str, object], name: str) -> str:
    """What a transaction reads, and what it has changed so far; None if it has ended."""
    shown_facts = html_title("Transaction", f"on catalog {name}") + html_record(facts)
    if draft is None:
        return shown_facts
    changes, rows = draft.plan().changes, draft.staged_rows()
    staged = chain(
        ((describe(change),) for change in changes),
        ((f"rows of {draft.name_of(table)}: {_staged(draft, table)}",) for table, _ in rows),
    )
    return shown_facts + html_table(("staged",), staged, len(changes) + len(rows))
