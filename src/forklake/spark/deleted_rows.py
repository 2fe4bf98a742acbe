"""Rows that are gone, left out of a DataFrame of files.

Up to many millions of rows, the plan takes a bit for each row along: a filter looks it up, and Spark reads,
prunes and pushes filters as if nothing were gone. A join costs more for each row, even one that is broadcast;
it is for what is too large for that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from forklake.data.parquet.delete_files import lost_positions
from forklake.data.storage.storage import Storage
from forklake.lazy.arrow import pa
from forklake.scan.scan_plan import ScanFile
from forklake.spark import paths
from forklake.spark.types import lists_of

PATH, INDEX, SIZE = "path", "index", "size"
"""What a DataFrame may show of the place of each row."""
SHOWN = {
    PATH: "_metadata.file_path",
    INDEX: "_metadata.row_index",
    SIZE: "_metadata.file_size",
}
READ_OPTIONS = {
    # Folders such as region=eu/ say nothing that the plan does not know better.
    "recursiveFileLookup": "true",
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
    # Rows that cannot be read are no reason to show fewer, whatever the session says.
    "ignoreCorruptFiles": "false",
    "ignoreMissingFiles": "false",
}
_FEW_DELETE_FILES, _FEW_DELETES = 1024, 16_000_000
"""Up to so many, delete files are read here: a job of Spark would take longer."""
_MOST_BITS = 2**27
"""Up to so many rows have a bit in the plan, which every task gets: 16 MiB."""
_MOST_FILES = 4096
_MOST_BROADCAST = 500_000
"""Up to how many deleted rows every executor gets a copy: each is a path and a position."""
_THREADS = 16
_NUMBERS = "numbers"
_NUMBERS_SCHEMA = T.StructType([T.StructField(_NUMBERS, T.ArrayType(T.LongType(), containsNull=False))])


@dataclass(frozen=True, slots=True)
class DeletionFilter:
    """How rows that are gone are left out of a DataFrame of some files."""

    needed: frozenset[str]
    """What the DataFrame has to show of the place of each row; the less, the faster."""
    without: Callable[[DataFrame], DataFrame]


def deletion_filter(spark: SparkSession, storage: Storage, files: Sequence[ScanFile]) -> DeletionFilter:
    """How to read files that lost some of their rows."""
    if _is_too_much(files):
        return _by_join(spark, storage, files)
    slots = _slots(spark, storage, files)
    if slots is None:
        return _by_join(spark, storage, files)
    bits = _bits_of(files, _positions(storage, files))
    # Few positions are gone from any file, and to look whether one is costs half as much as to find its file.
    anywhere = np.zeros(max(map(len, bits)), np.int64)
    for found in bits:
        anywhere[: len(found)] |= found
    found_at = len(anywhere)
    table = _table(slots, found_at, bits)
    is_lost = f"{_is_set('0L')} AND {_is_set(_start(slots, found_at))}"
    needed = frozenset({SIZE if slots.by_size else PATH, INDEX})
    return _by_bits(spark, needed, [anywhere, table, *bits], is_lost)


def _by_join(spark: SparkSession, storage: Storage, files: Sequence[ScanFile]) -> DeletionFilter:
    return DeletionFilter(frozenset({PATH, INDEX}), lambda df: _joined(spark, storage, df, files))


def _is_too_much(files: Sequence[ScanFile]) -> bool:
    """Whether this is not the place to know what each file has lost."""
    named = [file.file.deletes for file in files if file.file.deletes is not None]
    return (
        len(files) > _MOST_FILES
        or sum(file.file.record_count for file in files) > _MOST_BITS
        or len(named) > _FEW_DELETE_FILES
        or sum(found.delete_count for found in named) > _FEW_DELETES
    )


def _positions(storage: Storage, files: Sequence[ScanFile]) -> list[pa.Array]:
    """The positions that each file has lost."""
    with ThreadPoolExecutor(_THREADS, "forklake-deletes") as pool:
        read = pool.map(
            lambda file: lost_positions(storage, file.file.deletes, file.deleted),
            files,
        )
        return list(read)


# ---- A bit for each row ---


@dataclass(frozen=True, slots=True)
class _Slots:
    """A table in which a file is found by its key, at one of two places."""

    keys: Sequence[int]
    by_size: bool
    """Whether the key is the size of the file, which costs nothing, or a hash of its path."""
    bits: int
    places: Mapping[int, int]
    """The number of the file at each place."""

    @property
    def key(self) -> str:
        return SIZE if self.by_size else f"xxhash64({PATH})"


def _slots(spark: SparkSession, storage: Storage, files: Sequence[ScanFile]) -> _Slots | None:
    """None if files cannot be told apart so."""
    keys = [file.file.file_size_bytes for file in files]
    by_size = len(set(keys)) == len(keys)
    if not by_size:
        shown = pa.table({PATH: paths.of_files(storage, files)})
        hashed = spark.createDataFrame(shown, f"{PATH} STRING").select(F.xxhash64(PATH))
        keys = hashed.toArrow().column(0).to_pylist()
    least = len(keys).bit_length() + 1
    for bits in range(least, least + 6):
        places = _two_places_each(keys, bits)
        if places is not None:
            return _Slots(keys, by_size, bits, places)
    return None


def _two_places_each(keys: Sequence[int], bits: int) -> dict[int, int] | None:
    """Every number at one of the two places of its key; who is pushed out takes its other one."""
    mask = (1 << bits) - 1
    held: dict[int, int] = {}
    for number in range(len(keys)):
        moving, place = number, keys[number] & mask
        for _ in range(2 * len(keys) + 1):
            if place not in held:
                break
            moving, held[place] = held[place], moving
            one, other = keys[moving] & mask, (keys[moving] >> bits) & mask
            place = other if place == one else one
        else:
            return None
        held[place] = moving
    return held


def _bits_of(files: Sequence[ScanFile], lost: Sequence[pa.Array]) -> list[np.ndarray]:
    """A bit for each row of each file, in whole numbers of 64."""
    found: list[np.ndarray] = []
    for file, positions in zip(files, lost, strict=True):
        bits = np.zeros(-(-file.file.record_count // 64) * 64, np.uint8)
        bits[positions.to_numpy()] = 1
        found.append(np.packbits(bits, bitorder="little").view("<i8"))
    return found


def _by_bits(
    spark: SparkSession, needed: frozenset[str], parts: Sequence[np.ndarray], is_lost: str
) -> DeletionFilter:
    """Numbers go along as one array, and a condition looks up what it needs there.

    They are one column, however often the condition names it: Spark would compute each subquery apart, and
    send each result to every task.
    """
    item = pa.field("element", pa.int64(), nullable=False)
    carried = pa.table({_NUMBERS: pa.array([np.concatenate(parts)], pa.list_(item))})
    numbers = spark.createDataFrame(carried, _NUMBERS_SCHEMA).scalar().alias(_NUMBERS)
    return DeletionFilter(needed, lambda df: df.select("*", numbers).where(f"NOT ({is_lost})"))


def _is_set(start: str) -> str:
    """Whether the bit of a row is set, of those that begin at a place."""
    word = _number(f"{start} + shiftright({INDEX}, 6)")
    return f"(shiftright({word}, CAST({INDEX} & 63L AS INT)) & 1L) = 1L"


def _number(at: str) -> str:
    message = "a file is not the one that was written: it has more rows"
    return f"coalesce(get({_NUMBERS}, CAST({at} AS INT)), CAST(raise_error('{message}') AS BIGINT))"


def _table(slots: _Slots, start: int, bits: Sequence[np.ndarray]) -> np.ndarray:
    """Keys of files and where their bits begin, if those follow the table, which begins at `start`."""
    table = np.full(2 << slots.bits, min(slots.keys) - 1)
    starts = list(accumulate(map(len, bits), initial=start + len(table)))
    for place, number in slots.places.items():
        table[2 * place : 2 * place + 2] = slots.keys[number], starts[number]
    return table


def _start(slots: _Slots, table: int) -> str:
    """Where the bits of a file begin; an error if it is not one that was planned."""
    key, mask = slots.key, (1 << slots.bits) - 1

    def at(place: str, more: int) -> str:
        return f"get({_NUMBERS}, CAST(({place} & {mask}L) * 2 + {table + more}L AS INT))"

    other = f"shiftright({key}, {slots.bits})"
    message = "a file is not the one that was written: its size is another"
    return (
        f"CASE WHEN {at(key, 0)} = {key} THEN {at(key, 1)} WHEN {at(other, 0)} = {key} THEN {at(other, 1)} "
        f"ELSE CAST(raise_error('{message}') AS BIGINT) END"
    )


# ---- A join ---


def _joined(spark: SparkSession, storage: Storage, df: DataFrame, files: Sequence[ScanFile]) -> DataFrame:
    """Rows without those that are gone, found by one number, and told apart by the exact place.

    The position alone is the fastest such number, unless each is gone from several files.
    """
    gone = sum(file.file.record_count - file.live_rows for file in files)
    lost = _listed(spark, storage, files)
    lost = F.broadcast(lost) if gone <= _MOST_BROADCAST else lost
    exact = same(PATH, "place")
    if gone <= max(file.file.record_count for file in files):
        return df.join(lost, F.expr(f"{INDEX} = position AND {exact}"), "left_anti")
    lost = lost.selectExpr("*", "xxhash64(place, position) AS hash")
    on = f"xxhash64({PATH}, {INDEX}) = hash AND {same(INDEX, 'position')} AND {exact}"
    return df.join(lost, F.expr(on), "left_anti")


def same(one: str, other: str) -> str:
    """Equal, without becoming a key of the join: with one whole number as key Spark looks up much faster."""
    return f"{one} >= {other} AND {one} <= {other}"


def _listed(spark: SparkSession, storage: Storage, files: Sequence[ScanFile]) -> DataFrame:
    """All that is gone: what came with the plan, and what delete files name, read by Spark."""
    here = [file for file in files if file.deleted is not None]
    # One row for each file: what is repeated for each position does not have to be sent.
    table = pa.table(
        {
            "place": pa.array(paths.of_files(storage, here), pa.string()),
            "positions": lists_of([file.deleted for file in here if file.deleted is not None]),
        }
    )
    df = spark.createDataFrame(table, "place STRING, positions ARRAY<BIGINT>")
    df = df.selectExpr("place", "explode(positions) AS position")
    named = [file for file in files if file.file.deletes is not None]
    return df.union(_from_files(spark, storage, named)) if named else df


def _from_files(spark: SparkSession, storage: Storage, files: Sequence[ScanFile]) -> DataFrame:
    """What the delete files of these name."""
    deletes = [(file, file.file.deletes) for file in files if file.file.deletes is not None]
    addresses = {storage.address(d.path, d.path_is_relative): f for f, d in deletes}
    # By name: earlier versions had another field id for it.
    schema = T.StructType([T.StructField("pos", T.LongType(), True)])
    read = spark.read.options(**READ_OPTIONS).schema(schema).parquet(*map(paths.given, addresses))
    table = pa.table(
        {
            "file": [paths.shown(address) for address in addresses],
            "place": paths.of_files(storage, list(addresses.values())),
        }
    )
    known = F.broadcast(spark.createDataFrame(table, "file STRING, place STRING"))
    found = read.selectExpr("_metadata.file_path AS file", "pos AS position").join(known, "file", "left")
    # A name that is not understood must not bring rows back.
    stranger = F.raise_error(F.concat(F.lit("not a delete file that was planned: "), F.col("file")))
    return found.select(F.coalesce("place", stranger.cast("string")).alias("place"), "position")
