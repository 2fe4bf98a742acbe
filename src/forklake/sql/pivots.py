"""PIVOT without a list of values: the values are found first, by a query of their own.

DuckDB has no tree for such a text. Each PIVOT column gets the name of a list that is made later, so that
there is one, and whatever the text names is checked and bound as in every other query.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from forklake.engine.query.tree import QueryTree
from forklake.engine.query.workbench import Workbench
from forklake.errors import InvalidSql
from forklake.model.names import quoted
from forklake.sql.parser.reader import Reader

_PIVOTS = ("PIVOT", "PIVOT_WIDER")
_ENDS = ("IN", "USING", "GROUP", "ORDER", "LIMIT", "OFFSET", "UNION", "EXCEPT", "INTERSECT")
_VALUES = "SELECT DISTINCT CAST(1 AS VARCHAR) AS v FROM a WHERE 1 IS NOT NULL ORDER BY v"


def with_lists(text: str, prefix: str) -> tuple[str, list[str]]:
    """A text whose PIVOT columns without values name a list each, and the names of these lists."""
    places: list[int] = []
    _find(Reader(text), places)
    names = [f"{prefix}list{at}" for at in range(len(places))]
    parts, last = [], 0
    for place, name in sorted(zip(places, names, strict=True)):
        parts += [text[last:place], f" IN {quoted(name)}"]
        last = place
    return "".join([*parts, text[last:]]), names


def value_queries(workbench: Workbench, tree: QueryTree, names: list[str]) -> Iterator[tuple[str, str]]:
    """For each list, the query that finds its values; it names things as the tree does by now."""
    wanted = set(names)
    for pivot, ctes in _pivots(tree.root, []):
        for column in pivot["pivots"]:
            if column.get("pivot_enum") in wanted:
                made = _values(workbench, pivot["source"], column["pivot_expressions"], ctes)
                yield column["pivot_enum"], made.sql(workbench.connection)


def _find(reader: Reader, places: list[int]) -> None:
    """Note where a list of values is missing, up to the end of the text."""
    while reader.kind != "end":
        if reader.kind == "word" and reader.word in _PIVOTS:
            reader.next()
            _columns(reader, places)
        else:
            reader.next()


def _columns(reader: Reader, places: list[int]) -> None:
    if not _pass_source(reader, places):
        return
    while True:
        before = reader.start
        _inside(reader, before, reader.until(*_ENDS, comma=True, what="a column to pivot on").text, places)
        if reader.take("IN"):
            if reader.word == "(" and _begins_query(reader):
                raise InvalidSql("PIVOT … IN takes values, not a query: leave IN out, and filter the rows")
            if reader.word == "(":
                reader.skip_brackets()
            else:
                reader.parts("the name of a list")
        else:
            places.append(reader.past)
        if not reader.take(","):
            return


def _pass_source(reader: Reader, places: list[int]) -> bool:
    """Pass what is pivoted, up to the columns; whether there are any."""
    open_joins = 0
    while reader.kind != "end" and reader.word not in (")", ";"):
        if reader.word == "(":
            start = reader.start
            reader.skip_brackets()
            _inside(reader, start + 1, reader.text[start + 1 : reader.past - 1], places)
        elif reader.kind == "word" and reader.word == "JOIN":
            open_joins += 1
            reader.next()
        elif reader.kind == "word" and reader.word == "ON" and not open_joins:
            reader.next()
            return True
        elif reader.kind == "word" and reader.word in ("ON", "USING"):
            if not open_joins:
                return False
            open_joins -= 1
            reader.next()
        else:
            reader.next()
    return False


def _inside(reader: Reader, start: int, text: str, places: list[int]) -> None:
    """Look at a part of the text for itself."""
    if "pivot" in text.lower():
        _find(Reader(reader.text, start, start + len(text)), places)


def _begins_query(reader: Reader) -> bool:
    place = reader.place
    reader.next()
    found = reader.word in ("SELECT", "FROM", "WITH", "TABLE")
    reader.back(place)
    return found


def _pivots(node: Any, ctes: list[Any]) -> Iterator[tuple[dict[str, Any], list[Any]]]:
    """Every PIVOT, those inside of it first, with the common table expressions that it can name."""
    if isinstance(node, list):
        for item in node:
            yield from _pivots(item, ctes)
    elif isinstance(node, dict):
        own = node.get("cte_map")
        if isinstance(own, dict):
            for at, entry in enumerate(own.get("map", ())):
                yield from _pivots(entry["value"], [*ctes, *own["map"][:at]])
            ctes = [*ctes, *own.get("map", ())]
        for key, child in node.items():
            if key != "cte_map":
                yield from _pivots(child, ctes)
        if node.get("type") == "PIVOT" and "source" in node:
            yield node, ctes


def _values(workbench: Workbench, source: Any, expressions: list[Any], ctes: list[Any]) -> QueryTree:
    found = QueryTree.read(workbench.connection, _VALUES)
    if found is None:
        raise AssertionError("this query has a tree")
    (expression,) = expressions
    select = found.selects[0]
    select["cte_map"] = {"map": ctes}
    select["from_table"] = source
    select["select_list"][0]["child"] = expression
    select["where_clause"]["children"] = [expression]
    return found
