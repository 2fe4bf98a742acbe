"""Rows that live in the metadata database: an Arrow stream as text, which every backend can store."""

from __future__ import annotations

from base64 import b64encode
from binascii import a2b_base64
from collections.abc import Sequence
from itertools import groupby

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


def decode(text: str) -> pa.Table:
    """The rows that `encode` wrote."""
    return decode_all([text])[0]


def decode_all(texts: Sequence[str]) -> list[pa.Table]:
    """The rows of many writes; those with the same columns are read as one stream, which is much faster."""
    try:
        streams = [a2b_base64(text, strict_mode=True) for text in texts]
        return [rows for _, alike in groupby(streams, _schema_message) for rows in _tables(list(alike))]
    except (ValueError, pa.ArrowException, OSError) as error:
        raise CorruptMetadata(f"inlined rows cannot be read: {error}") from error


def _schema_message(stream: bytes) -> bytes:
    """The message that begins a stream: a marker, the length of what follows, and the schema itself."""
    return stream[: 8 + int.from_bytes(stream[4:8], "little")]


def _tables(streams: Sequence[bytes]) -> list[pa.Table]:
    """The rows of streams that have the same schema."""
    schema = _schema_message(streams[0])
    bodies = [stream[len(schema) : -len(_END)] for stream in streams]
    if not all(stream.endswith(_END) for stream in streams):
        raise CorruptMetadata("inlined rows cannot be read: their end is missing")
    batches = list(pa.ipc.open_stream(b"".join([schema, *bodies, _END])))
    if len(batches) == len(streams):
        return [pa.Table.from_batches([batch]) for batch in batches]
    return [pa.ipc.open_stream(stream).read_all() for stream in streams]
