"""Segments as Parquet files of small row groups, of which a reader fetches those that it needs.

The footer has what tells row groups apart, so that one request for it says where everything else is. It
stays in memory, and so do row groups that were read lately.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

from forklake.errors import StorageError, UnreadableIndex
from forklake.index.kind import SegmentFile
from forklake.index.recent import Recent
from forklake.lazy.arrow import pa, pq
from forklake.model.index import SegmentSummary

ORDINAL, POSITION = "ordinal", "position"
GROUP_ROWS = 32_768
"""How many entries a row group has: with fewer the footer grows, with more every hit reads more."""
_FOOTERS: Recent[tuple[Any, int]] = Recent(128 << 20, lambda kept: kept[1])
_ROWS: Recent[pa.Table] = Recent(256 << 20, lambda group: _bytes(group))
_META = b"forklake"
_NARROW = {"hash", ORDINAL, POSITION}
_MAGIC_BYTES = 8


T = TypeVar("T")


def _bytes(group: pa.Table) -> int:
    return group.nbytes


@dataclass(frozen=True, slots=True)
class Footer:
    """What is kept in memory of a segment."""

    metadata: pq.FileMetaData
    facts: dict[str, Any]
    """What its kind wrote into it."""
    fences: pa.Table
    """What its kind wrote of each row group."""
    rows: tuple[int, ...]
    """How many entries each row group has."""


class SegmentWriter:
    """Writes entries into row groups of equal size. They come in the order that they are to have."""

    def __init__(self, out: Path, schema: pa.Schema, group_rows: int = GROUP_ROWS) -> None:
        """Begin a file. Whole numbers that are in order, or small, take a few bits each."""
        self.out = out
        self.schema = schema
        self.group_rows = group_rows
        self.entry_count = 0
        packed = [name for name in ("hash", POSITION) if name in schema.names]
        others = [name for name in schema.names if name not in packed]
        self._writer = pq.ParquetWriter(
            out,
            schema,
            compression=cast("str", {name: "none" if name in _NARROW else "zstd" for name in schema.names}),
            use_dictionary=cast("bool", others),
            column_encoding=dict.fromkeys(packed, "DELTA_BINARY_PACKED"),
            data_page_size=1 << 30,
            write_statistics=False,
            write_page_checksum=True,
        )

    def write(self, group: pa.Table) -> None:
        """Write one row group."""
        self._writer.write_table(group, row_group_size=max(1, group.num_rows))
        self.entry_count += group.num_rows

    def close(self, facts: dict[str, Any], fences: pa.Table) -> int:
        """End the file; returns how many bytes its footer has."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, fences.schema) as stream:
            stream.write_table(fences)
        packed = pa.compress(sink.getvalue(), codec="zstd", asbytes=True)
        noted = {**facts, "fences": b64encode(packed).decode(), "fences_bytes": len(sink.getvalue())}
        self._writer.add_key_value_metadata({_META.decode(): json.dumps(noted)})
        self._writer.close()
        return self._footer_size()

    def _footer_size(self) -> int:
        with self.out.open("rb") as file:
            file.seek(-_MAGIC_BYTES, 2)
            return int.from_bytes(file.read(4), "little")

    def abandon(self) -> None:
        """Close the file as it is: nobody will read it."""
        self._writer.close()


def groups_of(tables: Iterable[pa.Table], rows: int) -> Generator[pa.Table]:
    """Tables that follow each other, cut anew: each has so many rows, but for the last."""
    pending: list[pa.Table] = []
    count = 0
    for table in tables:
        pending.append(table)
        count += table.num_rows
        if count < rows:
            continue
        whole = pa.concat_tables(pending)
        ready = count // rows * rows
        for first in range(0, ready, rows):
            yield whole.slice(first, rows).combine_chunks()
        pending, count = [whole.slice(ready)], count - ready
    if count:
        yield pa.concat_tables(pending).combine_chunks()


def check_format(facts: SegmentSummary, format: str, version: int, key: str) -> None:
    """Refuse a segment that something else wrote, or a newer version."""
    if facts.format != format or facts.format_version > version:
        raise UnreadableIndex(
            f"the index file {key} is {facts.format} {facts.format_version}, and this version reads "
            f"{format} up to {version}: its data files are scanned"
        )


def footer_of(file: SegmentFile, format: str, version: int) -> Footer:
    """What a segment says of itself; it is read once."""
    check_format(file.facts, format, version, file.key)

    def load() -> tuple[Footer, int]:
        with _reading(file) as source:
            size = file.file_size_bytes
            known = file.facts.footer_size
            tail = min(size, (known if known is not None else 56 << 10) + _MAGIC_BYTES)
            end = source.read_at(tail, size - tail)
            needed = int.from_bytes(end[-_MAGIC_BYTES:-4], "little") + _MAGIC_BYTES
            if len(end) != tail or end[-4:] != b"PAR1" or needed > size:
                raise ValueError("its end is missing")
            if needed > tail:
                end = source.read_at(needed, size - needed)
            return _parsed(end, needed)

    return _FOOTERS.get((file.key, file.file_size_bytes, format), load)[0]


