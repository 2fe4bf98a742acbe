"""Files with rows and statistics, and predicates about them, drawn by Hypothesis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from forklake.model.entities import Column
from forklake.model.sql.ddl import ColumnSpec
from forklake.model.table.columns import build
from forklake.model.table.files import ColumnStats, FileStatistics
from forklake.model.types.data_types import Scalar, Struct
from forklake.model.types.sort_keys import Value, bounds, key_of
from tests.property.pruning_values import TEXTS, TYPES, quoted, spellings, values_of


@dataclass(frozen=True)
class File:
    rows: list[tuple[Value | None, ...]]
    facts: FileStatistics


TARGETS = {"x": 0, "Y": 1, "s.z": 2}
OPERATORS = ["=", "!=", "<>", "<", "<=", ">", ">=", "==", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"]


@st.composite
def stats_of(draw: st.DrawFn, column: Column, values: Sequence[Value | None]) -> ColumnStats:
    """What a writer may know of a column: everything, or less."""
    type = column.data_type
    present = [value for value in values if value is not None]
    ordered = sorted((v for v in present if v == v), key=lambda value: key_of(value, type) or "")
    nan = any(value != value for value in present)
    has_nan = isinstance(type, Scalar) and type.name.startswith("float")
    nulls = len(values) - len(present)
    told_nan = draw(st.sampled_from([nan, None])) if has_nan else None
    if present:
        low, high = (ordered[0], ordered[-1]) if ordered else (None, None)
        keys = bounds(
            draw(st.sampled_from([low, low, low, None])),
            draw(st.sampled_from([high, high, high, None])),
            type,
            contains_nan=told_nan,
        )
    else:
        keys = (None, None)
    null_count = draw(st.sampled_from([nulls, nulls, nulls, None]))
    return ColumnStats(
        column.id, len(values), null_count, min_key=keys[0], max_key=keys[1], contains_nan=told_nan
    )


@st.composite
def lakes(draw: st.DrawFn) -> tuple[tuple[Column, ...], list[File], list[list[Value]]]:
    """A table with columns x, Y and s.z, and small files of it."""
    types = [draw(st.sampled_from(TYPES)) for _ in range(3)]
    struct_type = Struct((("z", types[2]),))
    columns = build([ColumnSpec("x", types[0]), ColumnSpec("Y", types[1]), ColumnSpec("S", struct_type)])
    leaves = [columns[0], columns[1], columns[2].children[0]]
    pools = [draw(st.lists(values_of(type), min_size=1, max_size=5)) for type in types]
    files: list[File] = []
    for _ in range(draw(st.integers(1, 4))):
        row = st.tuples(*(st.sampled_from([*pool, *pool, None]) for pool in pools))
        rows = draw(st.lists(row, min_size=1, max_size=3))
        stats = {
            leaf.id: draw(stats_of(leaf, [row[at] for row in rows]))
            for at, leaf in enumerate(leaves)
            if draw(st.integers(0, 9))
        }
        files.append(File(rows, FileStatistics(len(rows), stats)))
    return columns, files, pools


@st.composite
def predicates(draw: st.DrawFn, columns: tuple[Column, ...], pools: list[list[Value]], depth: int = 2) -> str:
    if depth and draw(st.booleans()):
        inner = predicates(columns, pools, depth - 1)
        match draw(st.sampled_from(["and", "or", "not", "and", "or"])):
            case "not":
                return f"NOT ({draw(inner)})"
            case word:
                return f"({draw(inner)}) {word} ({draw(inner)})"
    name = draw(st.sampled_from(list(TARGETS)))
    at = TARGETS[name]
    type = [columns[0], columns[1], columns[2].children[0]][at].data_type
    shown = draw(st.sampled_from([name, name.upper(), f"({name})"]))

    def literal() -> str:
        if not draw(st.integers(0, 9)):
            return "NULL"
        value = draw(st.sampled_from(pools[at]) | values_of(type))
        return draw(st.sampled_from(spellings(value, type)))

    kinds = ["compare"] * 4 + [
        "swapped",
        "in",
        "not in",
        "between",
        "not between",
        "null",
        "not null",
        "constant",
    ]
    if type == Scalar("varchar"):
        kinds += ["like"] * 4
    if type == Scalar("boolean"):
        kinds += ["bare", "is"] * 3
    match draw(st.sampled_from(kinds)):
        case "compare":
            return f"{shown} {draw(st.sampled_from(OPERATORS))} {literal()}"
        case "swapped":
            return f"{literal()} {draw(st.sampled_from(OPERATORS))} {shown}"
        case "in" | "not in" as word:
            return f"{shown} {word} ({', '.join(literal() for _ in range(draw(st.integers(1, 4))))})"
        case "between" | "not between" as word:
            return f"{shown} {word} {literal()} AND {literal()}"
        case "null":
            return f"{shown} IS NULL"
        case "not null":
            return f"{shown} IS NOT NULL"
        case "bare":
            return shown
        case "is":
            return f"{shown} IS {draw(st.sampled_from(['TRUE', 'FALSE', 'NOT TRUE', 'NOT FALSE']))}"
        case "like":
            return draw(likes(shown, pools[at]))
        case _:
            return draw(st.sampled_from(["TRUE", "FALSE", "NULL", "1 = 1"]))


@st.composite
def likes(draw: st.DrawFn, shown: str, pool: list[Value]) -> str:
    text = str(draw(st.sampled_from(pool) | st.sampled_from(TEXTS)))
    part = text[: draw(st.integers(0, len(text)))]
    form = draw(
        st.sampled_from(
            [
                "LIKE {0}%",
                "NOT LIKE {0}%",
                "LIKE {0}",
                "LIKE {0}_%",
                "LIKE {0}%%",
                "NOT LIKE {0}_",
                "LIKE %{0}",
            ]
        )
    )
    call = draw(st.sampled_from(["", "", "starts_with", "prefix", "^@"]))
    if call == "^@":
        return f"{shown} ^@ {quoted(part)}"
    if call:
        return f"{call}({shown}, {quoted(part)})"
    word, _, pattern = form.rpartition(" ")
    return f"{shown} {word} {quoted(pattern.format(part))}"
