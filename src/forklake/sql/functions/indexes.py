"""Functions about indexes."""

from __future__ import annotations

import json

from forklake.api.scoped import scope_of
from forklake.commit.create_index import index_info
from forklake.lazy.arrow import pa
from forklake.sql.functions.answers import Columns, answer
from forklake.sql.functions.function import Caller, Parameter, SqlFunction, Values
from forklake.sql.functions.names import name_of_table
from forklake.sql.functions.values import TEXT

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


FUNCTIONS = (
    SqlFunction(
        "indexes",
        "The indexes of a table, or of all tables.",
        _indexes,
        (Parameter("table", TEXT), Parameter("schema", TEXT)),
        (("table",),),
        columns=_INDEXES,
    ),
)
