"""Statements that define something: schemas, tables, views, macros, comments, and forks of catalogs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import singledispatch
from typing import Any

from forklake.api.sql_result import SqlResult, counted
from forklake.api.staged_rows import take_rows
from forklake.api.table import Table as TableHandle
from forklake.commit.draft import Draft
from forklake.commit.sort_order import sort_by
from forklake.commit.write_target import folder_of, set_option
from forklake.engine.canonical_sql import canonical_expression, canonical_query
from forklake.errors import (
    ColumnNotFound,
    InvalidArgument,
    InvalidSchemaChange,
    InvalidSql,
    MacroNotFound,
    SchemaNotFound,
    TableExists,
    TableNotFound,
    ViewNotFound,
)
from forklake.model.entities import Column, MacroImpl, MacroParameter
from forklake.model.names import QualifiedName, quoted
from forklake.model.sql.ddl import ColumnSpec, columns_of
from forklake.model.sql.macro_sql import parameter_type
from forklake.model.table.columns import Columns, build, find
from forklake.model.table.partition_and_sort import partition_fields
from forklake.sql import statements as st
from forklake.sql.ages import age
from forklake.sql.constants import value_of
from forklake.sql.indexes import create_index, drop_index
from forklake.sql.rows import computed_query, types_of
from forklake.sql.statement import Running

_Comments = tuple[str | None, ...]
"""Of columns, in their order."""


@singledispatch
def run_definition(statement: Any, running: Running) -> SqlResult:
    """Run a statement that defines something."""
    raise InvalidSql(f"{type(statement).__name__} cannot be run here")


# ---- Schemas, views, macros ---


@run_definition.register
def _(statement: st.CreateSchema, running: Running) -> SqlResult:
    running.work.create_schema(_bare(statement.name, running), if_not_exists=statement.if_not_exists)
    return SqlResult()


@run_definition.register
def _(statement: st.DropObject, running: Running) -> SqlResult:
    work, quiet = running.work, statement.if_exists
    match statement.kind:
        case "schema":
            work.drop_schema(_bare(statement.name, running), cascade=statement.cascade, if_exists=quiet)
        case "table":
            name = running.target(statement.name)
            draft = running.scope.read()
            if _has_schema(draft, name) and draft.find_view(name) is not None:
                raise TableNotFound(f'"{name}" is a view: use DROP VIEW')
            _quietly(lambda: work.drop_table(name, if_exists=quiet), quiet, SchemaNotFound)
        case "view":
            name = running.target(statement.name)
            draft = running.scope.read()
            if _has_schema(draft, name) and draft.find_table(name) is not None:
                raise ViewNotFound(f'"{name}" is a table: use DROP TABLE')
            _quietly(lambda: work.drop_view(name, if_exists=quiet), quiet, SchemaNotFound)
        case "macro" | "macro table":
            _drop_macro(statement, running)
        case "index":
            drop_index(statement, running)
    return SqlResult()


def _drop_macro(statement: st.DropObject, running: Running) -> None:
    name, draft = running.target(statement.name), running.scope.read()
    is_table = statement.kind == "macro table"
    found = draft.find_macro(name, "table" if is_table else "scalar")
    if found is None and draft.find_macro(name) is not None and not statement.if_exists:
        other = "DROP MACRO" if is_table else "DROP MACRO TABLE"
        raise MacroNotFound(f'macro "{name}" is of the other kind: use {other}')
    running.work.drop_macro(name, table=is_table, if_exists=statement.if_exists)


@run_definition.register
def _(statement: st.CreateView, running: Running) -> SqlResult:
    name = running.target(statement.name)
    text = statement.query.text
    if statement.if_not_exists and _has(running.scope.read(), name):
        return SqlResult()
    # What it reads has to be there, and go on being there; and it must not read itself.
    stored = replace(running, options=replace(running.options, data={}))
    with stored.binder() as binder:
        binder.is_stored = True
        (sql,) = binder.prepare(binder.read(text))
        old = running.scope.read().find_view(name) if statement.or_replace else None
        if old is not None and binder.reads(old):
            raise InvalidSql(f'the view "{name}" would read itself')
        types_of(binder, running, sql)
        text = canonical_query(binder.portable(text, name.schema))
    running.work.create_view(name, text, columns=statement.columns, or_replace=statement.or_replace)
    return SqlResult()


@run_definition.register
def _(statement: st.CreateMacro, running: Running) -> SqlResult:
    name = running.target(statement.name)
    overloads = tuple(
        MacroImpl(
            canonical_query(overload.body.text)
            if overload.is_table
            else canonical_expression(overload.body.text),
            tuple(
                MacroParameter(parameter, parameter_type(type), default)
                for parameter, type, default in overload.parameters
            ),
            "table" if overload.is_table else "scalar",
        )
        for overload in statement.overloads
    )
    if statement.if_not_exists and running.scope.read().find_macro(name, overloads[0].kind) is not None:
        return SqlResult()
    running.work.create_macro(name, overloads=overloads, or_replace=statement.or_replace)
    return SqlResult()


# ---- Tables ---


@run_definition.register
def _(statement: st.CreateTable, running: Running) -> SqlResult:
    name = running.target(statement.name)

    def change(draft: Draft) -> int | None:
        if _is_there(statement, draft, name):
            return None
        if statement.query is not None:
            return _create_from_query(statement, running, draft, name)
        columns, comments = _columns(statement, running, draft)
        table = _create(statement, draft, name, columns, comments)
        # As in DuckLake, files can be put beside those of a table before it has any.
        running.context.storage.make_folder(folder_of(draft.head, table).rstrip("/"))
        return None

    count = running.scope.apply(change)[0]
    return SqlResult() if count is None else counted(count)


def _is_there(statement: st.CreateTable, draft: Draft, name: QualifiedName) -> bool:
    """Whether nothing is to be done."""
    table, view = draft.find_table(name), draft.find_view(name)
    if statement.if_not_exists and (table is not None or view is not None):
        return True
    if statement.or_replace and view is not None:
        raise TableExists(f'"{name}" is a view: drop it first')
    return False


def _columns(statement: st.CreateTable, running: Running, draft: Draft) -> tuple[Columns, _Comments]:
    if statement.like is not None:
        found = running.names(draft).relation(statement.like.parts)
        if found is None:
            raise running.names(draft).unknown(statement.like.parts)
        table = found.draft.find_table(QualifiedName(found.schema, found.name))
        if table is None:
            raise InvalidSql(f'LIKE takes a table, and "{statement.like}" is a view')
        built = build(ColumnSpec(c.name, c.data_type, c.nullable) for c in table.columns)
        return tuple(map(_with_default_of, built, table.columns)), ()
    if statement.columns is None:
        raise InvalidSql("CREATE TABLE needs columns or a query")
    return _built(columns_of(statement.columns.text))


def _built(specs: Sequence[ColumnSpec]) -> tuple[Columns, _Comments]:
    return build(specs), tuple(spec.comment for spec in specs)


def _with_default_of(column: Column, other: Column) -> Column:
    """A new column with the default of another of its type. As text, a literal would be an expression."""
    default = other.default
    initial = default.value if default is not None and default.kind == "literal" else None
    return replace(column, default=default, initial_default=initial)


def _create(
    statement: st.CreateTable, draft: Draft, name: QualifiedName, built: Columns, comments: _Comments
) -> Any:
    replaced = draft.find_table(name) if statement.or_replace else None
    if replaced is not None:
        # Not before its rows were planned: the new one may be made of them.
        draft.drop_table(replaced)
    table = draft.create_table(name, built)
    draft.set_partitioning(table, partition_fields(statement.partitioned_by, built))
    sort_by(draft, table, statement.sorted_by)
    for option, value in statement.options:
        set_option(draft, table, option, value)
    for column, comment in zip(built, comments, strict=False):
        if comment is not None:
            draft.set_tag(table, column.id, "comment", comment)
    return table


def _create_from_query(statement: st.CreateTable, running: Running, draft: Draft, name: QualifiedName) -> int:
    if statement.query is None:
        raise AssertionError("there is a query")
    with running.binder(draft) as binder:
        (sql,) = binder.prepare(binder.read(statement.query.text))
        found = types_of(binder, running, sql)
        if len(statement.names) > len(found):
            raise InvalidSql(f"there are {len(statement.names)} names for {len(found)} columns of the query")
        names = [*statement.names, *(each for each, _ in found[len(statement.names) :])]
        specs = columns_of([ColumnSpec(each, type) for each, (_, type) in zip(names, found, strict=True)])
        table = _create(statement, draft, name, *_built(specs))
        if not statement.with_data:
            return 0
        batches = computed_query(binder, running, sql, table.columns)
        arrived = take_rows(running.context, draft, table, batches)
        arrived.stage(draft, table)
        return arrived.count


@run_definition.register
def _(statement: st.Alter, running: Running) -> SqlResult:
    kind, action = statement.kind, statement.action
    if kind == "schema":
        if not isinstance(action, st.RenameObject):
            raise InvalidSql("a schema can be renamed, and nothing else")
        running.work.rename_schema(_bare(statement.name, running), action.new_name.parts[-1])
        return SqlResult()
    name = running.target(statement.name)
    draft = running.scope.read()
    if kind == "view":
        if statement.if_exists and not _has(draft, name):
            return SqlResult()
        if not isinstance(action, st.RenameObject):
            raise InvalidSql("a view can be renamed, and nothing else: CREATE OR REPLACE VIEW changes it")
        running.work.rename_view(name, _renamed(name, action))
        return SqlResult()
    if statement.if_exists and (not _has_schema(draft, name) or draft.find_table(name) is None):
        return SqlResult()
    if isinstance(action, st.RenameObject):
        running.work.table(name).rename(_renamed(name, action))
    else:
        _alter(action, running.work.table(name))
    return SqlResult()


def _renamed(name: QualifiedName, action: st.RenameObject) -> QualifiedName:
    """The new name of a table or view, which stays in its schema unless another is said."""
    schema, new = (name.schema, *action.new_name.parts)[-2:]
    return QualifiedName.parse((schema, new))


@singledispatch
def _alter(action: Any, table: TableHandle) -> None:
    raise InvalidSql(f"ALTER TABLE has no {type(action).__name__}")


@_alter.register
def _(action: st.AddColumn, table: TableHandle) -> None:
    if not (action.if_not_exists and _has_column(table, action.path)):
        (spec,) = columns_of(f'"c" {action.definition.text}')
        table.add_column(action.path, spec.type, default=spec.default, nullable=spec.nullable)


@_alter.register
def _(action: st.DropColumn, table: TableHandle) -> None:
    if not (action.if_exists and not _has_column(table, action.path)):
        table.drop_column(action.path)


@_alter.register
def _(action: st.RenameColumn, table: TableHandle) -> None:
    table.rename_column(action.path, action.new_name)


@_alter.register
def _(action: st.AlterColumnType, table: TableHandle) -> None:
    if action.using is not None:
        raise InvalidSql("USING would rewrite every row: add a column, UPDATE it and drop the old one")
    table.alter_type(action.path, action.type.text)


@_alter.register
def _(action: st.SetDefault, table: TableHandle) -> None:
    if action.expression is None:
        table.drop_default(action.path)
    else:
        table.set_default(action.path, action.expression.text)


@_alter.register
def _(action: st.SetNullable, table: TableHandle) -> None:
    if find(table.columns, action.path).nullable == action.nullable:
        state = "has no NOT NULL constraint" if action.nullable else "is NOT NULL already"
        raise InvalidSchemaChange(f'column "{".".join(action.path)}" {state}')
    table.set_nullable(action.path, action.nullable)


@_alter.register
def _(action: st.SetPartitioning, table: TableHandle) -> None:
    table.set_partitioning(list(action.fields))


@_alter.register
def _(action: st.SetSortOrder, table: TableHandle) -> None:
    table.set_sort_order(list(action.keys))


@_alter.register
def _(action: st.SetOptions, table: TableHandle) -> None:
    for name, value in action.options:
        table.set_option(name, value)


@run_definition.register
def _(statement: st.Comment, running: Running) -> SqlResult:
    work = running.work
    if statement.kind == "schema":
        work.comment("schema", _bare(statement.name, running), statement.comment)
        return SqlResult()
    name = running.target(statement.name)
    if statement.kind == "column":
        draft = running.scope.read()
        if draft.find_table(name) is None and draft.find_view(name) is not None:
            work.set_tag("view", name, f"comment:{statement.column[-1]}", statement.comment)
        else:
            work.table(name).comment(statement.comment, column=statement.column)
        return SqlResult()
    work.comment(statement.kind, name, statement.comment)
    return SqlResult()


@run_definition.register
def _(statement: st.CreateIndex, running: Running) -> SqlResult:
    create_index(statement, running)
    return SqlResult()


# ---- Catalogs ---


@run_definition.register
def _(statement: st.ForkCatalog, running: Running) -> SqlResult:
    options: dict[str, Any] = {"if_not_exists": statement.if_not_exists}
    if statement.ttl is not None:
        options["ttl"] = age(value_of(statement.ttl, running))
    if statement.at is not None:
        options["at"] = value_of(statement.at[1], running)
    call = {"at": options.get("at"), "ttl": options.get("ttl"), "if_not_exists": statement.if_not_exists}
    return _called(running, "fork", (statement.parent, statement.child), call)


@run_definition.register
def _(statement: st.MergeCatalog, running: Running) -> SqlResult:
    named: dict[str, Any] = {"into": statement.target, "dry_run": statement.dry_run}
    named["prefer"] = statement.prefer
    named["tables"] = [".".join(map(quoted, table.parts)) for table in statement.tables] or None
    return _called(running, "merge", (statement.source,), named)


@run_definition.register
def _(statement: st.DropCatalog, running: Running) -> SqlResult:
    return _called(running, "drop_catalog", (statement.name,), {"if_exists": statement.if_exists})


def _called(running: Running, name: str, positional: tuple[Any, ...], named: dict[str, Any]) -> SqlResult:
    from forklake.sql.functions.calls import call_function

    given = {key: value for key, value in named.items() if value is not None and value is not False}
    rows = call_function(running, (name,), positional, given)
    return SqlResult(rows)


# ---- Details ---


def _bare(name: st.ObjectName, running: Running) -> str:
    """The name of a schema; the catalog may be said before it."""
    *before, schema = name.parts
    if len(before) > 1 or any(not running.session.is_catalog(part) for part in before):
        raise InvalidSql(f'"{name}" is no name of a schema in this catalog')
    return schema


def _has(draft: Draft, name: QualifiedName) -> bool:
    return draft.find_table(name) is not None or draft.find_view(name) is not None


def _has_schema(draft: Draft, name: QualifiedName) -> bool:
    return any(schema.name.lower() == name.schema.lower() for schema in draft.schemas())


def _has_column(table: TableHandle, path: st.ColumnPath) -> bool:
    try:
        find(table.columns, path)
    except (ColumnNotFound, InvalidArgument):
        return False
    return True


def _quietly(run: Callable[[], None], quiet: bool, missing: type[Exception]) -> None:
    try:
        run()
    except missing:
        if not quiet:
            raise
