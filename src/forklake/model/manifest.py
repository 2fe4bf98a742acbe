"""What one piece of work does to tables, as lines of JSON with a checksum. Pure.

The first line says whose it is, each other line is one file or one set of rows, and the last line counts and
sums them up: a text that was cut anywhere, or changed, is told from a whole one. What is known of the columns
of a file stands in a line of its own, which is read when it is needed: of very many files, that is most.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from typing import Any, Self

from forklake.errors import InvalidManifest
from forklake.lazy.msgspec import msgspec
from forklake.model.ids import ColumnId, DataFileId, DeleteFileId, SnapshotId, TableId
from forklake.model.table.files import ColumnStats, WrittenFile
from forklake.model.table.name_mapping import MappedName

_FORMAT = "forklake/manifest/1"


@dataclass(frozen=True, slots=True, eq=False)
class PackedStats(Sequence[ColumnStats]):
    """What is known of the columns of a file, as the line of its manifest."""

    line: str

    def __iter__(self) -> Iterator[ColumnStats]:
        """Column by column."""
        return (ColumnStats(*entry) for entry in msgspec.json.decode(self.line)["stats"])

    def __getitem__(self, place: Any) -> Any:
        """By place."""
        return tuple(self)[place]

    def __len__(self) -> int:
        """How many columns."""
        return len(msgspec.json.decode(self.line)["stats"])

    def __eq__(self, other: object) -> bool:
        """Whether the same is known."""
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        """That of the values."""
        return hash(tuple(self))


@dataclass(frozen=True, slots=True)
class FilePart:
    """A data file to be committed."""

    table_id: TableId
    written: WrittenFile
    row_ids: int = 0
    """How many of its rows carry an id: those take the place of others."""
    newest_row: SnapshotId | None = None
    """If its rows were there before and carry their snapshots: the last of those."""
    names: tuple[MappedName, ...] = ()
    """What the file calls the columns, if field ids do not say it all."""
    signature: str = ""
    """Files that differ in it cannot be read by one call, where names count."""


@dataclass(frozen=True, slots=True)
class DeleteFilePart:
    """A delete file to be committed: all deleted positions of a data file that are not inlined."""

    table_id: TableId
    data_file_id: DataFileId
    path: str
    delete_count: int
    file_size_bytes: int
    footer_size: int
    replaces: DeleteFileId | None = None
    """The delete file whose rows it names too."""
    known: int = 0
    """How many rows had been deleted inline before; it names none of them."""


@dataclass(frozen=True, slots=True)
class PositionsPart:
    """Deleted positions of a data file, few enough to be listed."""

    table_id: TableId
    data_file_id: DataFileId
    positions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RemovalPart:
    """Data files to be removed as a whole."""

    table_id: TableId
    data_file_ids: tuple[DataFileId, ...]
    moved: bool = False
    """Whether their rows are in new files of this snapshot, as after a compaction."""


Entry = FilePart | DeleteFilePart | PositionsPart | RemovalPart


@dataclass(frozen=True, slots=True)
class Manifest:
    """What one try at one part wrote. The commit takes one manifest of each part."""

    reservation_id: str
    commit_uuid: str
    part: str
    """The name of the part. Manifests of one part and the same tables are tries at the same work."""
    attempt: str
    tables: tuple[TableId, ...]
    """The tables that it is about, even if nothing was written."""
    entries: tuple[Entry, ...] = ()
    unless_there: bool = False
    """Whether rows were inserted because no row had their key: fails if others inserted rows meanwhile."""
    path: str | None = field(default=None, compare=False)
    """The path of its file, if it is stored in one."""
    _digest: str | None = field(default=None, init=False, compare=False, repr=False)
    """What the text that it was read from said."""

    @property
    def files(self) -> list[FilePart]:
        """The data files that it adds."""
        return [entry for entry in self.entries if isinstance(entry, FilePart)]

    @property
    def rows(self) -> int:
        """The number of rows in its data files."""
        return sum(entry.written.record_count for entry in self.files)

    @property
    def paths(self) -> list[str]:
        """Every file that was written for it, relative to the data path of the lake or absolute."""
        return [path for path, _ in self.sizes]

    @property
    def sizes(self) -> list[tuple[str, int]]:
        """Every file that was written for it, with its size."""
        return [(path, size) for entry in self.entries for path, size in _sizes(entry)]

    @property
    def digest(self) -> str:
        """What tells it from all others."""
        return self._digest or _sum(list(self._body()))

    @property
    def piece(self) -> str:
        """The same for all attempts at one piece of work, and fit for the name of a file."""
        about = msgspec.json.encode([self.part, sorted(self.tables)])
        return hashlib.sha256(about).hexdigest()[:20]

    def to_json(self) -> str:
        """The value as JSON, for another process."""
        body = list(self._body())
        end = {"lines": len(body), "sha256": _sum(body)}
        return "\n".join((*body, _text(end))) + "\n"

    @classmethod
    def from_json(cls, text: str, *, path: str | None = None) -> Self:
        """Parse and check the JSON that `to_json` returned. `path` is where it was stored."""
        *body, last = text.rstrip("\n").split("\n")
        digest = _sum(body)
        try:
            whole = msgspec.json.decode(last) == {"lines": len(body), "sha256": digest}
        except ValueError:
            whole = False
        if not whole:
            raise InvalidManifest(
                f"{path or 'a manifest'} is torn or was changed: its end is missing, or does not fit the "
                "rest; write the part again"
            )
        try:
            head = msgspec.json.decode(body[0])
            if head.pop("format") != _FORMAT:
                raise ValueError("it was written by another version")
            head["tables"] = tuple(head["tables"])
            read = cls(**head, entries=tuple(_entries(body[1:])), path=path)
            object.__setattr__(read, "_digest", digest)
            return read
        except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
            raise InvalidManifest(f"{path or 'a manifest'} cannot be read: {error!r}") from error

    @classmethod
    def joined(cls, manifests: Iterable[Manifest]) -> Self:
        """Combine manifests of one part that touches several tables."""
        first, *others = manifests
        if any((other.commit_uuid, other.part) != (first.commit_uuid, first.part) for other in others):
            raise InvalidManifest("only manifests of one part of one distributed snapshot can be joined")
        every = (first, *others)
        return cls(
            first.reservation_id,
            first.commit_uuid,
            first.part,
            first.attempt,
            tuple(dict.fromkeys(table for one in every for table in one.tables)),
            tuple(entry for one in every for entry in one.entries),
            any(one.unless_there for one in every),
        )

    def at(self, path: str) -> Self:
        """The same, kept in a file."""
        return replace(self, path=path)

    def _body(self) -> Iterator[str]:
        yield _text(
            {
                "format": _FORMAT,
                "reservation_id": self.reservation_id,
                "commit_uuid": self.commit_uuid,
                "part": self.part,
                "attempt": self.attempt,
                "tables": self.tables,
                "unless_there": self.unless_there,
            }
        )
        for entry in self.entries:
            yield _text(_plain(entry))
            if isinstance(entry, FilePart):
                stats = entry.written.stats
                packed = isinstance(stats, PackedStats)
                yield stats.line if packed else _text({"stats": [_from_stats(one) for one in stats]})


def _sizes(entry: Entry) -> Iterator[tuple[str, int]]:
    match entry:
        case FilePart(written=written):
            yield written.path, written.file_size_bytes
        case DeleteFilePart():
            yield entry.path, entry.file_size_bytes
        case _:
            pass


def _text(value: Mapping[str, Any]) -> str:
    # Line breaks inside of texts are escaped, so a line is a line.
    return msgspec.json.encode(value).decode()


def _sum(lines: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _plain(entry: Entry) -> dict[str, Any]:
    match entry:
        case FilePart():
            return {"file": _from_file(entry)}
        case DeleteFilePart():
            return {"deletes": astuple(entry)}
        case PositionsPart():
            return {"positions": [entry.table_id, entry.data_file_id, entry.positions]}
        case RemovalPart():
            return {"removed": [entry.table_id, entry.data_file_ids, entry.moved]}


def _entries(lines: Sequence[str]) -> Iterator[Entry]:
    following = iter(lines)
    for line in following:
        ((kind, about),) = msgspec.json.decode(line).items()
        yield _to_file(about, next(following)) if kind == "file" else _entry(kind, about)


def _entry(kind: str, about: Sequence[Any]) -> Entry:
    match kind:
        case "deletes":
            return DeleteFilePart(*about)
        case "positions":
            table, file, positions = about
            return PositionsPart(table, file, tuple(positions))
        case "removed":
            table, files, moved = about
            return RemovalPart(table, tuple(files), moved)
        case _:
            raise ValueError(f"nobody knows what {kind!r} is")


def _from_file(part: FilePart) -> list[Any]:
    written = part.written
    return [
        part.table_id,
        written.path,
        written.record_count,
        written.file_size_bytes,
        written.footer_size,
        written.path_is_relative,
        written.partition_id,
        written.partition_values,
        written.has_row_ids,
        part.row_ids,
        part.newest_row,
        [astuple(name) for name in part.names],
        part.signature,
    ]


def _to_file(about: Sequence[Any], stats: str) -> FilePart:
    table, path, rows, size, footer, relative, partition, values, ids, carried, newest, names, signature = (
        about
    )
    written = WrittenFile(
        path,
        rows,
        size,
        footer,
        PackedStats(stats),
        relative,
        partition,
        tuple(values),
        ids,
    )
    return FilePart(table, written, carried, newest, tuple(_to_name(name) for name in names), signature)


def _from_stats(stats: ColumnStats) -> list[Any]:
    return [
        stats.column_id,
        stats.value_count,
        stats.null_count,
        stats.min_value,
        stats.max_value,
        stats.min_key,
        stats.max_key,
        stats.contains_nan,
        stats.distinct_count,
        stats.size_bytes,
    ]


def _to_name(about: Sequence[Any]) -> MappedName:
    column, source, parent, is_partition = about
    return MappedName(ColumnId(column), source, parent, is_partition)
