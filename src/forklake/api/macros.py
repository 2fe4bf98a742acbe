"""Macros: SQL expressions and queries with parameters, stored under a name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar, Unpack, cast

from forklake.api.scoped import Name, ScopedHandle
from forklake.commit.draft import Draft
from forklake.context.scope import look
from forklake.engine.check_sql import check_expression, check_query
from forklake.errors import InvalidArgument
from forklake.model.entities import MacroImpl, MacroInfo, MacroKind, MacroParameter
from forklake.model.names import QualifiedName, check_name, check_text
from forklake.model.snapshots import CommitInfo

T = TypeVar("T")


class MacroVerbs(ScopedHandle):
    """Verbs on macros."""

    def macros(self) -> list[MacroInfo]:
        """List the macros with their overloads."""

        def listed(draft: Draft) -> list[MacroInfo]:
            names = {schema.id: schema.name for schema in draft.schemas()}
            # A schema that was renamed may be gone since, if this state was expired: look again.
            found = [
                MacroInfo(names[macro.schema_id], macro.name, macro.id, macro.implementations)
                for macro in draft.macros()
                if macro.schema_id in names
            ]
            return sorted(found, key=lambda macro: (macro.schema, macro.name))

        return look(self._scope, listed, every=True)

    def create_macro(
        self,
        name: Name,
        parameters: Sequence[str | MacroParameter] = (),
        sql: str | None = None,
        *,
        table: bool = False,
        overloads: Sequence[MacroImpl] = (),
        or_replace: bool = False,
        **info: Unpack[CommitInfo],
    ) -> None:
        """Create a macro: an expression, or with `table` a query, with parameters; or several `overloads`.

        DuckDB SQL is parsed; other dialects are stored as they are.
        """
        target = QualifiedName.parse(name, "macro")
        given = [] if sql is None else [_implementation(sql, parameters, table=table)]
        impls = (*given, *check_listed(overloads, "overloads of a macro"))
        if not impls:
            raise InvalidArgument(f'macro "{target}" needs SQL, or overloads')
        for impl in impls:
            _check_implementation(impl, f'the SQL of macro "{target}"')
        self._scope.with_commit_info(**info).apply(
            lambda draft: draft.create_macro(target, impls, or_replace=or_replace)
        )

    def rename_macro(
        self, name: Name, new_name: Name, *, table: bool | None = None, **info: Unpack[CommitInfo]
    ) -> None:
        """Rename a macro. A name without a schema keeps its schema.

        An expression and a query may have one name: then the expression is meant, unless `table` is true.
        """

        def change(draft: Draft) -> None:
            macro = draft.macro_named(QualifiedName.parse(name, "macro"), _kind(table))
            draft.rename_macro(
                macro, QualifiedName.parse(new_name, "macro", schema=draft.name_of(macro).schema)
            )

        self._scope.with_commit_info(**info).apply(change)

    def drop_macro(
        self, name: Name, *, table: bool | None = None, if_exists: bool = False, **info: Unpack[CommitInfo]
    ) -> None:
        """Drop a macro; `table` says which, as in `rename_macro`."""
        target, kind = QualifiedName.parse(name, "macro"), _kind(table)

        def change(draft: Draft) -> None:
            if not (if_exists and draft.find_macro(target, kind) is None):
                draft.drop_macro(draft.macro_named(target, kind))

        self._scope.with_commit_info(**info).apply(change)


def _kind(table: bool | None) -> MacroKind | None:
    return None if table is None else "table" if table else "scalar"


def _implementation(sql: str, parameters: Sequence[str | MacroParameter], *, table: bool) -> MacroImpl:
    listed = check_listed(parameters, "parameters of a macro")
    given = tuple(MacroParameter(item) if isinstance(item, str) else item for item in listed)
    return MacroImpl(sql, given, "table" if table else "scalar")


def _check_implementation(impl: object, what: str) -> None:
    if not isinstance(impl, MacroImpl):
        raise InvalidArgument(f"an overload of a macro is a MacroImpl, not {type(impl).__name__}")
    for text in (impl.sql, impl.dialect, impl.kind):
        check_text(text, "macro's SQL")
    for parameter in cast("Sequence[object]", impl.parameters):
        if not isinstance(parameter, MacroParameter):
            raise InvalidArgument(
                f"a parameter is a string or a MacroParameter, not {type(parameter).__name__}"
            )
        check_text(parameter.type, "type of a parameter")
        if parameter.default is not None:
            check_text(parameter.default, "default of a parameter")
    names = [check_name(parameter.name, "parameter").lower() for parameter in impl.parameters]
    if len(set(names)) < len(names):
        raise InvalidArgument(f"a macro has two parameters of one name: {', '.join(names)}")
    if impl.dialect == "duckdb" and impl.kind == "table":
        check_query(impl.sql, what)
    elif impl.dialect == "duckdb":
        check_expression(impl.sql, what)


def check_listed(items: Sequence[T], what: str) -> Sequence[T]:
    """Refuse what is no list: a string would be taken for its characters."""
    if not isinstance(items, list | tuple):
        raise InvalidArgument(f"the {what} are given as a list, not as {type(items).__name__}")
    return items
