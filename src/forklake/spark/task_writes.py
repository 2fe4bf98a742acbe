"""What a worker has in its writer: where it writes rows, and where it says which rows go."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from forklake.data.input.arrow_streams import stream_of
from forklake.data.storage.paths import S3Options
from forklake.distributed import write_part
from forklake.distributed.bases import base_file
from forklake.engine.dml import Found
from forklake.engine.local import Engine
from forklake.lazy.arrow import pa
from forklake.model.distributed import DistributedSnapshot
from forklake.model.manifest import Manifest, PositionsPart
from forklake.model.table.columns import Columns
from forklake.spark.jobs import engine_of

if TYPE_CHECKING:
    from forklake.spark.commit import Writing


@dataclass(frozen=True, slots=True)
class TaskWriter:
    """One change of one table, as far as a worker has to know it."""

    ds: DistributedSnapshot
    inside: bool
    s3: S3Options

    @classmethod
    def of(cls, writing: Writing) -> TaskWriter:
        """Those of all who work on a change."""
        return cls(writing.ds, writing.inside, writing.context.storage.s3.options)

    @property
    def engine(self) -> Engine:
        """The engine of this worker."""
        return engine_of(self.ds.data_path, self.s3)

    @property
    def columns(self) -> Columns:
        """Those of the table."""
        return self.ds.tables[0].columns

    def write(
        self, rows: Iterator[pa.RecordBatch], part: str | int, *, unless_there: bool = False
    ) -> Manifest:
        """Rows as files; those that carry ids take the place of others."""
        data = stream_of(rows)
        return write_part(
            self.ds,
            self.ds.tables[0].full_name,
            data,
            part=part,
            unless_there=unless_there and data is not None,
            storage_options=self.s3.given(),
        )

    def delete(self, found: Found, part: str | int) -> Manifest:
        """Rows that go, by their positions."""
        table = self.ds.tables[0]
        gone = {} if self.inside else {file: positions for file, (_, positions) in found.items()}
        manifest = write_part(
            self.ds,
            table.full_name,
            part=part,
            delete=gone,
            files=[base_file(place) for place, _ in found.values()],
            storage_options=self.s3.given(),
        )
        if not self.inside:
            return manifest
        # A transaction has to see which rows are gone, and has files of its own among those that lose some.
        listed = (
            PositionsPart(table.id, file, tuple(positions.to_pylist()))
            for file, (_, positions) in found.items()
        )
        return replace(manifest, entries=tuple(listed))
