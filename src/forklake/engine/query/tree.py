"""What DuckDB's parser reads in a query: a tree whose tables and functions can be looked at and replaced."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from forklake.errors import InvalidSql
from forklake.lazy.duckdb import duckdb

Node = dict[str, Any]
_MOST_KNOWN, _LONGEST_KNOWN = 256, 100_000
_known: dict[str, str] = {}
"""What the parser said of texts that may come again."""
_FEW = 100
"""Rows of VALUES whose types are looked at."""
NOWHERE = 18446744073709551615
"""What the parser says of places that it does not know."""
_TRUE: Node = {
    "class": "CONSTANT",
    "type": "VALUE_CONSTANT",
    "alias": "",
    "query_location": NOWHERE,
    "value": {"type": {"id": "BOOLEAN", "type_info": None}, "is_null": False, "value": True},
}


@dataclass(frozen=True, slots=True)
class TableRef:
    """A table, view or common table expression that a query names."""

    node: Node
    names: frozenset[str] = frozenset()
    """The common table expressions that are in scope, in lower case."""

    @property
    def parts(self) -> tuple[str, ...]:
        """`(catalog, schema, table)`, as far as they are written."""
        node = self.node
        return tuple(filter(None, (node["catalog_name"], node["schema_name"], node["table_name"])))

    @property
    def may_be_cte(self) -> bool:
        """Whether the query itself defines something of this name."""
        return len(self.parts) == 1 and self.parts[0].lower() in self.names

    @property
    def at(self) -> tuple[str, Node] | None:
        """The unit and the expression of an AT clause."""
        clause = self.node.get("at_clause")
        return None if clause is None else (str(clause["unit"]).upper(), clause["expr"])

    @property
    def shown_name(self) -> str:
        """What the rest of the query calls it."""
        return str(self.node["alias"] or self.node["table_name"])

    def replace(self, *parts: str, at: tuple[str, Node] | None = None) -> None:
        """Let it stand for another table or view; its columns keep the name that they had before the dot."""
        catalog, schema, table = ("", "", *parts)[-3:]
        self.node.update(
            alias=self.shown_name,
            catalog_name=catalog,
            schema_name=schema,
            table_name=table,
            at_clause=None if at is None else self.node["at_clause"],
        )


@dataclass(frozen=True, slots=True)
class FunctionRef:
    """A table function that a query calls."""

    node: Node

    @property
    def parts(self) -> tuple[str, ...]:
        """`(catalog, schema, function)`, as far as they are written."""
        function = self.node["function"]
        return tuple(filter(None, (function["catalog"], function["schema"], function["function_name"])))

    @property
    def arguments(self) -> list[Node]:
        """Its arguments; those that are named have an alias, or are a comparison with a name."""
        return list(self.node["function"]["children"])

    def replace(self, table: str) -> None:
        """Let a table stand for what it returns."""
        old = dict(self.node)
        alias = old["alias"] or old["function"]["function_name"]
        self.node.clear()
        self.node.update(
            type="BASE_TABLE",
            alias=alias,
            sample=old["sample"],
            query_location=old["query_location"],
            schema_name="",
            table_name=table,
            column_name_alias=old["column_name_alias"],
            catalog_name="",
            at_clause=None,
        )


@dataclass(frozen=True, slots=True)
class CallRef:
    """A function of an expression that a query calls."""

    node: Node

    @property
    def parts(self) -> tuple[str, ...]:
        """`(catalog, schema, function)`, as far as they are written, in lower case."""
        node = self.node
        parts = (node.get("catalog"), node.get("schema"), node["function_name"])
        return tuple(str(part).lower() for part in parts if part)

    def replace(self, catalog: str, schema: str) -> None:
        """Say where the function is."""
        self.node.update(catalog=catalog, schema=schema)


@dataclass(slots=True)
class QueryTree:
    """The tree of one query, and what it names."""

    root: Node
    tables: list[TableRef] = field(default_factory=list[TableRef])
    functions: list[FunctionRef] = field(default_factory=list[FunctionRef])
    shows: list[Node] = field(default_factory=list[Node])
    """SHOW TABLES, DESCRIBE and SUMMARIZE."""
    called: list[CallRef] = field(default_factory=list[CallRef])
    """Scalar and aggregate functions."""
    columns: set[str] = field(default_factory=set[str])
    """Every part of every name of a column, in lower case."""
    selects: list[Node] = field(default_factory=list[Node])
    has_conditions: bool = False
    """Whether there is any WHERE, ON, HAVING or QUALIFY, without which nothing can be pruned."""
    joins: list[Node] = field(default_factory=list[Node])
    """Each before those inside of it."""
    is_changed: bool = False

    @property
    def calls(self) -> set[tuple[str, ...]]:
        """The names of the functions: `(catalog, schema, name)`, as far as they are written."""
        return {call.parts for call in self.called}

    @property
    def described(self) -> set[int]:
        """The ids of nodes of functions in queries that are described, and so not run."""
        return {
            id(node)
            for show in self.shows
            if show["show_type"] == "DESCRIBE"
            for node in _functions_in(show.get("query"))
        }

    @property
    def width_of_mixed_values(self) -> int | None:
        """How many values each row has, if the query is VALUES alone and its rows may differ in type."""
        node = self.root["statements"][0]["node"]
        source = node.get("from_table") or {}
        if source.get("type") != "EXPRESSION_LIST" or node["modifiers"]:
            return None
        rows: list[list[Node]] = source["values"]
        few = len(rows) <= _FEW
        if len(rows) == 1 or (few and all(map(_is_of_one_type, zip(*rows, strict=False)))):
            return None
        return len(rows[0])

    @classmethod
    def read(cls, connection: duckdb.DuckDBPyConnection, sql: str) -> QueryTree | None:
        """The tree of a query, or None if DuckDB has none for it: what does not parse, and PIVOT."""
        answer: Any = json.loads(_serialized(connection, sql))
        if answer["error"] or len(answer["statements"]) != 1:
            return None
        tree = cls(answer)
        tree._walk(answer["statements"][0]["node"], frozenset())
        return tree

    def sql(self, connection: duckdb.DuckDBPyConnection) -> str:
        """The tree as SQL."""
        _spell_out_nesting(self.joins)
        row = connection.execute(
            "SELECT json_deserialize_sql($tree)", {"tree": json.dumps(self.root)}
        ).fetchone()
        return str(row[0]) if row else ""

    def _walk(self, value: Any, names: frozenset[str]) -> None:
        if isinstance(value, list):
            for item in value:
                self._walk(item, names)
            return
        if not isinstance(value, dict):
            return
        ctes = value.get("cte_map")
        if isinstance(ctes, dict):
            for entry in ctes.get("map", ()):
                own = names | {str(entry["key"]).lower()}
                # Only one that is recursive names itself; inside of others, its name is that of a table.
                is_recursive = entry["value"]["query"]["node"]["type"] == "RECURSIVE_CTE_NODE"
                self._walk(entry["value"], own if is_recursive else names)
                names = own
        self._note(value, names)
        for key, child in value.items():
            if key != "cte_map" and isinstance(child, dict | list):
                self._walk(child, names)

    def _note(self, node: Node, names: frozenset[str]) -> None:
        match node.get("type"):
            case "BASE_TABLE":
                self.tables.append(TableRef(node, names))
            case "TABLE_FUNCTION":
                self.functions.append(FunctionRef(node))
            case "SHOW_REF":
                self.shows.append(node)
            case "SELECT_NODE":
                self.selects.append(node)
                wheres = (node.get("where_clause"), node.get("having"), node.get("qualify"))
                self.has_conditions |= any(part is not None for part in wheres)
            case "JOIN":
                self.joins.append(node)
                self.has_conditions |= node.get("condition") is not None or bool(node.get("using_columns"))
            case "COLUMN_REF":
                self.columns |= {str(part).lower() for part in node["column_names"]}
            case "FUNCTION" if "function_name" in node:
                self.called.append(CallRef(node))
            case _:
                pass


def _spell_out_nesting(joins: Sequence[Node]) -> None:
    """Let joins nest as they do once DuckDB has written them, which it does without brackets.

    CROSS JOIN becomes a comma, which binds less than any JOIN, so inside of another join it has to be one
    with a condition.
    """
    for join in joins:
        for side in ("left", "right"):
            inner = join[side]
            if inner["type"] != "JOIN" or join["ref_type"] == "CROSS":
                continue
            if inner["ref_type"] == "CROSS":
                inner.update(ref_type="REGULAR", join_type="INNER", condition=dict(_TRUE))
            if side == "right" and join["ref_type"] in ("NATURAL", "POSITIONAL"):
                raise InvalidSql(
                    f"{join['ref_type']} JOIN of a join in brackets is not supported here: "
                    "say SELECT * FROM inside of the brackets"
                )


def _serialized(connection: duckdb.DuckDBPyConnection, sql: str) -> str:
    """The answer of the parser, which depends on nothing but the text."""
    found = _known.get(sql)
    if found is None:
        row = connection.execute("SELECT json_serialize_sql($sql)", {"sql": sql}).fetchone()
        found = str(row[0]) if row else '{"error": true}'
        if len(found) <= _LONGEST_KNOWN:
            if len(_known) >= _MOST_KNOWN:
                _known.clear()
            _known[sql] = found
    return found


def _is_of_one_type(values: Sequence[Node]) -> bool:
    """Whether values are constants of one type, but for NULL."""
    constants = [value["value"]["type"] for value in values if value["class"] == "CONSTANT"]
    kinds = {str(type) for type in constants if type["id"] != "NULL"}
    return len(kinds) + len(values) - len(constants) <= 1


def expression_sql(connection: duckdb.DuckDBPyConnection, expression: Node) -> str:
    """An expression of a tree as SQL."""
    tree = QueryTree.read(connection, "SELECT 1")
    if tree is None:
        raise AssertionError("SELECT 1 has a tree")
    tree.selects[0]["select_list"] = [expression]
    return tree.sql(connection).removeprefix("SELECT ").rstrip("; ")


def hide_columns(tree: QueryTree, hidden: Mapping[int, tuple[str, frozenset[str]]]) -> None:
    """Leave virtual columns out of every `*`: for nodes of tables, by their ids, the name and the columns."""
    for select in tree.selects:
        sources = [hidden[id(node)] for node in _direct_tables(select["from_table"]) if id(node) in hidden]
        if not sources:
            continue
        if any(join["ref_type"] == "NATURAL" for join in tree.joins):
            # They would be joined on.
            raise InvalidSql(
                "NATURAL JOIN and rowid, snapshot_id or filename do not go together: say USING (…)"
            )
        for star in _stars(select["select_list"]):
            named = str(star["relation_name"]).lower()
            for name, columns in sources:
                if named and named != name.lower():
                    continue
                listed = star["qualified_exclude_list"]
                listed += [
                    {"catalog": "", "schema": "", "table": name, "column": column}
                    for column in sorted(columns)
                ]
            tree.is_changed = True


def _functions_in(value: Any) -> Iterator[Node]:
    """Nodes of table functions."""
    if isinstance(value, dict):
        if value.get("type") == "TABLE_FUNCTION":
            yield value
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _functions_in(item)


def _direct_tables(node: Any) -> Iterator[Node]:
    """Tables whose columns a `*` of the same SELECT shows."""
    match node:
        case {"type": "BASE_TABLE"}:
            yield node
        case {"type": "JOIN"}:
            yield from _direct_tables(node["left"])
            yield from _direct_tables(node["right"])
        case {"type": "PIVOT"}:
            yield from _direct_tables(node["source"])
        case _:
            return


def _stars(value: Any) -> Iterator[Node]:
    """Every `*` of a list of expressions, COLUMNS(*) too, but not of sub-queries."""
    if isinstance(value, list):
        for item in value:
            yield from _stars(item)
    elif isinstance(value, dict):
        if value.get("class") == "STAR":
            yield value
        if value.get("class") != "SUBQUERY" and "from_table" not in value:
            for child in value.values():
                yield from _stars(child)
