"""Where and how new files of a table are written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from uuid import uuid4

import pyarrow as pa

from forklake.commit.draft import Draft
from forklake.commit.inlining import TableWrites, settle
from forklake.data.parquet.writer import WriteOptions, write_files
from forklake.data.storage.storage import Storage
from forklake.errors import InvalidArgument
from forklake.model.entities import Table
from forklake.model.names import is_absolute, own_folder
from forklake.model.options import Options
from forklake.model.snapshots import Head
from forklake.model.table.files import WrittenFile, delete_file_name
from forklake.model.table.layout import Partitioning, SortKey

OPTION = "option:"
"""Settings of a table are tags that begin like this, so that they are versioned and forked like all else."""


@dataclass(frozen=True, slots=True)
class TableOutput:
    """Writes files of one table into its folder, and remembers them until they are committed."""

    storage: Storage
    table: Table
    folder: str
    options: Options
    partitioning: Partitioning | None
    sort: tuple[SortKey, ...]
    written: list[str]
    uuid: str = field(default_factory=lambda: uuid4().hex)
    numbers: count[int] = field(default_factory=count)

    def write(self, rows: pa.RecordBatchReader | pa.Table) -> list[WrittenFile]:
        """Write rows into as many files as they need."""
        reader = rows.to_reader() if isinstance(rows, pa.Table) else rows
        codec = self.options.parquet_compression
        files = write_files(
            reader,
            columns=self.table.columns,
            folder=self.folder,
            storage=self.storage,
            options=WriteOptions(
                self.uuid,
                target_file_size=self.options.target_file_size,
                row_group_rows=self.options.parquet_row_group_size,
                compression=codec,
                compression_level=self.options.parquet_compression_level if codec == "zstd" else None,
                numbers=self.numbers,
            ),
            partitioning=self.partitioning,
            sort=self.sort,
            relative=not is_absolute(self.folder),
        )
        self.written.extend(file.path for file in files)
        return files

    def new_delete_path(self) -> str:
        """The path of one more delete file."""
        path = self.folder + delete_file_name(f"{self.uuid}-{next(self.numbers)}")
        self.written.append(path)
        return path


def output_for(
    draft: Draft, table: Table, storage: Storage, lake: Options, written: list[str]
) -> TableOutput:
    """How a draft writes files of a table; `written` collects their paths."""
    order = draft.sort_order(table)
    return TableOutput(
        storage,
        table,
        folder_of(draft.head, table),
        options_of(draft, table, lake),
        draft.partitioning(table),
        () if order is None else order.keys,
        written,
        draft.prefix or uuid4().hex,
    )


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


def settle_rows(draft: Draft, storage: Storage, lake: Options) -> tuple[TableWrites, ...]:
    """Everything that a draft does to rows, ready to be committed."""
    settled: list[TableWrites] = []
    for table, staged in draft.staged_rows():
        output = output_for(draft, table, storage, lake, draft.written)
        inherited = table.id >= 0 and not table.path.startswith(draft.head.data_path)
        settled.append(
            settle(
                table,
                staged,
                storage=storage,
                limit=output.options.data_inlining_row_limit,
                write=output.write,
                new_delete_path=output.new_delete_path,
                is_inherited=inherited and not draft.has_figures(table),
            )
        )
    return tuple(settled)