def _parsed(end: bytes, size: int) -> tuple[Footer, int]:
    metadata = pq.read_metadata(pa.BufferReader(end))
    noted = json.loads((metadata.metadata or {})[_META])
    packed = b64decode(noted.pop("fences"))
    plain = pa.decompress(packed, noted.pop("fences_bytes"), codec="zstd")
    fences = pa.ipc.open_stream(plain).read_all().combine_chunks()
    rows = tuple(metadata.row_group(group).num_rows for group in range(metadata.num_row_groups))
    # As objects, the parts of a footer take several times what they do in the file.
    return Footer(metadata, noted, fences, rows), 5 * size + 2 * fences.nbytes


def kept(file: SegmentFile, key: tuple[str, ...], make: Callable[[], tuple[T, int]]) -> T:
    """What a kind makes of a footer, with its size; it is made once."""
    return _FOOTERS.get((file.key, file.file_size_bytes, key), make)[0]


def read_groups(
    file: SegmentFile, footer: Footer, groups: Sequence[int], columns: Sequence[str], *, keep: bool = True
) -> pa.Table:
    """Columns of row groups, those that lie beside each other with one request."""
    if not keep or len(groups) > 64:
        return _fetched(file, footer, groups, columns)
    missing: list[int] = []
    found: dict[int, pa.Table] = {}
    names = tuple(columns)
    for group in groups:
        # What is not there is noted, and fetched with the others.
        known = _ROWS.peek((file.key, file.file_size_bytes, group, names))
        if known is None:
            missing.append(group)
        else:
            found[group] = known
    if missing:
        for group, part in zip(missing, _each(file, footer, missing, columns), strict=True):
            found[group] = part
            _ROWS.put((file.key, file.file_size_bytes, group, names), part)
    return pa.concat_tables([found[group] for group in groups])


def _each(
    file: SegmentFile, footer: Footer, groups: Sequence[int], columns: Sequence[str]
) -> Generator[pa.Table]:
    """Row groups as tables that share no memory."""
    if len(groups) == 1 or getattr(file, "is_on_disk", False):
        with _reading(file) as source:
            parquet = _opened(source, footer, ahead=len(groups) == 1)
            for group in groups:
                yield _read(parquet, footer, [group], columns)
        return
    # All at once, so that requests wait beside each other.
    table = _fetched(file, footer, groups, columns)
    first = 0
    for group in groups:
        # Several were read as one table; slices of it would keep all of it in memory.
        yield _copied(table.slice(first, footer.rows[group]))
        first += footer.rows[group]


def _fetched(file: SegmentFile, footer: Footer, groups: Sequence[int], columns: Sequence[str]) -> pa.Table:
    with _reading(file) as source:
        return _read(_opened(source, footer, ahead=True), footer, groups, columns)


def _opened(source: pa.NativeFile, footer: Footer, *, ahead: bool) -> pq.ParquetFile:
    return pq.ParquetFile(
        source,
        metadata=footer.metadata,
        # Columns that lie beside each other are one request.
        pre_buffer=ahead,
        page_checksum_verification=True,
    )


def _read(parquet: pq.ParquetFile, footer: Footer, groups: Sequence[int], columns: Sequence[str]) -> pa.Table:
    table = parquet.read_row_groups(list(groups), columns=list(columns), use_threads=False)
    if table.num_rows != sum(footer.rows[group] for group in groups):
        raise ValueError("it has fewer entries than its footer says")
    return table.combine_chunks()


def _copied(table: pa.Table) -> pa.Table:
    # Written down, a slice is nothing but its own rows, and that takes a tenth of what `take` does.
    batches = [pa.ipc.read_record_batch(batch.serialize(), table.schema) for batch in table.to_batches()]
    return pa.Table.from_batches(batches, table.schema)


@contextmanager
def _reading(file: SegmentFile) -> Generator[pa.NativeFile]:
    """A segment that is open for the time of the block; what is wrong with it is told as one error."""
    try:
        with file.open() as source:
            yield source
    except StorageError:
        raise
    except (OSError, pa.ArrowException, ValueError, KeyError, TypeError) as error:
        reason = str(error).partition("\n")[0][:200]
        raise UnreadableIndex(
            f"the index file {file.key} cannot be read ({reason}): its data files are scanned; "
            "drop the index and create it again if that stays so"
        ) from error


def forget(*, footers: bool = True) -> None:
    """Empty the memory of row groups, and of footers too, for measurements of what is read."""
    if footers:
        _FOOTERS.clear()
    _ROWS.clear()
