"""Functions about options, and about what the commit of a transaction says of itself."""

from __future__ import annotations

from typing import Any

from forklake.api.scoped import scope_of
from forklake.api.transaction import Transaction
from forklake.commit.write_target import OPTION
from forklake.errors import InvalidArgument
from forklake.lazy.arrow import pa
from forklake.model.names import QualifiedName
from forklake.model.options import DESCRIPTIONS, NAMES, option_text
from forklake.sql.functions.answers import SUCCESS, Columns, answer, done
from forklake.sql.functions.function import Caller, Parameter, SqlFunction, Values
from forklake.sql.functions.names import table_of
from forklake.sql.functions.values import ANY, TEXT, or_null
from forklake.version import VERSION

_OPTIONS: Columns = {
    "option_name": "VARCHAR",
    "description": "VARCHAR",
    "value": "VARCHAR",
    "scope": "VARCHAR",
    "scope_entry": "VARCHAR",
}
_SETTINGS: Columns = {"catalog_type": "VARCHAR", "extension_version": "VARCHAR", "data_path": "VARCHAR"}


def _options(caller: Caller, values: Values) -> pa.Table:
    found = caller.lake.options()
    rows: list[tuple[object, ...]] = [
        (name, DESCRIPTIONS[name], option_text(getattr(found, name)), "GLOBAL", None)
        for name in sorted(NAMES)
    ]
    draft = scope_of(caller.work).read()
    schemas: dict[int, str] = {schema.id: schema.name for schema in draft.schemas()}
    tables: dict[int, str] = {
        table.id: str(QualifiedName(table.schema, table.name)) for table in draft.tables()
    }
    for (owner, key), value in sorted(draft.tags_that_begin(OPTION).items()):
        name = key.removeprefix(OPTION)
        scope, names = ("SCHEMA", schemas) if owner in schemas else ("TABLE", tables)
        if name in NAMES and owner in names:
            rows.append((name, DESCRIPTIONS[name], value, scope, names[owner]))
    return answer(_OPTIONS, rows)


def _settings(caller: Caller, values: Values) -> pa.Table:
    kind = caller.lake.url.partition(":")[0]
    return answer(
        _SETTINGS,
        [("postgres" if kind.startswith("postgres") else kind, VERSION, str(caller.lake.data_path))],
    )


def _set_option(caller: Caller, values: Values) -> pa.Table:
    name, value = values["name"].lower(), values["value"]
    if values.get("table_name") is not None:
        table_of(caller, values, "table_name").set_option(name, value)
    elif values.get("schema") is not None:
        caller.work.set_schema_option(values["schema"], name, value)
    else:
        caller.lake.set_option(name, value)
    return done()


def _set_commit_message(caller: Caller, values: Values) -> pa.Table:
    if not isinstance(caller.work, Transaction):
        raise InvalidArgument(
            "set_commit_message says what the open transaction commits, and none is open: BEGIN first"
        )
    info: dict[str, Any] = {"author": values["author"], "message": values["message"]}
    if values.get("extra_info") is not None:
        info["extra"] = values["extra_info"]
    caller.work.set_commit_info(**info)
    return done()


FUNCTIONS = (
    SqlFunction("options", "The options that are set, and for what.", _options, columns=_OPTIONS),
    SqlFunction("settings", "Where the lake is.", _settings, columns=_SETTINGS),
    SqlFunction(
        "set_option",
        "Sets an option of the lake, of a schema or of a table.",
        _set_option,
        (
            Parameter("name", TEXT, is_required=True),
            Parameter("value", or_null(ANY), is_required=True),
            Parameter("schema", or_null(TEXT)),
            Parameter("table_name", or_null(TEXT)),
        ),
        (("name", "value"),),
        columns=SUCCESS,
        is_change=True,
    ),
    SqlFunction(
        "set_commit_message",
        "Says who commits the open transaction, and why.",
        _set_commit_message,
        (
            Parameter("author", or_null(TEXT), is_required=True),
            Parameter("message", or_null(TEXT), is_required=True),
            Parameter("extra_info", or_null(TEXT)),
        ),
        (("author", "message"),),
        columns=SUCCESS,
        is_change=True,
    ),
)
