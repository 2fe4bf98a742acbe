"""Looking at the values of a Parquet file where its footer does not say whether they fit a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from forklake.data.input.lossless import fit, flattened
from forklake.errors import InvalidData
from forklake.lazy.arrow import pa, pc, pq
from forklake.model.entities import Column
from forklake.model.types.data_types import to_sql

Step = int
"""The place of a field among those of its parent; the first is that of a column."""

# Types that files hold as text.
_WRITTEN = {
    "time_ns": r"^([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?$",
    "interval": r"^(-?[0-9]{1,9} months -?[0-9]{1,9} days )?-?[0-9]{1,18} microseconds$",
}


@dataclass(frozen=True, slots=True)
class Doubt:
    """A column of a file, or a field in it, whose values have to be looked at."""

    column: Column
    name: str
    """What the file calls it."""
    trail: tuple[Step, ...]
    is_required: bool = False
    """Look for NULL, and at nothing else."""


def first_problem(file: pq.ParquetFile, doubts: Sequence[Doubt]) -> str | None:
    """What does not fit, read row group by row group; None if everything does."""
    for doubt in doubts:
        name = file.schema_arrow.field(doubt.trail[0]).name
        for group in range(file.num_row_groups):
            table = file.read_row_group(group, columns=[name])
            (at, *_) = table.schema.get_all_field_indices(name)
            for chunk in table.column(at).chunks:
                problem = _problem(chunk, doubt)
                if problem is not None:
                    return problem
    return None


def _problem(array: pa.Array, doubt: Doubt) -> str | None:
    column = doubt.column
    if doubt.is_required:
        nulls = array.null_count
        return f'column "{doubt.name}" is NOT NULL, and NULL in {nulls} rows there' if nulls else None
    for step in doubt.trail[1:]:
        array = _inside(array, step)
    try:
        if column.type in _WRITTEN:
            _check_text(array, doubt)
        else:
            fit(array, column, doubt.name)
    except InvalidData as problem:
        return str(problem)
    return None


def _check_text(array: pa.Array, doubt: Doubt) -> None:
    at = pc.index(pc.match_substring_regex(array, _WRITTEN[doubt.column.type]), False).as_py()
    if at >= 0:
        type = to_sql(doubt.column.data_type)
        raise InvalidData(f'column "{doubt.name}" is {type}: {str(array[at])[:80]!r} is none')


def _inside(array: pa.Array, step: Step) -> pa.Array:
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    if pa.types.is_map(array.type):
        return array.keys if step == 0 else array.items
    return array.flatten()[step] if pa.types.is_struct(array.type) else flattened(array)
