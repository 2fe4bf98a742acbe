"""Where and how new files of a table are written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from uuid import uuid4

from forklake.commit.draft import Draft
from forklake.commit.inlining import TableWrites, write_staged
from forklake.commit.sort_order import macros_for
from forklake.data.parquet.table_writer import TableWriter
from forklake.data.storage.storage import Storage
from forklake.errors import InvalidArgument
from forklake.model.entities import Schema, Table
from forklake.model.names import own_folder
from forklake.model.options import NAMES, Options, option_text, parse_table_option
from forklake.model.snapshots import Head
from forklake.model.table.write_target import WriteTarget

OPTION = "option:"
"""Settings of a schema or a table are tags that begin like this: versioned and forked like all else."""


def target_of(draft: Draft, table: Table, lake: Options) -> WriteTarget:
    """Where a draft writes files of a table, and how."""
    order = draft.sort_order(table)
    keys = () if order is None else order.keys
    return WriteTarget(
        folder_of(draft.head, table),
        table.columns,
        options_of(draft, table, lake),
        draft.partitioning(table),
        keys,
        macros_for(draft, table, keys),
    )


def insert_target_of(draft: Draft, table: Table, lake: Options) -> WriteTarget:
    """The same for rows that are new: they may be left in the order in which they come."""
    target = target_of(draft, table, lake)
    return target if target.options.sort_on_insert else replace(target, sort=(), macros=())


def writer_for(
    draft: Draft, table: Table, storage: Storage, lake: Options, written: list[str]
) -> TableWriter:
    """What writes new rows of a table into files for a draft; `written` collects their paths."""
    return _writer(draft, insert_target_of(draft, table, lake), storage, written)


def mover_for(draft: Draft, table: Table, storage: Storage, lake: Options, written: list[str]) -> TableWriter:
    """What writes rows that the table has already: they get its order in any case."""
    return _writer(draft, target_of(draft, table, lake), storage, written)


def _writer(draft: Draft, target: WriteTarget, storage: Storage, written: list[str]) -> TableWriter:
    return TableWriter(storage, target, written, draft.prefix or uuid4().hex)


def options_of(draft: Draft, table: Table, lake: Options) -> Options:
    """The settings that apply to a table: its own, then those of its schema, then those of the lake."""
    draft.state.prepare_tags(number for number in (table.schema_id, table.id) if number >= 0)
    own = _settings(draft, table.schema_id) | _settings(draft, table.id)
    return lake.with_settings(own) if own else lake


def options_of_schema(draft: Draft, schema: Schema, lake: Options) -> Options:
    """The settings that apply to tables of a schema that have none of their own."""
    return lake.with_settings(_settings(draft, schema.id))


def set_option(draft: Draft, owner: Schema | Table, name: str, value: object) -> None:
    """Stage a setting of a schema or a table; None goes back to what is set above it."""
    text = None if value is None else option_text(parse_table_option(name, value))
    if value is None and name not in NAMES:
        parse_table_option(name, value)
    draft.set_tag(owner, None, f"{OPTION}{name}", text)


def _settings(draft: Draft, object_id: int) -> dict[str, str]:
    tags = draft.tags(object_id)
    return {key.removeprefix(OPTION): value for key, value in tags.items() if key.startswith(OPTION)}


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
