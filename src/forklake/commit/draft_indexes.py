"""The indexes that a draft shows: those of its base, with what was changed beside them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from uuid import uuid4

from forklake.commit.draft_definitions import DraftDefinitions
from forklake.commit.index_writes import StagedIndexFiles
from forklake.commit.overlay import Overlay
from forklake.commit.staged import NOT_YET
from forklake.errors import IndexExists, IndexNotFound
from forklake.model.alike import alike, instead, pick
from forklake.model.entities import Table
from forklake.model.ids import CatalogId, ColumnId, IndexFileId, IndexId
from forklake.model.index import Index, IndexFile, Maintenance, Parameters, WrittenSegment
from forklake.model.names import check_name
from forklake.model.snapshots import Head
from forklake.scan.table_indexes import TableIndexes
from forklake.store.catalog_state import CatalogState
from forklake.store.indexes import index_files, indexes_now_or_then

_NOWHERE = CatalogId(-1)


class DraftIndexes(DraftDefinitions):
    """Indexes by table and name, and the files that they consist of."""

    def __init__(self, state: CatalogState, head: Head | None = None) -> None:
        """Nothing is changed yet."""
        super().__init__(state, head)
        self._indexes: Overlay[int, Index] = Overlay()
        self._index_files: dict[int, StagedIndexFiles] = {}
        self._created_indexes: set[IndexId] = set()

    def indexes(self, table: Table) -> list[Index]:
        """The indexes of a table, in the order in which they were created."""
        stored = [] if table.id < 0 else self.state.indexes(table.id)
        kept = [index for index in stored if index.id not in self._indexes.now]
        return kept + [index for index in self._indexes.live() if index.table_id == table.id]

    def all_indexes(self) -> list[Index]:
        """The indexes of all tables."""
        kept = [index for index in self.state.all_indexes() if index.id not in self._indexes.now]
        return [index for index in (*kept, *self._indexes.live()) if self._is_kept(index.table_id)]

    def find_index(self, table: Table, name: str) -> Index | None:
        """An index of a table, if there is one of this name. As with all names, case makes no difference."""
        return pick(name, self.indexes(table), "index")

    def index_named(self, table: Table, name: str) -> Index:
        """An index of a table by name."""
        found = self.find_index(table, check_name(name, "index"))
        if found is None:
            known = [index.name for index in self.indexes(table)]
            meant = instead(name, known) if known else "it has none"
            raise IndexNotFound(f'table "{self.name_of(table)}" has no index "{name}": {meant}')
        return found

    def create_index(
        self,
        table: Table,
        name: str,
        kind: str,
        keys: tuple[ColumnId, ...],
        include: tuple[ColumnId, ...],
        maintain: Maintenance,
        params: Parameters,
    ) -> Index:
        """Stage a new index, with parameters that its kind has checked."""
        for holder in alike(check_name(name, "index"), self.indexes(table)):
            but = "" if holder.name == name else "; case makes no difference"
            raise IndexExists(
                f'table "{self.name_of(table)}" has an index "{holder.name}": '
                f"choose another name, or drop it first{but}"
            )
        number = IndexId(self._new_id())
        index = Index(number, str(uuid4()), table.id, name, kind, keys, include, maintain, params)
        self._indexes.put(index.id, None, index)
        self._created_indexes.add(index.id)
        return index

    def created_indexes(self) -> list[Index]:
        """The indexes that were created here: those that come back as they were are not among them."""
        return [index for index in self._indexes.live() if index.id in self._created_indexes]

    def drop_index(self, index: Index) -> None:
        """Stage the end of an index and of its files."""
        staged = self._index_files.get(index.table_id)
        if staged is not None:
            self.unneeded += staged.drop_index(index.id)
        self._indexes.put(index.id, index, None)

    def adopt_index(self, index: Index) -> None:
        """Stage an index as another catalog has it; it keeps its id."""
        self._indexes.put(index.id, None, index)

    # ---- Files ---

    def index_files(self, table: Table) -> list[IndexFile]:
        """The segments and models of all indexes of a table, with those that were added here.

        Of an earlier snapshot too, those that count now are among them: data files never change. Each has the
        id of its index, which may be none of `indexes` at that snapshot.
        """
        catalog, at = self.head.catalog_id, self.head.snapshot_id
        staged = self._index_files.get(table.id, StagedIndexFiles())
        stored = [] if table.id < 0 else index_files(self.state.database, catalog, [table.id], at)
        kept = [file for file in stored if file.id not in staged.replaced]
        return kept + [_as_stored(number, *added) for number, added in staged.added.items()]

    def scan_indexes(self, table: Table) -> TableIndexes:
        """The indexes that a scan of a table may use, with their files; in the past, those of today too."""
        if self.is_past:
            catalog, at = self.head.catalog_id, self.head.snapshot_id
            files = self.index_files(table)
            # Read after the files: who builds one of columns in other types has altered them before.
            known = indexes_now_or_then(self.state.database, catalog, table.id, at) if files else []
            return TableIndexes(tuple(known), tuple(files))
        definitions = self.indexes(table)
        if not definitions:
            return TableIndexes()
        # What others build meanwhile may be of columns in types that this draft does not know.
        files = [
            file for file in self.index_files(table) if file.begin <= self.head.snapshot_id or file.id < 0
        ]
        return TableIndexes(tuple(definitions), tuple(files))

    def add_index_file(self, index: Index, written: WrittenSegment) -> IndexFileId:
        """Stage a segment or a model that stands in storage; gives its provisional id.

        It covers files by their ids, those of files that this draft adds included; a model that a segment
        needs is added before it.
        """
        return self._index_files.setdefault(index.table_id, StagedIndexFiles()).add(index.id, written)

    def replace_index_files(self, table: Table, files: Iterable[IndexFileId]) -> None:
        """Stage the end of segments or models that others stand in for."""
        staged = self._index_files.setdefault(table.id, StagedIndexFiles())
        self.unneeded += staged.drop(files)

    # ---- Details ---

    def restore_indexes(self, table: Table, then: Sequence[Index]) -> None:
        """Stage the indexes that a table had. One that has ended is another now, and is built anew."""
        now = self.indexes(table)
        for index in now:
            if index not in then:
                self.drop_index(index)
        for index in then:
            if index not in now:
                self.remake_index(index)

    def remake_index(self, index: Index) -> None:
        """Stage an index like one that has ended."""
        self.adopt_index(replace(index, id=IndexId(self._new_id()), uuid=str(uuid4()), origin=None))

    def _drop_indexes_of_lost_columns(self, before: Table | None, after: Table | None) -> None:
        """Indexes go with the columns that they are of."""
        if before is None or after is None:
            return
        kept = {column.id for column in after.columns}
        if kept.issuperset(column.id for column in before.columns):
            return
        for index in self.indexes(before):
            if not kept.issuperset((*index.keys, *index.include)):
                self.drop_index(index)

    def _forget_indexes(self, table: int) -> None:
        """The table goes: so does what was staged for its indexes, and stored ones end with its rows."""
        staged = self._index_files.pop(table, None)
        if staged is not None:
            self.unneeded += staged.drop(list(staged.added))
        touched = [*self._indexes.now.items()]
        for number, now in touched:
            known = now or self._indexes.base[number]
            if known is not None and known.table_id == table:
                self._indexes.forget(number)


def _as_stored(number: IndexFileId, index: IndexId, written: WrittenSegment) -> IndexFile:
    return IndexFile(
        number,
        index,
        _NOWHERE,
        NOT_YET,
        written.path,
        written.path_is_relative,
        written.file_size_bytes,
        written.facts,
        written.covers,
        written.level,
        written.role,
        written.model,
    )
