"""Making Parquet files that exist part of a table, without copying them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from forklake.commit.draft import Draft
from forklake.data.existing import Existing, Inspection
from forklake.data.storage import Storage
from forklake.errors import FileMissing, InvalidArgument, InvalidData
from forklake.model.entities import Table
from forklake.model.ids import MappingId
from forklake.model.mapping import MappedName, Mapping

_THREADS = 8
_KINDS = ("field_id", "by_name", "by_position")


def check_mapping(mapping: object) -> None:
    """Refuse what is no way to find columns."""
    if not (mapping in _KINDS if isinstance(mapping, str) else isinstance(mapping, dict)):
        kinds = ", ".join(map(repr, _KINDS))
        raise InvalidArgument(f"mapping is {kinds} or a dict of names in files to columns, not {mapping!r}")


def find_files(storage: Storage, paths: str | Path | Sequence[str | Path]) -> list[tuple[str, bool]]:
    """Every file that is meant, as a path and whether it is relative to the data path of the lake."""
    listed = [paths] if isinstance(paths, str | Path) else list(paths)
    found: dict[tuple[str, bool], None] = {}
    for path in listed:
        for file in _expanded(str(path)):
            found[_placed(storage, file)] = None
    if not found:
        raise FileMissing(f"there are no Parquet files at {', '.join(map(str, listed)) or 'no path at all'}")
    return list(found)


def _expanded(path: str) -> Iterator[str]:
    if "://" in path:
        yield path
        return
    local = Path(path).absolute()
    if local.is_dir():
        # Names that begin so are bookkeeping of other writers.
        files = (file for file in sorted(local.rglob("*.parquet")) if not file.name.startswith(("_", ".")))
        yield from map(str, files)
    else:
        yield str(local)


def _placed(storage: Storage, path: str) -> tuple[str, bool]:
    if path.startswith(storage.data_path):
        return path.removeprefix(storage.data_path), True
    return path, False


def inspect(inspection: Inspection, files: Sequence[tuple[str, bool]]) -> list[Existing]:
    """Look into every file; the first that does not fit refuses all."""
    with ThreadPoolExecutor(_THREADS, "forklake-import") as pool:
        return list(pool.map(lambda file: inspection.inspect(*file), files))


def stage(draft: Draft, table: Table, found: Iterable[Existing]) -> int:
    """Make files part of a table; returns how many rows they have."""
    staged = draft.staged(table)
    source = draft.source(table)
    known = {file.path for file in source.reader.files()} if source.is_stored else set[str]()
    known |= {file.path for file in source.uncommitted.files}
    mappings: dict[tuple[MappedName, ...], MappingId] = {}
    rows = 0
    for existing in found:
        written = existing.written
        if written.path in known:
            raise InvalidData(f"{written.path} is part of the table already")
        mapping_id: MappingId | None = None
        if existing.names:
            if existing.names not in mappings:
                mapping_id = mappings[existing.names] = MappingId(staged.new_id())
                staged.mappings[mapping_id] = Mapping(mapping_id, existing.names)
            mapping_id = mappings[existing.names]
        if written.record_count:
            staged.add_file(written, mapping_id=mapping_id)
            rows += written.record_count
    return rows
