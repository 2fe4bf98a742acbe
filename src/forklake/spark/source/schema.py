"""What a DataFrame of a table looks like, and the snapshot that it shows."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyspark.sql import types as T

from forklake.errors import InvalidArgument
from forklake.model.ids import CatalogId, SnapshotId, TableId
from forklake.model.table.columns import Columns, find
from forklake.spark.source.open_table import opened
from forklake.spark.source.options import SourceOptions
from forklake.spark.types import shown_schema

ROW_ID = "row_id"
CHANGE = (
    T.StructField("change_type", T.StringType()),
    T.StructField("snapshot_id", T.LongType()),
    T.StructField(ROW_ID, T.LongType()),
)
"""What the feed says of each row, before its columns."""


@dataclass(frozen=True, slots=True)
class ReadSchema:
    """Columns as they were at a snapshot, and what is shown beside them."""

    catalog: CatalogId
    table: TableId
    at: SnapshotId
    columns: Columns
    row_ids: bool
    feed: bool

    @property
    def schema(self) -> T.StructType:
        """The schema of the DataFrame."""
        fields = shown_schema(self.columns).fields
        if self.feed:
            fields = [*CHANGE, *fields]
        elif self.row_ids:
            fields = [*fields, T.StructField(ROW_ID, T.LongType())]
        return T.StructType(fields)

    def cut(self, schema: T.StructType) -> ReadSchema:
        """What a schema of the user's own asks for: some of the columns, as they are."""
        known = {field.name: field.dataType for field in self.schema}
        if schema.names == self.schema.names and all(known[f.name] == f.dataType for f in schema):
            return self
        for field in schema:
            if known.get(field.name) != field.dataType:
                actual = f"{known[field.name].simpleString()}" if field.name in known else "not there"
                raise InvalidArgument(
                    f'the schema that was given has "{field.name}" as {field.dataType.simpleString()}, and '
                    f"in the table it is {actual}: leave the schema out, or cast the DataFrame"
                )
        beside = {field.name for field in CHANGE} if self.feed else {ROW_ID} if self.row_ids else set[str]()
        names = [name for name in schema.names if name not in beside]
        cut = replace(self, columns=tuple(find(self.columns, [name]) for name in names))
        if cut.schema.names != schema.names:
            raise InvalidArgument(
                f"the schema that was given has {', '.join(schema.names)}, and rows come as "
                f"{', '.join(self.schema.names)}: leave it out, and choose by the option columns"
            )
        return cut


def shape_of(options: SourceOptions) -> ReadSchema:
    """The shape of a table, now or at the timestamp that was asked for."""
    feed = options.changes == "feed"
    with opened(options) as catalog:
        scope = catalog if options.at is None else catalog.at(options.at)
        table = scope.table(options.table)
        scan = table.scan(options.where, options.columns, row_ids=options.row_ids and not feed)
        if scan.selection.inside:
            raise InvalidArgument(
                "the option columns names whole columns: choose the struct, and take its fields later"
            )
        return ReadSchema(catalog.id, table.id, scan.at, scan.selection.columns, scan.selection.row_id, feed)
