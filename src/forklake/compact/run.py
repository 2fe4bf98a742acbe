"""Running a rewrite on the local engine: rows stream from the old files into new ones."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from forklake.compact.inputs import rewrite_scan
from forklake.compact.plan import Rewrite
from forklake.data.parquet.schema import arrow_schema
from forklake.data.parquet.table_writer import TableWriter
from forklake.engine.local import Engine
from forklake.engine.rewrite_rows import moved_rows
from forklake.errors import StorageError
from forklake.lazy.arrow import pa
from forklake.model.json_values import from_text, to_text
from forklake.model.names import is_absolute
from forklake.model.table.files import WrittenFile


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A rewrite that was run: its new files are in storage, and not committed yet."""

    rewrite: Rewrite
    files: tuple[WrittenFile, ...] = field(default=())

    @property
    def paths(self) -> list[str]:
        """The new files."""
        return [file.path for file in self.files]

    def to_json(self) -> str:
        """The result as JSON, for the process that commits it."""
        return to_text(self)

    @classmethod
    def from_json(cls, text: str | bytes) -> Rewritten:
        """Parse the JSON that `to_json` returned."""
        return from_text(cls, text)


def run(rewrite: Rewrite, engine: Engine, written: list[str] | None = None) -> Rewritten:
    """Write the rows of a rewrite into new files; `written` collects their paths."""
    if not rewrite.live_rows:
        return Rewritten(rewrite)
    target = rewrite.target
    plan = rewrite_scan(rewrite)
    rows = moved_rows(engine, plan, target.write.sort, target.write.macros)
    schema = arrow_schema(target.table.columns, row_ids=True, snapshot_ids=True)
    options = target.write.options
    # What was to become one file does, even if it is somewhat larger than its parts were.
    larger = replace(options, target_file_size=options.target_file_size * 3 // 2 + 1, per_thread_output=False)
    # Rows come in order.
    ordered = replace(target.write, options=larger, sort=(), macros=())
    writer = TableWriter(engine.storage, ordered, [] if written is None else written)
    files = writer.write(pa.RecordBatchReader.from_batches(schema, rows))
    found = sum(file.record_count for file in files)
    if found != rewrite.live_rows:
        engine.storage.delete([file.path for file in files], not is_absolute(target.write.folder))
        raise StorageError(
            f"{found} rows were read where {rewrite.live_rows} should be: files are not what was committed"
        )
    return Rewritten(rewrite, tuple(files))
