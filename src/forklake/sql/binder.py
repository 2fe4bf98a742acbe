"""From the text of a query to one that DuckDB can run: every name in it becomes a view in a workbench."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from forklake.context.lake_context import LakeContext
from forklake.engine.check_sql import check_statement
from forklake.engine.query.errors import refused
from forklake.engine.query.filters import own_filter, pushed_filters
from forklake.engine.query.one_table import reads_of
from forklake.engine.query.run import Parameters, TimeLimit, watched
from forklake.engine.query.tables import VIRTUAL, QueryTable, files_outside
from forklake.engine.query.tree import FunctionRef, Node, QueryTree, TableRef, expression_sql
from forklake.engine.query.workbench import Described, Workbench
from forklake.errors import InvalidSql
from forklake.lazy.arrow import pa
from forklake.model.entities import Macro, MacroKind, Table, View
from forklake.model.names import quoted
from forklake.model.sql.macro_sql import create_macro
from forklake.model.sql.predicate import Predicate
from forklake.model.time_travel import AsOf
from forklake.scan.scan_plan import ScanPlan
from forklake.sql.access import Access
from forklake.sql.arguments import constant, evaluate, has_column, named_argument, time_travel
from forklake.sql.names import DATABASES, Found, Names, is_ambiguous, past, view_name
from forklake.sql.parser.labels import quoted_labels
from forklake.sql.pivots import value_queries, with_lists
from forklake.sql.query import CallFunction, Query, no_function
from forklake.sql.shows import replace_show, shown
from forklake.store.paths import own_data_paths

_MOST_NESTED = 64
"""How deep views may be made of views."""


@dataclass(slots=True)
class Binder:
    """Binds the queries of one statement, which all see the same state of each catalog."""

    context: LakeContext
    workbench: Workbench
    names: Names
    access: Access
    params: Parameters = None
    limit: TimeLimit | None = None
    """For how long the statement may run."""
    data: Mapping[str, pa.Table] = field(default_factory=dict[str, "pa.Table"])
    """What the caller handed over, by names in lower case, for the query itself: views do not see it."""
    call: CallFunction = no_function
    hides: Callable[[Sequence[str]], tuple[str, ...]] = lambda name: ()
    """Columns of what a function returns that `*` does not mean."""
    changes: Callable[[Sequence[str]], bool] = lambda name: False
    """Whether a function changes something."""
    is_stored: bool = False
    """Whether the query is that of a view to be made, which must not change anything."""
    is_only_explained: bool = False
    """Whether the query is not run, so that functions in it do not change anything."""
    given: dict[str, QueryTable | None] = field(default_factory=dict[str, "QueryTable | None"])
    """Tables by names that only this statement has, as the target of an update; None for Arrow tables."""
    tables: dict[tuple[Any, ...], QueryTable] = field(default_factory=dict[tuple[Any, ...], QueryTable])
    _queries: list[Query] = field(default_factory=list[Query])
    _views: dict[tuple[Any, ...], tuple[str, str, Query]] = field(
        default_factory=dict[tuple[Any, ...], tuple[str, str, Query]]
    )
    _macros: dict[tuple[Any, ...], tuple[str, str, bool] | None] = field(
        default_factory=dict[tuple[Any, ...], "tuple[str, str, bool] | None"]
    )
    """The place of each, the statement that makes it, and whether it is a query."""
    _depth: int = 0

    @property
    def prefix(self) -> str:
        """What names of ours begin with, so that no user's name is one of them."""
        return self.workbench.token

    @property
    def plans(self) -> list[ScanPlan]:
        """The plans of all tables that are read."""
        return [table.plan for table in self.tables.values() if table.plan is not None]

    def attached(self, catalog: str) -> str:
        """What the workbench calls a catalog: DuckDB has databases of its own."""
        return f"{catalog} of the lake" if catalog.lower() in DATABASES else catalog

    # ---- Reading ---

    def read(self, text: str, names: Names | None = None, *, inside: bool = False) -> Query:
        """Read a query, and note all that it names. `inside` views and macros, names are spelled out."""
        self._depth += 1
        if self._depth > _MOST_NESTED:
            raise InvalidSql(f"views are nested deeper than {_MOST_NESTED}: one of them may read itself")
        query = self._parsed(text, inside)
        self._queries.append(query)
        self._read_tree(query, query.tree, names or self.names, inside)
        self._depth -= 1
        return query

    def _parsed(self, text: str, inside: bool) -> Query:
        with refused(self.context.storage):
            tree = QueryTree.read(self.workbench.connection, text)
            if tree is not None:
                return Query(text, tree)
            text = quoted_labels(text)
            check_statement(text)
            text, lists = with_lists(text, self.prefix)
            tree = QueryTree.read(self.workbench.connection, text)
        if tree is None:
            raise InvalidSql("this is no query: a part of it changes something")
        if inside and lists:
            raise InvalidSql("PIVOT in a view or a macro needs its values: ON name IN ('a', 'b')")
        return Query(text, tree, lists)

    def _read_tree(self, query: Query, tree: QueryTree, names: Names, inside: bool) -> None:
        self.access.check_calls(tree.calls)
        described = tree.described
        for node in tree.shows:
            rows = shown(node, names, self.call, self.as_of)
            if rows is not None:
                replace_show(node, self._keep(rows))
                tree.is_changed = True
        for function in tree.functions:
            only_columns = self.is_only_explained or id(function.node) in described
            self._function(query, tree, function, names, inside, only_columns)
        for call in tree.called:
            macro = self._macro(call.parts, names, "scalar")
            if macro is not None and self._is_elsewhere(macro, call.parts):
                call.replace(self.attached(macro.catalog), macro.schema)
                tree.is_changed = True
        for ref in tree.tables:
            found = self._table(query, tree, ref, names, inside)
            if found is not None:
                own = {column.name.lower() for column in found.source.table.columns}
                found.virtual |= (VIRTUAL & tree.columns) - own
                query.shown[id(ref.node)] = (ref.shown_name, found)

    def _table(
        self, query: Query, tree: QueryTree, ref: TableRef, names: Names, inside: bool
    ) -> QueryTable | None:
        parts = ref.parts
        if len(parts) == 1 and parts[0] in self.given:
            return self.given[parts[0]]
        at = self.as_of(ref)
        found = names.relation(parts, at)
        if found is None:
            self._other_table(tree, ref, names, {} if inside else self.data)
            return None
        if not inside and len(parts) == 1 and parts[0].lower() in self.data:
            raise InvalidSql(f'"{parts[0]}" is a table, and data has this name too: take another one there')
        table = self._bind(found, names)
        if not (inside or at is not None or is_ambiguous(parts, found)):
            return table
        if not ref.may_be_cte:
            ref.replace(self.attached(found.catalog), found.schema, view_name(found))
            tree.is_changed = True
        return table

    def _other_table(
        self, tree: QueryTree, ref: TableRef, names: Names, data: Mapping[str, pa.Table]
    ) -> None:
        """A name that is no table or view of a lake."""
        parts = ref.parts
        if ref.may_be_cte:
            return
        written, rows = parts[-1], None
        name = written.lower()
        if len(parts) >= 2 and parts[-2].lower() in ("information_schema", "pg_catalog"):
            rows = self.call((f"{parts[-2].lower()}.{name}",), (), {})
        elif len(parts) == 1 and name.startswith("duckdb_"):
            rows = self.call((name,), (), {})
        elif len(parts) == 1 and ref.at is None:
            rows = data.get(name)
        if rows is not None:
            ref.replace(self._keep(rows))
            tree.is_changed = True
        elif len(parts) > 1 or not self.access.is_file(written):
            raise names.unknown(parts, self.as_of(ref))

    def _bind(self, found: Found, names: Names) -> QueryTable | None:
        """Let the workbench have a table or view under its name."""
        key = found.key
        match found.item:
            case Table() as table:
                if key not in self.tables:
                    self.tables[key] = QueryTable(
                        self.attached(found.catalog),
                        found.schema,
                        view_name(found),
                        found.draft.source(table),
                        self._prefix_of(table),
                    )
                return self.tables[key]
            case View() as view:
                if key not in self._views:
                    columns = ", ".join(map(quoted, view.column_aliases))
                    catalog = self.attached(found.catalog)
                    place = f"{quoted(catalog)}.{quoted(found.schema)}.{quoted(view_name(found))}"
                    # Its place is taken before its tables, so that one that reads itself is found out.
                    query = self._inside(found, view.sql)
                    self._views[key] = (place, f" ({columns})" if columns else "", query)
                    self.workbench.add_schema(catalog, found.schema)
                return None
            case Macro():
                return None

    def reads(self, view: View) -> bool:
        """Whether anything that was read names a view as it is now, itself or by way of others."""
        return any(key[1:] == (None, View, view.id) for key in self._views)

    def _prefix_of(self, table: Table) -> str:
        """The same for the next statement like this one, which keeps its view. Drafts have ids below 0."""
        return f"{self.prefix}{len(self.tables)}_{table.id}_".replace("-", "n")

    def _inside(self, found: Found, sql: str) -> Query:
        """A query that is stored: its names are those of its schema, at its snapshot."""
        return self.read(sql, self.names_in(found), inside=True)

    def names_in(self, found: Found) -> Names:
        """What names mean in a query that is stored."""
        return Names(
            past(self.names.scope_of, found.at) if found.at is not None else self.names.scope_of,
            found.catalog,
            found.schema,
            self.names.drafts if found.at is None else {(found.catalog.lower(), None): found.draft},
        )

    def _macro(self, parts: Sequence[str], names: Names, kind: MacroKind) -> Found | None:
        found = names.macro(parts, kind)
        if found is None or not isinstance(found.item, Macro):
            return None
        key = (found.catalog, found.item.id)
        if key not in self._macros:
            self._macros[key] = None
            catalog = self.attached(found.catalog)
            self.workbench.add_schema(catalog, found.schema)
            place = f"{quoted(catalog)}.{quoted(found.schema)}.{quoted(found.name)}"
            bodies: list[str] = []
            for overload in found.item.implementations:
                is_table = overload.kind == "table"
                text = overload.sql if is_table else f"SELECT (\n{overload.sql}\n)"
                query = self._inside(found, text)
                body = query.sql(self.workbench)
                changed = query.tree.is_changed
                bodies.append(
                    (body if is_table else body.removeprefix("SELECT ")) if changed else overload.sql
                )
            # What it calls was noted meanwhile, and has to be made before it.
            del self._macros[key]
            self._macros[key] = place, create_macro(place, found.item, bodies), kind == "table"
        return found

    def _is_elsewhere(self, macro: Found, parts: Sequence[str]) -> bool:
        """Whether DuckDB would not find a macro by its name as it was written."""
        names = self.names
        if (names.catalog or "").lower() != macro.catalog.lower():
            return True
        return len(parts) == 1 and macro.schema.lower() not in ("main", names.schema.lower())

    def portable(self, text: str, schema: str) -> str:
        """A query as a view of a schema stores it: names mean the same there, and in every fork."""
        with refused(self.context.storage):
            tree = QueryTree.read(self.workbench.connection, text)
        if tree is None:
            return text
        for ref in tree.tables:
            found = None if ref.may_be_cte else self.names.relation(ref.parts)
            if found is None or found.catalog.lower() != (self.names.catalog or "").lower():
                continue
            has_catalog = len(ref.parts) > 2 or (
                len(ref.parts) == 2 and ref.parts[0].lower() != found.schema.lower()
            )
            if has_catalog or (len(ref.parts) == 1 and found.schema.lower() != schema.lower()):
                ref.replace(found.schema, found.name, at=ref.at)
                tree.is_changed = True
        return tree.sql(self.workbench.connection) if tree.is_changed else text

    # ---- Functions ---

    def _function(
        self,
        query: Query,
        tree: QueryTree,
        function: FunctionRef,
        names: Names,
        inside: bool,
        only_columns: bool,
    ) -> None:
        parts = tuple(part.lower() for part in function.parts)
        if (inside or self.is_stored) and self.changes(parts):
            # Who reads a view does not know what is in it, and listings read it too.
            raise InvalidSql(
                f"{parts[-1]}() changes something, so no view or macro can call it: call it by itself"
            )
        positional, named = self._arguments(function.arguments, parts)
        rows = self.call(function.parts, positional, named, only_columns=only_columns)
        if rows is not None:
            hidden = self.hides(function.parts)
            if not tree.columns & set(hidden):
                rows, hidden = rows.drop_columns(list(hidden)), ()
            function.replace(self._keep(rows))
            if hidden:
                query.answers[id(function.node)] = (TableRef(function.node).shown_name, frozenset(hidden))
            tree.is_changed = True
            return
        if self._macro(function.parts, names, "table"):
            if inside:
                found = names.macro(function.parts, "table")
                if found is not None:
                    catalog = self.attached(found.catalog)
                    function.node["function"] |= {"catalog": catalog, "schema": found.schema}
                    tree.is_changed = True
            return
        self.access.check_table_function(parts, positional)
        if self.access.is_reader(parts):
            # What was checked is what is read, whatever the expression would give a second time.
            function.node["function"]["children"][0] = constant(self.workbench, positional[0])
            tree.is_changed = True

    def _arguments(self, given: Sequence[Node], parts: Sequence[str]) -> tuple[list[Any], dict[str, Any]]:
        positional: list[Any] = []
        named: dict[str, Any] = {}
        if not self.access.needs_values(parts, self.call):
            return positional, named
        for node in given:
            name, expression = named_argument(node)
            if name is None and self.access.is_reader(parts) and has_column(expression):
                raise InvalidSql(f"{parts[-1]}() takes the names of files, or a parameter, and no column")
            value = self.value(expression)
            if name is None:
                positional.append(value)
            else:
                named[name.lower()] = value
        return positional, named

    def value(self, expression: Node) -> Any:
        """The value of an expression that needs no table."""
        connection = self.workbench.connection
        with refused(self.context.storage):
            if expression.get("class") == "COLUMN_REF":
                # An unquoted word, as in table_info(orders).
                return ".".join(expression["column_names"])
            sql = f"SELECT {expression_sql(connection, expression)}"
        return evaluate(self.workbench, self.context.storage, self.access, sql, self.used, self.limit)

    def used(self, sql: str) -> Parameters:
        """The parameters that a statement made of parts of the user's has: DuckDB refuses others."""
        if not self.params:
            return None
        wanted = self.workbench.connection.extract_statements(sql)[0].named_parameters
        if not isinstance(self.params, Mapping):
            return {name: self.params[int(name) - 1] for name in wanted}
        return {name: self.params[name] for name in wanted if name in self.params}

    def _keep(self, rows: pa.Table) -> str:
        name = f"{self.prefix}rows{len(self.given)}"
        self.add_rows(name, rows)
        return name

    def add_rows(self, name: str, rows: Any) -> None:
        """Let queries of this statement read an Arrow table or stream by a name."""
        self.given[name] = None
        self.workbench.register({name: rows})

    # ---- Preparing ---

    def prepare(self, *queries: Query) -> tuple[str, ...]:
        """Plan what the queries read and let the workbench have it. Returns the SQL to run."""
        used = [*self.tables.values(), *(table for table in self.given.values() if table is not None)]
        used = list({id(table): table for table in used}.values())
        pruning: dict[str, Predicate] = {}
        with refused(self.context.storage):
            self._begin()
            if used and self._has_conditions:
                pruning = self._pruning(used, queries)
            self._find_reads(used, queries)
            self._plan(used, pruning)
            self._create_views()
            self._find_lists(queries)
            self.context.engine.verify(*(table.plan for table in used if table.plan is not None))
            return tuple(query.sql(self.workbench) for query in queries)

    def checked(self, query: Query, *views: str) -> tuple[list[Described], dict[str, Predicate]]:
        """Let DuckDB check a query without reading any rows, for an engine that reads them by itself.

        Returns what columns the query has, and then those of views, and which rows of tables it can use.
        """
        used = list(self.tables.values())
        with refused(self.context.storage):
            self._begin()
            pruning = self._pruning(used, [query]) if self._has_conditions else {}
            for table in used:
                table.stand_in(self.workbench)
            self._create_views()
            queries = (query.sql(self.workbench), *views)
            return [self.workbench.described(sql, self.used(sql)) for sql in queries], pruning

    @property
    def _has_conditions(self) -> bool:
        return any(query.tree.has_conditions for query in self._queries)

    def _plan(self, used: Sequence[QueryTable], pruning: Mapping[str, Predicate]) -> None:
        storage = self.context.storage
        plans = [table.read(storage, pruning.get(table.prefix)) for table in used]
        outside = {path for plan in plans for path in files_outside(plan, storage)}
        outside = {path for path in outside if not self.workbench.reaches(path)}
        if outside:
            # Forks may keep their files elsewhere, and files can be added where they are.
            own = (f"{path.rstrip('/')}/" for path in own_data_paths(self.context.database))
            folders = tuple(folder for folder in own if any(path.startswith(folder) for path in outside))
            self.workbench.widen(folders, [path for path in outside if not path.startswith(folders)])
            self._begin()
        for table in used:
            table.show(self.workbench)

    def _find_lists(self, queries: Sequence[Query]) -> None:
        connection = self.workbench.connection
        for query in queries:
            for name, sql in value_queries(self.workbench, query.tree, query.lists) if query.lists else ():
                params = self.used(sql)
                with watched(connection, self.context.storage, (), self.limit):
                    rows = connection.execute(sql, *(() if not params else (params,))).fetchall()
                self.workbench.add_list(name, [str(value) for (value,) in rows])

    def _pruning(self, used: Sequence[QueryTable], queries: Sequence[Query]) -> dict[str, Predicate]:
        """Which rows of each table the queries can use, as far as that can be told."""
        if len(queries) > 1 or any(query.lists for query in queries):
            return {}
        (query,) = queries
        if len(used) == len(self._queries) == 1 and not query.lists:
            found = own_filter(
                self.workbench.connection, query.tree, self.params, used[0].source.table.columns
            )
            if found is not None:
                return {used[0].prefix: found}
        for table in used:
            table.stand_in(self.workbench)
        self._create_views()
        sql = query.sql(self.workbench)
        columns = {table.prefix: table.source.table.columns for table in used}
        return pushed_filters(self.workbench.connection, sql, self.used(sql), columns)

    def _find_reads(self, used: Sequence[QueryTable], queries: Sequence[Query]) -> None:
        """Tell the one table of a query what is read of it."""
        if len(used) == len(self._queries) == len(queries) == 1 and not queries[0].lists:
            used[0].reads = reads_of(queries[0].tree, used[0].source.table.columns, self.params)

    def _begin(self) -> None:
        names = self.names
        if names.catalog is not None:
            self.workbench.use(self.attached(names.name_of(names.catalog)), names.schema)

    def _create_views(self) -> None:
        """In the order in which they were read: what a view reads comes before it."""
        for macro in self._macros.values():
            if macro is not None:
                place, statement, is_table = macro
                self.workbench.add_macro(place, statement, is_table=is_table)
        for place, columns, query in self._views.values():
            self.workbench.replace_view(place, query.sql(self.workbench), columns)

    def as_of(self, ref: TableRef) -> AsOf | None:
        """What an AT clause says."""
        clause = ref.at
        if clause is None:
            return None
        unit, expression = clause
        return time_travel(unit, self.value(expression))
