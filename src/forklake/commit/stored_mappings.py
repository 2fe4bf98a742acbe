"""Name mappings that a table has: files that are added later share them, and are read by the same call."""

from __future__ import annotations

from collections.abc import Iterable

from forklake.commit.draft import Draft
from forklake.data.parquet.foreign_files import signature_of
from forklake.data.storage.storage import Storage
from forklake.errors import InvalidData, StorageError
from forklake.lazy.properties import lazy_property
from forklake.model.entities import Table
from forklake.model.ids import MappingId
from forklake.model.table.files import DataFile
from forklake.model.table.name_mapping import MappedName

_MOST_READ = 4
"""Into how many files one looks for the types that belong to the same names."""


class StoredMappings:
    """The mappings of the catalog itself that files of the table have."""

    def __init__(self, draft: Draft, table: Table, storage: Storage, files: Iterable[DataFile]) -> None:
        """Nothing is read before a mapping is asked for."""
        self._draft = draft
        self._table = table
        self._storage = storage
        own = draft.head.catalog_id
        # While a file is there, its mapping is not removed.
        self._files = {
            file.mapping_id: file
            for file in files
            if file.mapping_id is not None and file.mapping_id >= 0 and file.source == own
        }

    def find(self, names: tuple[MappedName, ...], signature: object) -> MappingId | None:
        """The mapping with these names whose files have the same types; None if there is none."""
        wanted = _key(names)
        alike = sorted((number for number in self._files if self._keys.get(number) == wanted), reverse=True)
        return next((number for number in alike[:_MOST_READ] if self._signature(number) == signature), None)

    @lazy_property
    def _keys(self) -> dict[MappingId, frozenset[object]]:
        mappings = self._draft.source(self._table).reader.mappings() if self._files else {}
        return {number: _key(mapping.names) for number, mapping in mappings.items()}

    def _signature(self, number: MappingId) -> object:
        file = self._files[number]
        try:
            return signature_of(self._storage, file.path, file.path_is_relative)
        except (StorageError, InvalidData):
            # Whoever reads the table will hear of it; files that are added now do not depend on that one.
            return None


def _key(names: Iterable[MappedName]) -> frozenset[object]:
    """What a mapping says, as far as it is stored."""
    return frozenset((name.column_id, name.source_name, name.is_partition) for name in names)
