"""Segments of tantivy: written, put into one index by hard links, and made one.

tantivy says in `meta.json` which segments an index has, and nowhere else. So an index of any segments is a
folder with links to their files and a `meta.json` that lists them; its statistics are those of all of them,
as if it had been written at once. The format of that file is not documented: tests hold it with the version
of tantivy that is required.
"""

from __future__ import annotations

import json
import os
import struct
import tempfile
import zlib
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from forklake.errors import UnreadableIndex
from forklake.index.bm25.analysis import analyzer_of
from forklake.lazy.arrow import pa
from forklake.lazy.tantivy import tantivy
from forklake.model.index import IndexSpec

PART, POSITION = "part", "position"
"""Fast fields: which part of its segment a row is of, and its position in the data file."""

_ANALYZER = "forklake"
_HEAP = 128 << 20
_SMALL_HEAP = 15 << 20
_META = "meta.json"
_MAGIC = 1337
_POLICY = 8
"""How many segments of about one size tantivy merges, and no fewer."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One segment of tantivy, and the folder with its files."""

    folder: Path
    meta: Mapping[str, Any]
    """What an index says of its segment in `meta.json`."""

    @property
    def stem(self) -> str:
        """What the names of its files begin with."""
        return str(self.meta["segment_id"]).replace("-", "")

    @property
    def documents(self) -> int:
        """How many rows it has."""
        return int(self.meta["max_doc"])

    def files(self) -> list[Path]:
        """Its files, those of deleted rows left out."""
        return sorted(path for path in self.folder.glob(f"{self.stem}.*") if path.suffix != ".del")


def fields(spec: IndexSpec) -> dict[str, str]:
    """The fields of the columns, by the names of columns in small letters. Names change, and ids do not."""
    return {column.name.casefold(): field_of(column.id) for column in spec.keys}


def field_of(column: int) -> str:
    """The field of tantivy that holds a column."""
    return f"c{column}"


def schema_of(spec: IndexSpec) -> tantivy.Schema:
    """What tantivy keeps of a row."""
    builder = tantivy.SchemaBuilder()
    for column in spec.keys:
        builder.add_text_field(field_of(column.id), tokenizer_name=_ANALYZER)
    builder.add_unsigned_field(PART, fast=True)
    builder.add_unsigned_field(POSITION, fast=True)
    return builder.build()


@contextmanager
def reading(key: str) -> Generator[None]:
    """`UnreadableIndex` if tantivy finds a segment that it cannot read."""
    try:
        yield
    except OSError as error:
        raise UnreadableIndex(f"the index file {key} cannot be read: {error}") from error
    except ValueError as error:
        raise UnreadableIndex(f"the index file {key} is damaged: {error}") from error
    except BaseException as error:
        # What tantivy did not expect ends as an exception that no `except Exception` sees.
        if type(error).__name__ != "PanicException":
            raise
        raise UnreadableIndex(f"the index file {key} is damaged: {error}") from error


def write_rows(folder: Path, spec: IndexSpec, parts: Iterable[tuple[int, Iterable[pa.RecordBatch]]]) -> None:
    """Write an index of rows, those without any text left out, into an empty folder.

    Each part has a number of its own among all that there will ever be.
    """
    index = tantivy.Index(schema_of(spec), path=str(folder))
    index.register_tokenizer(_ANALYZER, analyzer_of(spec.params))
    columns = [(str(column.id), field_of(column.id)) for column in spec.keys]
    # One thread: rows stay in order, and so do those of the same score.
    writer = index.writer(heap_size=_HEAP, num_threads=1)
    for number, batches in parts:
        first = 0
        for batch in batches:
            _add(writer, batch, columns, number, first)
            first += batch.num_rows
    writer.commit()
    writer.wait_merging_threads()


def _add(
    writer: tantivy.IndexWriter,
    batch: pa.RecordBatch,
    columns: Sequence[tuple[str, str]],
    part: int,
    first: int,
) -> None:
    names = [field for _, field in columns]
    # tantivy takes texts one by one.
    texts = [batch.column(name).to_pylist() for name, _ in columns]
    for position, row in enumerate(zip(*texts, strict=True), first):
        document = tantivy.Document()
        is_empty = True
        for field, text in zip(names, row, strict=True):
            if text is not None:
                document.add_text(field, text)
                is_empty = False
        if is_empty:
            continue
        document.add_unsigned(PART, part)
        document.add_unsigned(POSITION, position)
        writer.add_document(document)


def pieces(folder: Path) -> list[Piece]:
    """The segments of an index."""
    return [Piece(folder, meta) for meta in read_meta(folder)["segments"]]


def read_meta(folder: Path) -> dict[str, Any]:
    """What an index says of itself."""
    return json.loads((folder / _META).read_text())


