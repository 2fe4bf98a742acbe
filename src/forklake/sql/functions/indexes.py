"""Functions about indexes."""

from __future__ import annotations

import json

from forklake.api.scoped import scope_of
from forklake.commit.create_index import index_info
from forklake.errors import InvalidArgument
from forklake.lazy.arrow import pa
from forklake.sql.functions.answers import Columns, answer
from forklake.sql.functions.function import Caller, Parameter, SqlFunction, Values
from forklake.sql.functions.names import name_of_table, table_of
from forklake.sql.functions.values import ANY, TEXT, TEXTS, TIME, WHOLE, at_least

_INDEXES: Columns = {
    "schema_name": "VARCHAR",
    "table_name": "VARCHAR",
    "index_name": "VARCHAR",
    "kind": "VARCHAR",
    "columns": "VARCHAR[]",
    "include": "VARCHAR[]",
    "maintain": "VARCHAR",
    "params": "VARCHAR",
}


def _indexes(caller: Caller, values: Values) -> pa.Table:
    draft = scope_of(caller.work).read()
    if "table" in values:
        found = draft.indexes(draft.table_named(name_of_table(caller, values)))
    else:
        found = draft.all_indexes()
    tables = {number: draft.table(number) for number in dict.fromkeys(index.table_id for index in found)}
    rows = [index_info(draft, tables[index.table_id], index) for index in found]
    return answer(
        _INDEXES,
        [
            (
                index.schema,
                index.table,
                index.name,
                index.kind,
                list(index.columns),
                list(index.include),
                index.maintain,
                json.dumps(index.params, ensure_ascii=False),
            )
            for index in sorted(rows, key=lambda index: (index.schema, index.table, index.id))
        ],
    )


def _search(caller: Caller, values: Values) -> pa.Table:
    if "snapshot_version" in values and "snapshot_time" in values:
        raise InvalidArgument("search takes snapshot_version or snapshot_time, not both")
    found = table_of(caller, values).search(
        values["index"],
        values["query"],
        k=values.get("k", 10),
        where=values.get("where"),
        columns=values.get("columns"),
        at=values.get("snapshot_version", values.get("snapshot_time")),
    )
    return found.to_arrow()


FUNCTIONS = (
    SqlFunction(
        "search",
        "The best rows of a table for a query, by an index that ranks rows, best first.",
        _search,
        (
            Parameter("table", TEXT, is_required=True),
            Parameter("index", TEXT, is_required=True),
            Parameter("query", ANY, is_required=True),
            Parameter("k", at_least(1)),
            Parameter("where", TEXT),
            Parameter("columns", TEXTS),
            Parameter("schema", TEXT),
            Parameter("snapshot_version", WHOLE),
            Parameter("snapshot_time", TIME),
        ),
        (("table", "index", "query"),),
    ),
    SqlFunction(
        "indexes",
        "The indexes of a table, or of all tables.",
        _indexes,
        (Parameter("table", TEXT), Parameter("schema", TEXT)),
        (("table",),),
        columns=_INDEXES,
    ),
)
