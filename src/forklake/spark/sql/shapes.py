"""Which parts of a query mean the same in DuckDB and in Spark. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from forklake.lazy.sqlglot import exp

_CLAUSES = (
    "Select From Where Join Group Having Order Ordered Limit Offset With CTE Union Intersect Except Subquery "
    "Table TableAlias HistoricalData Column Identifier Star Literal Boolean Null Paren Alias Distinct "
    "Qualify Placeholder Tuple Window WindowSpec Filter Interval Var DataType DataTypeParam Exists Cube "
    "Rollup GroupingSets Escape"
)
_OPERATORS = (
    "And Or Not EQ NEQ GT GTE LT LTE Is NullSafeEQ NullSafeNEQ Between In Like ILike Add Sub Mul Div IntDiv "
    "Mod Neg DPipe Bracket Dot Case If Cast TryCast"
)
_FUNCTIONS = (
    "Coalesce Nullif Greatest Least Abs Sqrt Ln Log Exp Pow Sign Round Ceil Floor Lower Upper Trim Length "
    "Concat Replace StartsWith Contains Substring Year Quarter Month Day Hour Minute Extract TimestampTrunc "
    "DateTrunc Count CountIf Sum Avg Min Max Stddev StddevSamp StddevPop Variance VariancePop AnyValue "
    "ArgMax ArgMin LogicalAnd LogicalOr Median RowNumber Rank DenseRank PercentRank CumeDist Ntile Lag Lead "
    "FirstValue LastValue NthValue Struct PropertyEQ Array"
)
_ARGUMENTS: Mapping[str, frozenset[str]] = {
    "Select": frozenset(
        {"with_", "expressions", "from_", "where", "joins", "group", "having", "qualify", "order", "limit"}
        | {"offset", "distinct"}
    ),
    "Join": frozenset({"this", "side", "kind", "on", "using", "method"}),
    "Table": frozenset({"this", "db", "catalog", "alias", "when", "joins"}),
    "Subquery": frozenset({"this", "alias", "with_", "order", "limit", "offset"}),
    "Star": frozenset({"except_"}),
    "Limit": frozenset({"expression"}),
    "Offset": frozenset({"expression"}),
    "Union": frozenset({"this", "expression", "distinct", "with_", "order", "limit", "offset"}),
    "Trim": frozenset({"this"}),
    "Round": frozenset({"this", "decimals"}),
    "Ceil": frozenset({"this"}),
    "Floor": frozenset({"this"}),
    "WindowSpec": frozenset({"kind", "start", "start_side", "end", "end_side"}),
    "Window": frozenset({"this", "partition_by", "order", "spec", "over", "first"}),
}
"""What these may have; others may have what they can."""
_PARTS = frozenset({"YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE"})
"""Parts of a date that both engines count alike."""
_UNITS = _PARTS | {f"{part}S" for part in _PARTS} | {"SECOND", "SECONDS"}
_JOINS = frozenset({"", "INNER", "CROSS", "OUTER", "SEMI", "ANTI"})


@cache
def _known() -> frozenset[type[exp.Expr]]:
    return frozenset(getattr(exp, name) for name in f"{_CLAUSES} {_OPERATORS} {_FUNCTIONS}".split())


def is_known(node: exp.Expr) -> bool:
    """Whether a node is of a kind that both engines have."""
    match node:
        case exp.Join():
            return node.kind in _JOINS and node.method in ("", "NATURAL")
        case exp.Order():
            # In an aggregate; Spark has no place for it.
            return isinstance(node.parent, exp.Query | exp.Window)
        case exp.Substring():
            start = node.args.get("start")
            return not isinstance(start, exp.Literal) or int(start.name) > 0
        case exp.Interval():
            return isinstance(node.this, exp.Literal) and str(node.args.get("unit")).upper() in _UNITS
        case exp.Extract():
            return str(node.this).upper() in _PARTS
        case exp.WindowSpec():
            return str(node.args.get("kind")).upper() in ("ROWS", "RANGE")
        case exp.Distinct():
            on = node.args.get("on")
            return on is None or isinstance(node.parent, exp.Select)
        case _:
            return type(node) in _known()


def unknown_argument(node: exp.Expr) -> str | None:
    """Something that a node has and that is not known to mean the same."""
    known = _ARGUMENTS.get(type(node).__name__)
    if known is None:
        return None
    return next((name for name, value in node.args.items() if value and name not in known), None)
