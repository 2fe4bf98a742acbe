"""Rows that live in the metadata database: an Arrow stream as text, which every backend can store."""

from __future__ import annotations

from base64 import b64decode, b64encode

from forklake.errors import CorruptMetadata
from forklake.lazy.arrow import pa


def encode(rows: pa.Table) -> str:
    """Rows with the field ids of their columns, as text."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows.combine_chunks())
    return b64encode(sink.getvalue()).decode("ascii")


def decode(text: str) -> pa.Table:
    """The rows that `encode` wrote."""
    try:
        return pa.ipc.open_stream(b64decode(text, validate=True)).read_all()
    except (ValueError, pa.ArrowException, OSError) as error:
        raise CorruptMetadata(f"inlined rows cannot be read: {error}") from error
