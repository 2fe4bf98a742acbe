"""Where and how new files of a table are written."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import uuid4

from forklake.commit.draft import Draft
from forklake.commit.inlining import TableWrites, write_staged
from forklake.data.parquet.table_writer import TableWriter
from forklake.data.storage.storage import Storage
from forklake.errors import InvalidArgument
from forklake.model.entities import Table
from forklake.model.names import own_folder
from forklake.model.options import Options
from forklake.model.snapshots import Head
from forklake.model.table.write_target import WriteTarget

OPTION = "option:"
"""Settings of a table are tags that begin like this, so that they are versioned and forked like all else."""


def target_of(draft: Draft, table: Table, lake: Options) -> WriteTarget:
    """Where a draft writes files of a table, and how."""
    order = draft.sort_order(table)
    return WriteTarget(
        folder_of(draft.head, table),
        table.columns,
        options_of(draft, table, lake),
        draft.partitioning(table),
        () if order is None else order.keys,
    )


def writer_for(
    draft: Draft, table: Table, storage: Storage, lake: Options, written: list[str]
) -> TableWriter:
    """What writes files of a table for a draft; `written` collects their paths."""
    return TableWriter(storage, target_of(draft, table, lake), written, draft.prefix or uuid4().hex)


def options_of(draft: Draft, table: Table, lake: Options) -> Options:
    """The settings that apply to a table."""
    tags = draft.tags(table.id)
    own = {key.removeprefix(OPTION): value for key, value in tags.items() if key.startswith(OPTION)}
    return lake.with_settings(own) if own else lake


def without_options(tags: Mapping[str, str]) -> dict[str, str]:
    """The tags that people have set."""
    return {key: value for key, value in tags.items() if not key.startswith(OPTION)}


def check_tag(key: str) -> None:
    """Refuse a tag that would be read as an option: nobody would have checked its value."""
    if key.startswith(OPTION):
        raise InvalidArgument(f"tags do not begin with {OPTION!r}: set_option changes settings of a table")


def folder_of(head: Head, table: Table) -> str:
    """Where new files go: always below the catalog's own folder, also for a table that it inherited."""
    return own_folder(head.data_path, table.path)


def write_staged_rows(draft: Draft, storage: Storage, lake: Options) -> tuple[TableWrites, ...]:
    """Everything that a draft does to rows, ready to be committed."""
    written: list[TableWrites] = []
    for table, staged in draft.staged_rows():
        writer = writer_for(draft, table, storage, lake, draft.written)
        inherited = table.id >= 0 and not table.path.startswith(draft.head.data_path)
        written.append(
            write_staged(table, staged, writer, is_inherited=inherited and not draft.has_statistics(table))
        )
    return tuple(written)
