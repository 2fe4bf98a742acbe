"""Comparing catalogs with the model: through the public interface, and row by row in the views underneath."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import forklake
from forklake.model.names import quoted
from forklake.store.statements import schema_script
from tests.property.fork_model import STORED_AS, Column, Key, Object, State, Table

Rows = list[tuple[Any, ...]]
Marks = dict[tuple[str, int], Rows]
"""For every view and every catalog, the rows that it sees there: where each comes from, and its text."""


# ---- What stands in the store ---


class Fingerprints:
    """All that catalogs see through the views of the store, and where they stand."""

    def __init__(self, raw: Callable[..., Rows], backend: str) -> None:
        views = re.findall(r"CREATE VIEW (visible_\w+)", schema_script(backend))  # type: ignore[arg-type]
        assert len(views) > 20
        tables = ("ducklake_catalog_head", "ducklake_catalog", "ducklake_catalog_lineage")
        mark = {"sqlite": "?", "duckdb": "$1", "postgresql": "%(first)s"}[backend]
        parts = [_texts(raw, name, mark, backend) for name in (*views, *tables)]
        # One statement that is planned once: most of the time would go into planning otherwise.
        self._query = " UNION ALL ".join(parts)
        self._raw, self._backend = raw, backend
        if backend == "duckdb":
            raw(f"PREPARE fingerprints AS {self._query}")

    def take(self, first: int) -> Marks:
        """Of all catalogs from a number on."""
        match self._backend:
            case "duckdb":
                rows = self._raw(f"EXECUTE fingerprints({first})")
            case "sqlite":
                rows = self._raw(self._query, (first,) * self._query.count("?"))
            case _:
                rows = self._raw(self._query, {"first": first})
        marks: Marks = {}
        for view, catalog, *row in rows:
            marks.setdefault((view, catalog), []).append(tuple(row))
        return marks


def _texts(raw: Callable[..., Rows], name: str, mark: str, backend: str) -> str:
    """The rows of a view as texts, apart from the catalogs that see them and that they come from."""
    found = raw(
        f"SELECT name FROM pragma_table_info('{name}')"
        if backend == "sqlite"
        else f"SELECT DISTINCT column_name FROM information_schema.columns WHERE table_name = '{name}'"
    )
    columns = [column for (column,) in found if column not in ("catalog_id", "source_catalog_id")]
    assert columns
    listed = ", ".join(columns)
    text = f"json_array({listed})" if backend == "sqlite" else f"CAST(ROW({listed}) AS VARCHAR)"
    source = "source_catalog_id" if len(columns) + 2 == len(found) else "0"
    return f"SELECT '{name}', catalog_id, {source}, {text} FROM {name} WHERE catalog_id >= {mark}"


# ---- What the public interface shows ---


def check_structure(catalog: forklake.Catalog | forklake.Transaction, state: State) -> None:
    """Everything but rows. Takes over the ids that new things were given."""
    _same_names(state.schemas, {(item.name,): item for item in catalog.schemas()}, lambda item: (item.name,))
    named: dict[str, Any] = {"table": catalog.tables(), "view": catalog.views(), "macro": catalog.macros()}
    for kind, known in (("table", state.tables), ("view", state.views), ("macro", state.macros)):
        _same_names(known, {(item.schema, item.name): item for item in named[kind]}, state.name)
    for view in named["view"]:
        assert view.sql == _known(state.views, view.id).sql
    for macro in named["macro"]:
        (overload,) = macro.implementations
        assert overload.sql == _known(state.macros, macro.id).sql
        assert [parameter.name for parameter in overload.parameters] == ["x"]
    for _, item in state.things():
        name = state.name(item)
        assert catalog.tags(item.kind, name) == item.tags, f"tags of {item.kind} {name}"  # type: ignore[arg-type]
    for table in state.tables.values():
        check_definition(catalog.table(state.name(table)), table)


def check_definition(found: forklake.Table, table: Table) -> None:
    assert found.id == table.id
    columns = found.columns
    assert [column.name for column in columns] == [column.name for column in table.columns]
    for theirs, ours in zip(columns, table.columns, strict=True):
        if ours.id is None:
            assert theirs.id not in {column.id for column in table.columns}, "a column id was given again"
            ours.id = theirs.id
        default = None if ours.default is None else str(ours.default)
        assert (theirs.id, theirs.type) == (ours.id, STORED_AS[ours.type])
        assert (None if theirs.default is None else theirs.default.value) == default
        assert found.tags(column=[ours.name]) == ours.tags
    assert found.partitioning == table.shown(table.partitioning)
    assert found.sort_order == table.shown(table.sort_order)
    assert found.options().data_inlining_row_limit == (100 if table.limit is None else table.limit)


def check_rows(found: forklake.Table, table: Table) -> None:
    """The rows with their ids. Takes over those of new rows."""
    result = found.scan(row_ids=True).to_arrow()
    assert result.column_names == [*(column.name for column in table.columns), "row_id"]
    columns = [result.column(at).to_pylist() for at in range(result.num_columns)]
    shown = {row[-1]: row[:-1] for row in zip(*columns, strict=True)}
    assert len(shown) == result.num_rows, "a row id is there twice"
    assert found.count() == len(table.rows)
    fresh: dict[tuple[Any, ...], list[Any]] = {}
    for row in table.rows:
        values = table.read(row)
        if row.id is None:
            fresh.setdefault(values, []).append(row)
        else:
            assert shown.pop(row.id, None) == values, f"row {row.id} is not {values}"
    for number, values in shown.items():
        assert fresh.get(values), f"nobody expects row {number}: {values}"
        fresh[values].pop().id = number
    assert not any(fresh.values()), f"rows are lost: {fresh}"


def check_bounds(found: forklake.Table, table: Table, column: Column) -> None:
    """The smallest and the largest value of a column, and how many are missing."""
    known: list[Any] = [row.values[column.key] for row in table.rows]
    values = [value for value in known if value is not None]
    scan = found.scan()
    expected = (min(values), max(values)) if values else (None, None)
    assert (scan.min(column.name), scan.max(column.name)) == expected, f"bounds of {column.name}"
    assert found.scan(f"{quoted(column.name)} IS NULL").count() == len(known) - len(values)


def check_changes(found: forklake.Table, before: Table, after: Table, start: int, end: int) -> None:
    """What the feed tells of one commit is what happened to the rows."""
    feed = found.changes(start, end).to_arrow()
    columns = [feed.column(at).to_pylist() for at in range(feed.num_columns)]
    told: dict[int, dict[str, tuple[Any, ...]]] = {}
    for kind, snapshot, number, *values in zip(*columns, strict=True):
        assert start < snapshot <= end, f"the change of row {number} is from {snapshot}"
        assert kind not in told.setdefault(number, {}), f"{kind} of row {number} is told twice"
        told[number][kind] = tuple(values)
    comparable = [column.key for column in before.columns] == [column.key for column in after.columns]
    old = {row.id: before.read(row) for row in before.rows}
    new = {row.id: after.read(row) for row in after.rows}
    for number in old.keys() | new.keys() | told.keys():
        kinds = told.get(number or 0, {})
        if number not in old:
            assert kinds.keys() == {"insert"}, f"row {number}"
        elif number not in new:
            assert kinds.keys() == {"delete"}, f"row {number}"
        else:
            assert kinds.keys() in (set(), {"update_preimage", "update_postimage"}), f"row {number}"
            assert kinds or not comparable or old[number] == new[number], f"a change of {number} is not told"
        for kind, values in kinds.items():
            if kind in ("insert", "update_postimage"):
                assert values == new[number]
            elif comparable:
                assert values == old[number]


def _same_names(known: Mapping[Key, Object], found: Mapping[Any, Any], name: Callable[[Object], Any]) -> None:
    expected = {name(item): item for item in known.values()}
    assert found.keys() == expected.keys()
    for place, item in expected.items():
        if item.id is None:
            assert found[place].id >= 0
            item.id = found[place].id
        assert found[place].id == item.id, f"{item.kind} {place} is another one"


def _known(things: Mapping[Key, Object], number: int) -> Object:
    return next(item for item in things.values() if item.id == number)
