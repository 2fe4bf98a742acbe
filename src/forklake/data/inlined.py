"""Rows that live in the metadata database: an Arrow stream as text, which every backend can store."""

from __future__ import annotations

from base64 import b64encode
from binascii import a2b_base64
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple, Self

from forklake.errors import CorruptMetadata
from forklake.lazy.arrow import pa

_END = b"\xff\xff\xff\xff\x00\x00\x00\x00"
"""Ends a stream of Arrow."""


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
    try:
        return [rows for schema, bodies in _streams(texts) for rows in _read(schema, bodies)]
    except (ValueError, pa.ArrowException, OSError) as error:
        raise CorruptMetadata(f"inlined rows cannot be read: {error}") from error


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
