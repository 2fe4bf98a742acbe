"""The tables that arguments of functions name."""

from __future__ import annotations

from forklake.api.table import Table
from forklake.model.names import QualifiedName
from forklake.sql.functions.function import Caller, Values


def name_of_table(caller: Caller, values: Values, parameter: str = "table") -> QualifiedName:
    """The name of the table that is asked about: with a schema beside it, exactly what it says."""
    schema = values.get("schema")
    if schema is not None:
        return QualifiedName.parse((schema, values[parameter]))
    return QualifiedName.parse(values[parameter], schema=caller.schema)


def table_of(caller: Caller, values: Values, parameter: str = "table") -> Table:
    """The table that is asked about, as the session sees it."""
    return caller.work.table(name_of_table(caller, values, parameter))
