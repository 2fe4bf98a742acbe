"""Checking a lake: whether files are there as they were written, and whether the rows about them hold.

Nothing is changed, unless statistics are to be repaired, which can be derived from files and rows. All else
that differs is for people to decide: a missing file can be restored from a copy, but not made up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from forklake.context.lake_context import LakeContext
from forklake.display import Shown
from forklake.errors import InvalidArgument
from forklake.maintenance.check_files import FileCheck, Found
from forklake.model.ids import CatalogId, ColumnId, TableId
from forklake.model.names import QualifiedName
from forklake.model.progress import OnProgress, Steps
from forklake.model.table.files import ColumnStats
from forklake.store.backend import Session
from forklake.store.verify import (
    BoundsOf,
    Count,
    Misfit,
    bounds_of_tables,
    low_counters,
    mend_bounds,
    mend_counts,
    misfits,
    names_of,
    narrow_bounds,
    wrong_counts,
)

MOST_SHOWN = 10_000
"""How many differences are listed; all are counted."""
_ROUNDS = 1_000

Outside = dict[tuple[CatalogId, TableId, ColumnId], list[ColumnStats]]
"""What inlined rows have beyond the bounds of their tables."""

_MESSAGES = {
    "check_heads": ("lineage", "the catalog has no row of its own in ducklake_catalog_lineage"),
    "check_names": ("lineage", "the catalog has a name or a head, and not both"),
    "check_positions": (
        "counter",
        "the catalog stands at snapshot {found}, which is not there or is before its oldest one, {expected}",
    ),
    "check_parents": (
        "lineage",
        "the row of its parent, of depth {expected}, is missing in ducklake_catalog_lineage",
    ),
    "check_ancestors": (
        "lineage",
        "it descends from catalog {found}, and the row of that one's ancestor {expected} is missing",
    ),
    "check_sources": ("lineage", "it descends from catalog {found}, which is not there"),
    "check_masks": ("mask", "an inherited row that began in snapshot {expected} ends before, in {found}"),
    "masks_of_nothing": (
        "mask",
        "it ends an inherited row, of {found} from snapshot {expected}, that is not there",
    ),
    "check_files_of_tables": ("key", "the file {found} is of a table that is not there"),
    "check_deletes_of_files": ("key", "the delete file is about data file {found}, which is not there"),
    "check_spans": ("key", "a row begins in snapshot {found}, and ends before or is ahead of all snapshots"),
    "check_parts": ("key", "statistics, partition values or inlined rows are of file {found}, not there"),
    "check_mappings": ("key", "the names of its columns, mapping {found}, are not there"),
    "check_table_names": ("key", "table {found} has the same name in the same schema"),
    "check_row_ids": (
        "counter",
        "the next row would get id {found}, and rows up to id {expected}, exclusive, are there",
    ),
}


@dataclass(frozen=True, slots=True)
class Difference:
    """Something in a lake that is not as it should be."""

    kind: str
    """`file`, `rows`, `statistics`, `counter`, `lineage`, `mask` or `key`."""
    catalog: str | None
    table: str | None
    path: str | None
    message: str
    repaired: bool = False


@dataclass(frozen=True, slots=True)
class CheckResult(Shown):
    """The result of a check."""

    files: int
    """How many Parquet files were looked at; one that several catalogs have counts for each."""
    inlined: int
    """How many inlined writes were looked at."""
    differences: tuple[Difference, ...]
    """What is not as it should be, the first ten thousand."""
    found: int
    """How many differences there are."""
    repaired: int
    """How many of them were repaired."""

    @property
    def is_clean(self) -> bool:
        """Whether nothing is wrong that was not repaired."""
        return self.found == self.repaired


@dataclass(slots=True)
class _Report:
    """What was found so far."""

    shown: list[Found] = field(default_factory=list[Found])
    found: int = 0
    repaired: int = 0

    def add(self, one: Found) -> None:
        self.found += 1
        self.repaired += one.repaired
        if len(self.shown) < MOST_SHOWN:
            self.shown.append(one)

    def extend(self, found: Iterable[Found]) -> None:
        for one in found:
            self.add(one)


def check(context: LakeContext, *, repair: object, data: object, progress: OnProgress | None) -> CheckResult:
    """Look at every file and every row of a lake; `data` reads the files too, and not their footers alone."""
    for name, value in (("repair", repair), ("data", data)):
        if not isinstance(value, bool):
            raise InvalidArgument(f"{name} is True or False, not {value!r}")
    database = context.database
    if repair:
        database.check_writable()
    report = _Report()
    steps = Steps(progress, "check metadata", "steps", 3)
    report.extend(_misfit(one) for one in misfits(database))
    report.extend(
        Found("counter", None, None, None, f"the next {name} would be {following}, and {highest} is in use")
        for name, following, highest in low_counters(database)
    )
    steps.add(1)
    files = FileCheck(context, repair=bool(repair), data=bool(data))
    for found in files.run(progress):
        report.add(found)
    steps.add(1)
    # After files, as their statistics may just have become wider.
    report.extend(_counts(context, repair=bool(repair)))
    report.extend(_bounds(context, files.outside, repair=bool(repair)))
    steps.add(1)
    if report.repaired:
        context.statistics.clear()
    differences = tuple(_named(context, report.shown))
    return CheckResult(files.files, files.inlined, differences, report.found, report.repaired)


def _misfit(one: Misfit) -> Found:
    kind, text = _MESSAGES[one.check]
    message = text.format(found=one.found, expected=one.expected)
    return Found(kind, one.catalog, one.table, one.path or None, message)


def _counts(context: LakeContext, *, repair: bool) -> Iterator[Found]:
    wrong = wrong_counts(context.database)
    mended: set[tuple[CatalogId, TableId]] = set()
    for catalog in sorted({one.catalog for one in wrong}) if repair else ():
        with context.database.transaction() as session:
            # Nobody commits to it meanwhile, so what is counted now holds.
            session.lock_head(catalog)
            found = wrong_counts(session, catalog)
            mend_counts(session, found)
            session.commit()
        mended |= {(one.catalog, one.table) for one in found}
    for one in wrong:
        yield Found(
            "statistics",
            one.catalog,
            one.table,
            None,
            _miscounted(one),
            repaired=(one.catalog, one.table) in mended,
        )


def _miscounted(one: Count) -> str:
    if one.rows != one.found_rows:
        return f"{one.rows} rows were counted in the table, and it has {one.found_rows}"
    return f"{one.size} bytes were counted in the table, and its files have {one.found_size}"


def _bounds(context: LakeContext, outside: Outside, *, repair: bool) -> Iterator[Found]:
    narrow = {(one.catalog, one.table, one.column) for one in narrow_bounds(context.database)}
    narrow |= outside.keys()
    mended: set[CatalogId] = set()
    for catalog in sorted({catalog for catalog, _, _ in narrow}) if repair else ():
        inlined = {key: seen for key, seen in outside.items() if key[0] == catalog}
        with context.database.transaction() as session:
            session.lock_head(catalog)
            if _widen(session, catalog, inlined):
                session.commit()
                mended.add(catalog)
    for catalog, table, column in sorted(narrow):
        yield Found(
            "statistics",
            catalog,
            table,
            None,
            f"the bounds of column {column} in the table's statistics leave out values of its rows",
            repaired=catalog in mended,
        )


def _widen(session: Session, catalog: CatalogId, inlined: Outside) -> bool:
    """Let the bounds of a catalog's tables include what files and inlined rows have."""
    if inlined:
        known = bounds_of_tables(session, [catalog], {table for _, table, _ in inlined})
        for key, found in inlined.items():
            for seen in found if key in known else ():
                known[key] = known[key].with_stats(seen)
        mend_bounds(session, [(*key, known[key]) for key in inlined if key in known])
    for _ in range(_ROUNDS):
        wider: BoundsOf = {}
        for one in narrow_bounds(session, catalog):
            key = (one.catalog, one.table, one.column)
            wider[key] = wider.get(key, one.bounds).with_stats(one.file)
        if not wider:
            return True
        mend_bounds(session, [(*key, bounds) for key, bounds in wider.items()])
    return False


def _named(context: LakeContext, found: Iterable[Found]) -> Iterator[Difference]:
    """Differences with names of catalogs and tables in place of numbers."""
    listed = list(found)
    catalogs, tables = names_of(
        context.database,
        (one.catalog for one in listed if one.catalog is not None),
        (one.table for one in listed if one.table is not None),
    )
    for one in listed:
        table = None if one.table is None else str(one.table)
        if one.table is not None and one.table in tables:
            table = str(QualifiedName(*tables[one.table]))
        catalog = None if one.catalog is None else catalogs.get(one.catalog, str(one.catalog))
        yield Difference(one.kind, catalog, table, one.path, one.message, one.repaired)
