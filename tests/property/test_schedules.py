"""Transactions that overlap in any order end up as if they had run one after the other."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import forklake
from forklake.api.scoped import scope_of
from forklake.errors import AlreadyExists, CommitConflict, InvalidSchemaChange, NotFound
from tests.property.model import Model, Refused

SCHEMAS = st.sampled_from(["main", "a", "b"])
NAMES = st.sampled_from(["x", "y"])
COLUMNS = st.sampled_from(["id", "p", "q"])
TEXTS = st.sampled_from(["one", "two", None])

OPERATIONS = {
    "create_schema": (SCHEMAS,),
    "rename_schema": (SCHEMAS, SCHEMAS),
    "drop_schema": (SCHEMAS, st.booleans()),
    "create_table": (SCHEMAS, NAMES),
    "rename_table": (SCHEMAS, NAMES, SCHEMAS, NAMES),
    "drop_table": (SCHEMAS, NAMES),
    "add_column": (SCHEMAS, NAMES, COLUMNS),
    "drop_column": (SCHEMAS, NAMES, COLUMNS),
    "rename_column": (SCHEMAS, NAMES, COLUMNS, COLUMNS),
    "widen": (SCHEMAS, NAMES, COLUMNS),
    "set_nullable": (SCHEMAS, NAMES, COLUMNS, st.booleans()),
    "comment": (SCHEMAS, NAMES, TEXTS),
    "create_view": (SCHEMAS, NAMES, st.sampled_from(["SELECT 1", "SELECT 2"])),
    "replace_view": (SCHEMAS, NAMES, st.sampled_from(["SELECT 1", "SELECT 2"])),
    "drop_view": (SCHEMAS, NAMES),
    "create_macro": (SCHEMAS, NAMES),
    "drop_macro": (SCHEMAS, NAMES),
}
MEETINGS = [
    ["drop_schema", "create_table"],
    ["drop_schema", "rename_table", "create_macro"],
    ["drop_table", "comment"],
    ["comment"],
    ["create_table", "rename_table", "create_view"],
    ["add_column", "set_nullable", "rename_table"],
]
"""Verbs that are worth meeting more often than chance would have it."""


@st.composite
def schedules(draw: st.DrawFn) -> list[tuple[int, tuple[Any, ...]]]:
    """Steps of up to three transactions. Each example keeps to a few verbs, so that they meet often."""
    any_few = st.lists(st.sampled_from(sorted(OPERATIONS)), min_size=2, max_size=4)
    chosen = draw(st.one_of(any_few, st.sampled_from(MEETINGS)))
    verbs = [st.tuples(st.just(verb), *OPERATIONS[verb]) for verb in chosen]
    ends = st.sampled_from([("commit",), ("commit",), ("commit",), ("rollback",)])
    steps = st.one_of(*verbs, *verbs, *verbs, ends)
    return draw(st.lists(st.tuples(st.integers(0, 2), steps), min_size=8, max_size=30))


START = [
    ("create_schema", "a"),
    ("create_table", "main", "x"),
    ("create_table", "a", "x"),
    ("create_view", "a", "y", "SELECT 1"),
]


class Open:
    """A transaction in progress: the real one, the model it began with and the model as it sees it now."""

    def __init__(self, catalog: forklake.Catalog, model: Model) -> None:
        self.transaction = catalog.transaction()
        self.base = model.copy()
        self.model = model.copy()

    def run(self, operation: tuple[Any, ...]) -> None:
        """Do it to both; they must agree on whether it can be done."""
        trial = self.model.copy()
        expected: Exception | None = None
        try:
            call = self._on_model(trial, operation)
        except Refused as refusal:
            expected, call = refusal, None
        try:
            created = self._on_real(operation)
        except (NotFound, AlreadyExists, InvalidSchemaChange) as refusal:
            assert expected is not None, f"{operation} was refused: {refusal}"
            return
        assert expected is None, f"{operation} should have been refused: {expected}"
        name, arguments = call
        if created is not None:
            arguments = (created, *arguments[1:])
        getattr(self.model, name)(*arguments)

    def _on_model(self, model: Model, operation: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
        """The operation on a model, with names replaced by what they mean there; run once as a trial."""
        verb, *args = operation
        match verb:
            case "create_schema":
                call = (verb, ("new", args[0]))
            case "rename_schema":
                call = (verb, (model.schema(args[0]), args[1]))
            case "drop_schema":
                call = (verb, (model.schema(args[0]), args[1]))
            case "create_table":
                call = (verb, ("new", model.schema(args[0]), args[1]))
            case "rename_table":
                call = (verb, (model.table(args[0], args[1]), model.schema(args[2]), args[3]))
            case "create_view":
                call = (verb, ("new", model.schema(args[0]), args[1], args[2]))
            case "replace_view" | "drop_view":
                call = (verb, (model.view(args[0], args[1]), *args[2:]))
            case "create_macro":
                call = (verb, (model.schema(args[0]), args[1], "a + 1"))
            case "drop_macro":
                call = (verb, (model.schema(args[0]), args[1]))
            case _:
                call = (verb, (model.table(args[0], args[1]), *args[2:]))
        getattr(model, call[0])(*call[1])
        return call

    def _on_real(self, operation: tuple[Any, ...]) -> str | None:
        """The operation on the real transaction; returns the uuid of what it created."""
        tx = self.transaction
        verb, *args = operation
        match verb:
            case "create_schema":
                tx.create_schema(args[0])
                return next(schema.uuid for schema in tx.schemas() if schema.name == args[0])
            case "rename_schema":
                tx.rename_schema(*args)
            case "drop_schema":
                tx.drop_schema(args[0], cascade=args[1])
            case "create_table":
                return tx.create_table((args[0], args[1]), "id BIGINT NOT NULL").uuid
            case "rename_table":
                tx.table((args[0], args[1])).rename((args[2], args[3]))
            case "drop_table":
                tx.drop_table((args[0], args[1]))
            case "add_column":
                tx.table((args[0], args[1])).add_column(args[2], "integer")
            case "widen":
                tx.table((args[0], args[1])).alter_type(args[2], "bigint")
            case "create_view":
                tx.create_view((args[0], args[1]), args[2])
                return scope_of(tx).read().view_named(forklake.QualifiedName(args[0], args[1])).uuid
            case "replace_view":
                scope_of(tx).read().view_named(forklake.QualifiedName(args[0], args[1]))
                tx.create_view((args[0], args[1]), args[2], or_replace=True)
            case "drop_view":
                tx.drop_view((args[0], args[1]))
            case "create_macro":
                tx.create_macro((args[0], args[1]), ["a"], "a + 1")
            case "drop_macro":
                tx.drop_macro((args[0], args[1]))
            case _:
                getattr(tx.table((args[0], args[1])), verb)(*args[2:])
        return None


def seen(scope: forklake.Catalog | forklake.Transaction) -> dict[str, Any]:
    """Everything that a catalog shows, in the shape of the model."""
    draft = scope_of(scope).read()
    owners = {schema.id: schema.uuid for schema in draft.schemas()}
    tables = {}
    for info in scope.tables():
        table = draft.table(info.id)
        assert (info.name, info.uuid) == (table.name, table.uuid)
        tables[table.uuid] = {
            "schema": owners[table.schema_id],
            "name": table.name,
            "columns": {column.name: (column.type, column.nullable) for column in table.columns},
            "ids": {column.name: column.id for column in table.columns},
            "comment": draft.tags(table.id).get("comment"),
        }
    return {
        "schemas": {schema.uuid: schema.name for schema in draft.schemas()},
        "tables": tables,
        "views": {
            v.uuid: {"schema": owners[v.schema_id], "name": v.name, "sql": v.sql} for v in draft.views()
        },
        "macros": {(owners[m.schema_id], m.name): m.implementations[0].sql for m in draft.macros()},
    }


def left_behind(raw, catalog: forklake.Catalog) -> set[tuple[str, int]]:
    """Live rows that belong to an object which is gone."""
    draft = scope_of(catalog).read()
    there = {item.id for item in (*draft.schemas(), *draft.views(), *draft.macros(), *catalog.tables())}
    live = "end_snapshot IS NULL AND catalog_id ="
    found = raw(f"SELECT 'column', table_id FROM ducklake_column WHERE {live} {catalog.id}")
    found += raw(f"SELECT 'tag', object_id FROM ducklake_tag WHERE {live} {catalog.id}")
    return {(kind, owner) for kind, owner in found if owner not in there}


def expected(model: Model) -> dict[str, Any]:
    state = asdict(model)
    for table in state["tables"].values():
        del table["used"], table["committed"]
    return state


@pytest.fixture
def fresh(lake: forklake.Lake):
    """Makes one empty catalog after another, since hypothesis runs many examples in one test."""
    numbers = iter(range(10**9))
    return lambda: lake.create_catalog(f"catalog {next(numbers)}")


EXAMPLES = {"sqlite": 150, "postgresql": 50, "duckdb": 8}
"""How many a run makes; a soak makes two hundred times as many."""


def test_overlapping_transactions_equal_a_serial_order(fresh, raw, lake_url: str) -> None:
    backend = lake_url.partition(":")[0]

    @settings(
        max_examples=EXAMPLES[backend] * (200 if settings.default.max_examples > 1000 else 1),
        suppress_health_check=list(HealthCheck),
    )
    @given(schedules())
    def run(steps: list[tuple[int, tuple[Any, ...]]]) -> None:
        catalog = fresh()
        model = Model()
        model.create_schema(catalog.schemas()[0].uuid, "main")
        history: dict[int, dict[str, Any]] = {catalog.snapshot: expected(model)}
        slots: dict[int, Open] = {}

        def commit(slot: int) -> None:
            current = slots.pop(slot)
            before = catalog.snapshot
            try:
                snapshot = current.transaction.commit()
            except CommitConflict as conflict:
                note(f"conflict: {conflict}")
                assert conflict.conflicts
                assert current.transaction.base < before, "nobody had committed in between"
                assert catalog.snapshot == before
                assert seen(catalog) == expected(model)
                return
            model.follow(current.base, current.model)
            for table in model.tables.values():
                # An id that a transaction gave out and took back was never seen, and is free again.
                table.used = max(table.committed, *table.ids.values())
                table.committed = table.used
            if snapshot is None:
                assert catalog.snapshot == before
            else:
                assert catalog.snapshot == snapshot > before
                history[snapshot] = expected(model)
            assert seen(catalog) == expected(model)

        for slot, operation in [(0, step) for step in START] + [(0, ("commit",))] + steps:
            if slot not in slots:
                slots[slot] = Open(catalog, model)
            current = slots[slot]
            if operation == ("commit",):
                commit(slot)
            elif operation == ("rollback",):
                slots.pop(slot).transaction.rollback()
                assert seen(catalog) == expected(model)
            else:
                current.run(operation)
                assert seen(current.transaction) == expected(current.model)
        for slot in sorted(slots):
            commit(slot)
        for snapshot, state in history.items():
            assert seen(catalog.at(snapshot)) == state
        assert not left_behind(raw, catalog)

    run()
