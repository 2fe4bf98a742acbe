"""COPY: rows of a query to a file, and rows of a file to a table."""

from __future__ import annotations

import os
import re
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from forklake.api.sql_result import SqlResult
from forklake.errors import InvalidSql
from forklake.sql import statements as st
from forklake.sql.constants import text_of
from forklake.sql.rows import insert_rows
from forklake.sql.statement import Running

_NAMING = re.compile(
    r"(?P<name>filename_pattern|file_extension)\"?\s*(?P<value>'[^']*'(?=\s*(?:,|\Z)))?", re.I
)
_READERS = {"parquet": "read_parquet", "csv": "read_csv", "json": "read_json"}


def copy_to(statement: st.CopyTo, running: Running) -> SqlResult | int:
    """COPY … TO a file, which the caller has to allow."""
    if running.options.read_only:
        raise InvalidSql("COPY … TO writes a file, and only reading is allowed here")
    path = running.access.check_written(text_of(statement.path, running), "COPY … TO")
    options = "" if statement.options is None else f" ({_checked(statement.options.text)})"
    with running.binder() as binder:
        (sql,) = binder.prepare(binder.read(statement.query.text))
        quoted = path.replace("'", "''")
        rows = running.rows_of(binder)
        with _nothing_half_written(path):
            rows.begin(f"COPY (\n{sql}\n) TO '{quoted}'{options}", binder.used(sql))
            found = rows.all()
    return SqlResult(found, rows_affected=found.column(0)[0].as_py() if found.num_columns else None)


@contextmanager
def _nothing_half_written(path: str) -> Generator[None]:
    """Remove what DuckDB leaves of a file that was not there before, if the block fails."""
    target = Path(path)
    # Over a file that is there it writes another one first, of this name.
    new = [] if "://" in path else [target, target.with_name(f"tmp_{target.name}")]
    new = [file for file in new if not os.path.lexists(file)]
    try:
        yield
    except BaseException:
        for file in new:
            if file.is_file():
                file.unlink(missing_ok=True)
        raise


def _checked(options: str) -> str:
    """Refuse options by which files would get names outside of their folder."""
    for found in _NAMING.finditer(options):
        if not re.fullmatch(r"'[^'/\\]*'", found["value"] or ""):
            raise InvalidSql(f"COPY: {found['name']} is a string in single quotes without a slash")
    return options


def copy_from(statement: st.CopyFrom, running: Running) -> SqlResult | int:
    """COPY a table FROM a file, as INSERT from the function that reads it."""
    path = text_of(statement.path, running).replace("'", "''")
    given = "" if statement.options is None else statement.options.text
    options = [part.strip() for part in given.split(",") if part.strip()]
    format, passed = None, list[str]()
    for option in options:
        word, _, value = option.partition(" ")
        if word.lower() == "format":
            format = value.strip().strip("'").lower()
        else:
            passed.append(f"{word.lower()} = {value.strip() or 'true'}")
    format = format or next((name for name in _READERS if f".{name}" in path.lower()), "csv")
    if format not in _READERS:
        raise InvalidSql(f"COPY reads parquet, csv and json, not {format}")
    arguments = ", ".join([f"'{path}'", *passed])
    query = st.Fragment(f"SELECT * FROM {_READERS[format]}({arguments})")
    return insert_rows(st.Insert(statement.table, query, statement.columns), running)
