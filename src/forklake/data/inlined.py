"""Rows that live in the metadata database: an Arrow stream as text, which every backend can store."""

from __future__ import annotations

from base64 import b64encode
from binascii import a2b_base64
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from itertools import accumulate
from threading import Lock
from typing import NamedTuple, Self

from forklake.errors import CorruptMetadata
from forklake.lazy.arrow import pa

_END = b"\xff\xff\xff\xff\x00\x00\x00\x00"
"""Ends a stream of Arrow."""
_MOST_CHARACTERS = 32 << 20
"""How much text is remembered with the rows that it stands for."""
_MOST_TABLES = 8
"""From how many tables rows that were decoded one after the other are put together again."""


def encode(rows: pa.Table) -> str:
    """Rows with the field ids of their columns, as text."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows.combine_chunks())
    return b64encode(sink.getvalue()).decode("ascii")


class InlinedRows(NamedTuple):
    """The rows of one write: a stretch of a table that has those of many writes with the same columns."""

    whole: pa.Table
    start: int
    length: int

    @classmethod
    def of(cls, table: pa.Table) -> Self:
        """All rows of a table."""
        return cls(table, 0, table.num_rows)

    def table(self) -> pa.Table:
        """The rows of this write alone."""
        return self.whole.slice(self.start, self.length)


def decode(text: str) -> pa.Table:
    """The rows that `encode` wrote."""
    return decode_all([text])[0].table()


def decode_all(texts: Sequence[str]) -> list[InlinedRows]:
    """The rows of many writes; those with the same columns are read as one stream, which is much faster."""
    found = _decoded.get(texts)
    unknown = [text for text, rows in zip(texts, found, strict=True) if rows is None]
    if not unknown:
        return _few_tables(texts, [rows for rows in found if rows is not None])
    try:
        new = [rows for schema, bodies in _streams(unknown) for rows in _read(schema, bodies)]
    except (ValueError, pa.ArrowException, OSError) as error:
        raise CorruptMetadata(f"inlined rows cannot be read: {error}") from error
    _decoded.put(unknown, new)
    others = iter(new)
    return _few_tables(texts, [next(others) if rows is None else rows for rows in found])


class DecodedRows:
    """What texts that were decoded lately stand for: a text means the same rows, whoever has it."""

    def __init__(self, size: int = _MOST_CHARACTERS) -> None:
        """Start empty."""
        self._size = size
        self._characters = 0
        self._rows: OrderedDict[str, InlinedRows] = OrderedDict()
        self._lock = Lock()

    def get(self, texts: Sequence[str]) -> list[InlinedRows | None]:
        """The rows of each text, where they are known."""
        with self._lock:
            found = [self._rows.get(text) for text in texts]
            for text, rows in zip(texts, found, strict=True):
                if rows is not None:
                    self._rows.move_to_end(text)
            return found

    def put(self, texts: Sequence[str], rows: Sequence[InlinedRows]) -> None:
        """Remember rows; what was used longest ago makes room for them."""
        with self._lock:
            for text, content in zip(texts, rows, strict=True):
                self._characters += 0 if text in self._rows else len(text)
                self._rows[text] = content
            while self._characters > self._size:
                self._characters -= len(self._rows.popitem(last=False)[0])


_decoded = DecodedRows()


def _few_tables(texts: Sequence[str], rows: list[InlinedRows]) -> list[InlinedRows]:
    """The same rows, in one table if they have become many: each read between two writes adds one."""
    first = rows[0].whole if rows else None
    if first is None or all(part.whole is first for part in rows):
        return rows
    tables = {id(part.whole): part.whole for part in rows}
    if len(tables) <= _MOST_TABLES:
        return rows
    if not all(table.schema.equals(first.schema, check_metadata=True) for table in tables.values()):
        return rows
    lengths = [part.length for part in rows]
    whole = pa.concat_tables([part.table() for part in rows]).combine_chunks()
    together = [
        InlinedRows(whole, start, length)
        for start, length in zip(accumulate(lengths, initial=0), lengths, strict=False)
    ]
    _decoded.put(texts, together)
    return together


def _streams(texts: Sequence[str]) -> Iterator[tuple[bytes, list[bytes]]]:
    """The schema of writes in a row that have the same one, and what follows it in the stream of each."""
    at = 0
    while at < len(texts):
        stream = a2b_base64(texts[at], strict_mode=True)
        schema = _schema_message(stream)
        bodies = [stream[len(schema) :]]
        # Four characters are three bytes: a schema that was decoded before is compared as text.
        groups = len(schema) // 3
        head, rest = texts[at][: groups * 4], schema[groups * 3 :]
        at += 1
        while at < len(texts) and texts[at].startswith(head):
            stream = a2b_base64(texts[at][len(head) :], strict_mode=True)
            if not stream.startswith(rest):
                break
            bodies.append(stream[len(rest) :])
            at += 1
        yield schema, bodies


def _schema_message(stream: bytes) -> bytes:
    """The message that begins a stream: a marker, the length of what follows, and the schema itself."""
    return stream[: 8 + int.from_bytes(stream[4:8], "little")]


def _read(schema: bytes, bodies: Sequence[bytes]) -> list[InlinedRows]:
    """The rows of streams that have the same schema."""
    if not all(body.endswith(_END) for body in bodies):
        raise CorruptMetadata("inlined rows cannot be read: their end is missing")
    if len(bodies) > 1:
        table = pa.ipc.open_stream(
            b"".join([schema, *(body[: -len(_END)] for body in bodies), _END])
        ).read_all()
        chunks = table.column(0).chunks if table.num_columns else []
        if len(chunks) == len(bodies):
            lengths = [len(chunk) for chunk in chunks]
            starts = accumulate(lengths, initial=0)
            whole = table.combine_chunks()
            return [InlinedRows(whole, start, length) for start, length in zip(starts, lengths, strict=False)]
    return [InlinedRows.of(pa.ipc.open_stream(schema + body).read_all()) for body in bodies]
