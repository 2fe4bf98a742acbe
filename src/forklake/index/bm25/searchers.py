"""Searchers of several segments with one set of statistics, the last ones kept in memory."""

from __future__ import annotations

import secrets
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from forklake.errors import UnreadableIndex
from forklake.index.archive import Archive, Format, open_archive, torn
from forklake.index.bm25.analysis import index_format
from forklake.index.bm25.segments import (
    Piece,
    join,
    opened,
    pieces,
    read_meta,
    reading,
    write_rows,
)
from forklake.index.bm25.unpacked import Unpacked
from forklake.index.kind import Segment
from forklake.index.recent import Recent
from forklake.lazy.arrow import pa
from forklake.lazy.tantivy import tantivy
from forklake.model.index import IndexSpec

FORMAT = Format("bm25", 1)

_SEARCHERS = 16
_TRIES = 3

Place = tuple[int, int]
"""The number of a segment among those that were given, and an ordinal in it."""


@dataclass(frozen=True, slots=True)
class Joint:
    """A searcher of segments."""

    searcher: tantivy.Searcher | None
    """None if there is no row."""
    schema: tantivy.Schema | None
    places: Mapping[int, Place]
    """By the number of a part, as rows have it."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A segment on the local disk: its only segment of tantivy, none if it has no row, and its parts."""

    archive: Archive
    piece: Piece | None
    parts: Mapping[int, int]
    """Ordinals by the number of a part."""


_searchers: Recent[Joint] = Recent(_SEARCHERS)


def forget() -> None:
    """Close all searchers."""
    _searchers.clear()


def joint(spec: IndexSpec, segments: Sequence[Segment], loose: pa.Table | None) -> Joint:
    """A searcher of some segments, and of loose rows as segment -1."""
    key: Hashable = (
        tuple(segment.file.key for segment in segments),
        tuple(column.id for column in spec.keys),
        tuple(sorted(spec.params.items())),
        None if loose is None else _digest(loose),
    )
    return _searchers.get(key, lambda: _opened(spec, segments, loose))


def stored(segment: Segment, unpacked: Unpacked) -> Stored:
    """A segment, unpacked."""
    archive = open_archive(segment.file, FORMAT)
    manifest = archive.manifest
    if manifest.get("index_format") != index_format():
        raise UnreadableIndex(
            f"the index file {archive.key} was written by tantivy {manifest.get('tantivy')}, whose format "
            f"{manifest.get('index_format')} is not {index_format()}: drop and create the index again"
        )
    try:
        parts = {int(number): int(ordinal) for number, ordinal in manifest["parts"]}
        meta = manifest["meta"]
        piece = None if meta is None else Piece(unpacked.get(archive), meta)
        if piece is not None and (piece.stem != manifest["segment"] or piece.documents < 1):
            raise torn(archive.key, "its parts do not fit")
    except (KeyError, TypeError, ValueError) as error:
        raise torn(archive.key, f"its description lacks {error}") from error
    return Stored(archive, piece, parts)


def linked(folder: Path, segments: Sequence[Segment], unpacked: Unpacked) -> tuple[list[Stored], list[Piece]]:
    """Segments with links to all of their files in a folder."""
    found = [_linked(folder, segment, unpacked) for segment in segments]
    return found, [Piece(folder, each.piece.meta) for each in found if each.piece is not None]


def _linked(folder: Path, segment: Segment, unpacked: Unpacked) -> Stored:
    for _ in range(_TRIES):
        each = stored(segment, unpacked)
        if each.piece is None:
            return each
        names = set(each.archive.members)
        for name in names:
            (folder / name).unlink(missing_ok=True)
        try:
            for name in names:
                (folder / name).hardlink_to(each.piece.folder / name)
        except FileNotFoundError:
            # Somebody made room just now.
            continue
        return each
    raise UnreadableIndex(
        f"the index file {segment.file.key} does not stay in the cache: raise FORKLAKE_CACHE_BYTES"
    )


def _opened(spec: IndexSpec, segments: Sequence[Segment], loose: pa.Table | None) -> Joint:
    unpacked = Unpacked.from_environment()
    places: dict[int, Place] = {}
    with unpacked.work() as folder:
        found, all_pieces = linked(folder, segments, unpacked)
        for number, each in enumerate(found):
            places |= {part: (number, ordinal) for part, ordinal in each.parts.items()}
        metas: list[Mapping[str, Any]] = [
            each.archive.manifest["index"] for each in found if each.piece is not None
        ]
        if loose is not None and loose.num_rows:
            part = secrets.randbits(63)
            places[part] = (-1, 0)
            own = folder / "loose"
            own.mkdir()
            write_loose(own, spec, loose, part)
            all_pieces += pieces(own)
            metas.append(read_meta(own))
        if not all_pieces:
            return Joint(None, None, places)
        shown = ", ".join(segment.file.key for segment in segments)
        if any(meta["schema"] != metas[0]["schema"] for meta in metas):
            raise UnreadableIndex(
                f"of the index files {shown}, one is of another index: create the index again"
            )
        with reading(shown):
            join(folder, all_pieces, metas[0])
            index = opened(folder)
            return Joint(index.searcher(), index.schema, places)


def write_loose(folder: Path, spec: IndexSpec, loose: pa.Table, part: int) -> None:
    """Write loose rows as an index. Their position is a number of the row, which the caller turns around."""
    write_rows(folder, spec, [(part, loose.select([str(column.id) for column in spec.keys]).to_batches())])


def _digest(table: pa.Table) -> bytes:
    """What two tables have in common only if they have the same rows."""
    found = blake2b(repr((table.schema.names, table.num_rows)).encode(), digest_size=16)
    for column in table.columns:
        for chunk in column.chunks:
            found.update(repr((chunk.type, chunk.offset, len(chunk))).encode())
            for buffer in chunk.buffers():
                found.update(b"-" if buffer is None else buffer.size.to_bytes(8, "little"))
                if buffer is not None:
                    found.update(buffer)
    return found.digest()
