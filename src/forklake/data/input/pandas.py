"""pandas DataFrames: their index is no column, and their cells may hold what Arrow would guess wrongly."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from forklake.data.input.python_values import array_of
from forklake.errors import InvalidData
from forklake.lazy.arrow import pa
from forklake.model.entities import Column

_UNNAMED = re.compile(r"__index_level_\d+__")


def is_dataframe(data: object) -> bool:
    """Whether something is a DataFrame of pandas, which need not be installed."""
    return any(
        kind.__name__ == "DataFrame" and kind.__module__.partition(".")[0] == "pandas"
        for kind in type(data).__mro__
    )


def table_of(df: Any, columns: Iterable[Column]) -> pa.Table:
    """A DataFrame as an Arrow table; cells of maps are read one by one, as Arrow takes dicts for structs."""
    by_name = {column.name.lower(): column for column in columns}
    read: dict[str, pa.Array] = {}
    for name in dict.fromkeys(df.columns):
        column = by_name.get(str(name).lower())
        if column is not None and df.columns.is_unique and _holds_map(column) and df[name].dtype == "O":
            read[name] = array_of(map(_cell, df[name]), column)
    try:
        # Arrow leaves a range out, also one that has a name.
        named = any(name is not None for name in df.index.names)
        plain = df.drop(columns=list(read)) if read else df
        rest = pa.Table.from_pandas(plain, preserve_index=True if named else None)
    except (pa.ArrowException, TypeError, ValueError) as problem:
        raise InvalidData(f"no rows can be read from a DataFrame: {problem}") from problem
    arrays = {**dict(zip(rest.column_names, rest.columns, strict=True)), **read}
    return pa.table(arrays, metadata=rest.schema.metadata) if read else rest


def _cell(value: object) -> object:
    # What pandas puts where nothing is.
    return None if isinstance(value, float) and value != value else value


def _holds_map(column: Column) -> bool:
    return any(part.type == "map" for part in column.walk())


def unnamed_levels(schema: pa.Schema) -> frozenset[str]:
    """The columns of a schema that are an index of pandas without a name."""
    return frozenset(name for name in schema.names if _UNNAMED.fullmatch(name))


def unnamed_index(schema: pa.Schema, columns: Iterable[Column]) -> frozenset[str]:
    """The columns of a schema that are an index without a name; one with a name has to be a column."""
    described = (schema.metadata or {}).get(b"pandas")
    if described is None:
        return frozenset()
    index = [name for name in json.loads(described).get("index_columns", ()) if isinstance(name, str)]
    known = {column.name.lower() for column in columns}
    for name in index:
        if not _UNNAMED.fullmatch(name) and name.lower() not in known:
            raise InvalidData(
                f'the index of the DataFrame is named "{name}", and no column is: '
                "leave it out with reset_index(drop=True), or make it a column with reset_index()"
            )
    return frozenset(name for name in index if _UNNAMED.fullmatch(name) and name.lower() not in known)