def join(folder: Path, found: Sequence[Piece], meta: Mapping[str, Any]) -> None:
    """Make a folder an index of these segments, in this order. `meta` is that of any index of the kind.

    Segments whose files are in the folder already stay where they are.
    """
    for piece in found:
        if piece.folder != folder:
            for file in piece.files():
                (folder / file.name).hardlink_to(file)
    listed = [{**piece.meta, "deletes": None} for piece in found]
    (folder / _META).write_text(json.dumps({**meta, "segments": listed, "payload": None}))
    (folder / ".managed.json").write_text("[]")


def opened(folder: Path) -> tantivy.Index:
    """The index of a folder. Nobody watches the folder, which may go once a searcher was made."""
    index = tantivy.Index.open(str(folder))
    index.config_reader("manual")
    return index


def delete_parts(folder: Path, numbers: Iterable[int]) -> None:
    """Delete the rows of some parts."""
    index = tantivy.Index.open(str(folder))
    writer = index.writer(heap_size=_SMALL_HEAP, num_threads=1)
    unsigned = tantivy.FieldType.Unsigned
    for number in numbers:
        query = tantivy.Query.range_query(index.schema, PART, unsigned, number, number)
        writer.delete_documents_by_query(query)
    writer.commit()
    writer.wait_merging_threads()


def make_one(folder: Path, spec: IndexSpec) -> Piece | None:
    """Merge all segments of an index into one without deleted rows; None if there is no row.

    tantivy merges eight segments of about one size, and nobody can ask it to merge others. It is told that
    all are small, by numbers of deleted rows which nothing but that choice reads: the rows themselves are
    counted by the bitmap. Empty segments fill up the eight.
    """
    found = pieces(folder)
    if not found:
        return None
    if len(found) == 1 and not found[0].meta["deletes"]:
        return found[0]
    meta = read_meta(folder)
    expected = sum(piece.documents - _deleted(piece) for piece in found)
    stamp = int(meta["opstamp"]) + 1
    listed: list[dict[str, Any]] = []
    for piece in found:
        if piece.documents > 1 and not piece.meta["deletes"]:
            _write_bitmap(piece, stamp, alive=True)
        at = piece.meta["deletes"]["opstamp"] if piece.meta["deletes"] else stamp
        # A segment of one row is small as it is.
        lie = {"num_deleted_docs": piece.documents - 1, "opstamp": at} if piece.documents > 1 else None
        listed.append({**piece.meta, "deletes": lie})
    for filler in _fillers(folder, spec, _POLICY - len(found)):
        _write_bitmap(filler, stamp, alive=False)
        listed.append({**filler.meta, "deletes": {"num_deleted_docs": 1, "opstamp": stamp}})
    (folder / _META).write_text(json.dumps({**meta, "segments": listed, "opstamp": stamp}))
    writer = tantivy.Index.open(str(folder)).writer(heap_size=_SMALL_HEAP, num_threads=1)
    writer.commit()
    writer.wait_merging_threads()
    merged = pieces(folder)
    if len(merged) != 1 or merged[0].meta["deletes"] or merged[0].documents != expected:
        raise AssertionError(f"tantivy made {[piece.meta for piece in merged]} of {listed}")
    return merged[0]


def _deleted(piece: Piece) -> int:
    return int(piece.meta["deletes"]["num_deleted_docs"]) if piece.meta["deletes"] else 0


def _fillers(folder: Path, spec: IndexSpec, number: int) -> Generator[Piece]:
    """Segments of two rows. Only the names of files say which segment they are of: one is written for all."""
    if number <= 0:
        return
    with tempfile.TemporaryDirectory(dir=folder) as name:
        text = {str(column.id): ["x", "x"] for column in spec.keys}
        write_rows(Path(name), spec, [(0, [pa.record_batch(text)])])
        (written,) = pieces(Path(name))
        for _ in range(number):
            filler = Piece(folder, {**written.meta, "segment_id": str(uuid4())})
            for file in written.files():
                (folder / f"{filler.stem}{file.suffix}").hardlink_to(file)
            yield filler


def _write_bitmap(piece: Piece, stamp: int, *, alive: bool) -> None:
    """Say of every row that it is there, or that it is deleted, as tantivy does: bits and a footer."""
    whole, rest = divmod(piece.documents, 64)
    words = struct.pack("<Q", 2**64 - 1 if alive else 0) * whole
    if rest:
        words += struct.pack("<Q", (1 << rest) - 1 if alive else 0)
    body = struct.pack("<I", piece.documents) + words
    footer = json.dumps({"version": _version(piece), "crc": zlib.crc32(body)}).encode()
    path = piece.folder / f"{piece.stem}.{stamp}.del"
    path.write_bytes(body + footer + struct.pack("<II", len(footer), _MAGIC))


def _version(piece: Piece) -> object:
    """What the footer of a file of the segment says of who wrote it."""
    with (piece.folder / f"{piece.stem}.fieldnorm").open("rb") as stream:
        stream.seek(-8, os.SEEK_END)
        length, magic = struct.unpack("<II", stream.read(8))
        if magic != _MAGIC:
            raise UnreadableIndex(f"{piece.stem} has no footer of tantivy: drop and create the index again")
        stream.seek(-8 - length, os.SEEK_END)
        return json.loads(stream.read(length))["version"]
