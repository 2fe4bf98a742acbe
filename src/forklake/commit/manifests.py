"""From manifests to a draft: one attempt of each piece of work is taken, checked and staged."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from forklake.commit.draft import Draft
from forklake.commit.staged import NOT_YET, NewMappings, StagedRows
from forklake.data.parquet.delete_files import lost_positions, positions_of
from forklake.data.parquet.positions import without
from forklake.data.storage.storage import Storage
from forklake.errors import InvalidManifest
from forklake.lazy.arrow import pa, pc
from forklake.model.distributed import DistributedSnapshot
from forklake.model.entities import Table
from forklake.model.ids import ROW_ID_COLUMN, CatalogId, DataFileId, DeleteFileId, TableId
from forklake.model.manifest import DeleteFilePart, Entry, FilePart, Manifest, PositionsPart, RemovalPart
from forklake.model.names import is_absolute
from forklake.model.table.files import DeleteFile, WrittenDeletes, is_disjoint
from forklake.scan.scan_plan import Positions, ScanFile, ScanRows, plan_files

Place = ScanFile | ScanRows


@dataclass(frozen=True, slots=True)
class Assembled:
    """The manifests that count, and those that do not."""

    taken: tuple[Manifest, ...]
    lost: tuple[Manifest, ...]
    """Other attempts at the same pieces of work."""

    @property
    def digest(self) -> str:
        """What tells this from any other choice of manifests."""
        return hashlib.sha256("\n".join(sorted(one.digest for one in self.taken)).encode()).hexdigest()

    @property
    def files(self) -> dict[str, int]:
        """Every file that is taken, with its size."""
        return {path: size for manifest in self.taken for path, size in manifest.sizes}

    @property
    def losses(self) -> list[str]:
        """The files of attempts that were not taken."""
        kept = self.files
        return [path for manifest in self.lost for path in manifest.paths if path not in kept]

    @property
    def parts(self) -> set[str]:
        """The names of the pieces of work."""
        return {manifest.part for manifest in self.taken}


def assemble(ds: DistributedSnapshot, manifests: Iterable[Manifest]) -> Assembled:
    """Choose one attempt of each piece, always the same one, whatever the order they come in."""
    known = {table.id for table in ds.tables}
    every: dict[tuple[str, str], Manifest] = {}
    for manifest in manifests:
        if (manifest.reservation_id, manifest.commit_uuid) != (ds.reservation_id, ds.commit_uuid):
            raise InvalidManifest(
                f"{_named(manifest)} belongs to the distributed snapshot {manifest.reservation_id}, "
                f"and not to {ds.reservation_id}"
            )
        about = {*manifest.tables, *(entry.table_id for entry in manifest.entries)}
        if not about <= known:
            raise InvalidManifest(
                f"{_named(manifest)} is about table {min(about - known)}, which this distributed snapshot "
                "does not have"
            )
        every.setdefault((manifest.piece, manifest.attempt), manifest)
    taken: list[Manifest] = []
    lost: list[Manifest] = []
    tables: dict[str, dict[TableId, str]] = {}
    for (piece, _), manifest in sorted(every.items()):
        owners = tables.setdefault(manifest.part, {})
        if all(owners.get(table) == piece for table in manifest.tables) and owners:
            lost.append(manifest)
        elif any(table in owners for table in manifest.tables):
            raise InvalidManifest(
                f'part "{manifest.part}" is given with different tables: give what is done together one '
                "manifest, by Manifest.joined"
            )
        else:
            owners |= dict.fromkeys(manifest.tables, piece)
            taken.append(manifest)
    return Assembled(tuple(taken), tuple(lost))


def _named(manifest: Manifest) -> str:
    return manifest.path or f'the manifest of part "{manifest.part}"'


@dataclass(frozen=True, slots=True)
class Staged:
    """What was staged."""

    files: int = 0
    rows: int = 0
    deleted: int = 0


def stage(draft: Draft, storage: Storage, ds: DistributedSnapshot, assembled: Assembled) -> Staged:
    """Do to a draft what the manifests say."""
    by_table: dict[TableId, list[Entry]] = {}
    looked = {t for one in assembled.taken if one.unless_there for t in one.tables}
    # Rows are numbered in the order of the parts.
    for manifest in sorted(assembled.taken, key=lambda one: _place(one.part)):
        for entry in manifest.entries:
            by_table.setdefault(entry.table_id, []).append(entry)
    files = rows = deleted = 0
    for number in sorted(by_table):
        table = draft.table(number)
        staging = _Staging(table, draft.staged(table), storage, draft)
        staging.stage(by_table[number])
        staging.staged.looked |= number in looked
        files += len(staging.staged.added)
        rows += sum(file.written.record_count for file in staging.staged.added.values())
        deleted += staging.staged.removed
    return Staged(files, rows, deleted)


def _place(part: str) -> tuple[int, str]:
    return (int(part), "") if part.isdecimal() and part.isascii() else (-1, part)


class _Staging:
    """One table, while what happens to it is staged."""

    def __init__(self, table: Table, staged: StagedRows, storage: Storage, draft: Draft) -> None:
        self.table = table
        self.staged = staged
        self.storage = storage
        self.draft = draft
        self.gone = 0
        """How many rows went, of files of the base and of those that the transaction added."""

    def stage(self, entries: Sequence[Entry]) -> None:
        """Take rows away, then add files."""
        added = [entry for entry in entries if isinstance(entry, FilePart)]
        removals = [entry for entry in entries if isinstance(entry, RemovalPart)]
        deletes = [entry for entry in entries if isinstance(entry, DeleteFilePart | PositionsPart)]
        wanted = {file for entry in removals for file in entry.data_file_ids}
        wanted |= {entry.data_file_id for entry in deletes}
        places = self._places(wanted) if wanted else {}
        moved = self._remove(removals, places)
        self._delete(deletes, places)
        self._check_counts(added, moved)
        self._check_ids(added)
        self._add(added)

    def _places(self, wanted: set[DataFileId]) -> dict[DataFileId, Place]:
        source = self.draft.source(self.table)
        plan = plan_files(source, [file for file in source.reader.files() if file.id in wanted])
        places: dict[DataFileId, Place] = {place.file.id: place for place in (*plan.files, *plan.rows)}
        missing = wanted - places.keys()
        if missing:
            raise InvalidManifest(
                f'table "{self.table.name}" has no data file {min(missing)} at snapshot '
                f"{self.draft.head.snapshot_id}, from which rows should go"
            )
        return places

    def _remove(self, removals: Sequence[RemovalPart], places: dict[DataFileId, Place]) -> int:
        """Take whole files away; gives how many rows live on in others."""
        moved = 0
        for removal in removals:
            for file in removal.data_file_ids:
                if file in self.staged.retired:
                    if (file in self.staged.moved) != removal.moved:
                        raise InvalidManifest(f"data file {file} is said to be removed, and to be moved")
                    if removal.moved:
                        raise InvalidManifest(f"data file {file} is moved by two parts")
                    continue
                if removal.moved:
                    moved += places[file].live_rows
                else:
                    self.gone += places[file].live_rows
                self.staged.retire(places[file], moved=removal.moved)
        return moved

    def _delete(
        self, deletes: Sequence[DeleteFilePart | PositionsPart], places: dict[DataFileId, Place]
    ) -> None:
        by_file: dict[DataFileId, list[DeleteFilePart | PositionsPart]] = {}
        for entry in deletes:
            by_file.setdefault(entry.data_file_id, []).append(entry)
        for file, parts in by_file.items():
            place = places[file]
            if file in self.staged.retired:
                raise InvalidManifest(f"data file {file} is removed, and loses single rows as well")
            if len(parts) == 1 and isinstance(parts[0], DeleteFilePart) and isinstance(place, ScanFile):
                self._adopt(parts[0], place)
            else:
                self._merge(parts, place)

    def _adopt(self, part: DeleteFilePart, place: ScanFile) -> None:
        """A delete file that knows all that was lost before is used as it is."""
        before = place.file.deletes
        known = 0 if place.deleted is None else len(place.deleted)
        seen = (None if before is None else before.id, known)
        if (part.replaces, part.known) != seen or not is_disjoint(part.path):
            self._merge([part], place)
            return
        named = 0 if before is None else before.own_count
        if not named < part.delete_count <= place.file.record_count - known:
            raise InvalidManifest(
                f"{part.path} names {part.delete_count} rows of a file that has {place.file.record_count} "
                f"and had lost {named} through its delete file and {known} inline"
            )
        about = (part.path, part.delete_count, part.file_size_bytes, part.footer_size)
        self.staged.adopt_deletes(place, WrittenDeletes(place.file.id, *about))
        self.gone += part.delete_count - named

    def _merge(self, parts: Sequence[DeleteFilePart | PositionsPart], place: Place) -> None:
        """Rows that several parts take from one file, or whoever did not look at what it had lost."""
        before = lost_positions(self.storage, place.file.deletes, place.deleted)
        found: list[Positions] = []
        for part in parts:
            if isinstance(part, PositionsPart):
                listed = pa.array(part.positions, pa.int64())
                if len(before) and pc.any(pc.is_in(listed, value_set=before)).as_py():
                    raise self._gone(place)
                found.append(listed)
            else:
                named = self._read(part)
                found.append(without(named, before))
        positions = pc.unique(pa.concat_arrays(found)).sort()
        if (
            len(positions)
            and not 0 <= positions[0].as_py() <= positions[-1].as_py() < place.file.record_count
        ):
            raise self._gone(place)
        if len(positions):
            self.gone += self.staged.delete({place.file.id: (place, positions)})

    def _read(self, part: DeleteFilePart) -> Positions:
        file = DeleteFile(
            DeleteFileId(-1),
            CatalogId(-1),
            self.draft.head.snapshot_id,
            part.data_file_id,
            part.path,
            not is_absolute(part.path),
            part.delete_count,
            part.file_size_bytes,
            part.footer_size,
        )
        return positions_of(self.storage, file)

    def _gone(self, place: Place) -> InvalidManifest:
        return InvalidManifest(
            f'data file {place.file.id} of table "{self.table.name}" has no row at one of the positions that '
            f"are to be deleted, or had none at snapshot {self.draft.head.snapshot_id}"
        )

    def _check_counts(self, added: Sequence[FilePart], moved: int) -> None:
        """Rows that carry an id were there before: no more of them come back than have gone."""
        carried = [part for part in added if part.newest_row is not None]
        arrived = sum(part.written.record_count for part in carried)
        if arrived != moved:
            raise InvalidManifest(
                f'files of table "{self.table.name}" with {moved} rows are moved, and {arrived} rows have '
                "come in their place: a part is missing, or was counted twice"
            )
        rewritten = sum(part.row_ids for part in added if part.newest_row is None)
        if rewritten > self.gone:
            raise InvalidManifest(
                f'{rewritten} rows of table "{self.table.name}" are rewritten, and only '
                f"{self.gone} are deleted: a row would be there twice"
            )

    def _check_ids(self, added: Sequence[FilePart]) -> None:
        """Ids and snapshots that rows carry can be theirs, as far as footers tell."""
        newest = self.draft.head.snapshot_id
        for part in added:
            if part.newest_row is not None and newest < part.newest_row < NOT_YET:
                raise InvalidManifest(
                    f"{part.written.path} has rows of snapshot {part.newest_row}, which is later than "
                    f"{newest}: they cannot have been moved"
                )
            for stats in part.written.stats:
                if stats.column_id == ROW_ID_COLUMN and stats.min_value and int(stats.min_value) < 0:
                    raise InvalidManifest(
                        f"{part.written.path} has a row with the id {stats.min_value}: rows carry the ids "
                        "that they were read with"
                    )

    def _add(self, added: Sequence[FilePart]) -> None:
        mappings = NewMappings(self.staged)
        for part in added:
            mapping = mappings.of(part.names, part.signature)
            self.staged.add_file(part.written, mapping_id=mapping, newest_row=part.newest_row, elsewhere=True)
