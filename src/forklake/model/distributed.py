"""A snapshot that many processes write together: what each of them has to know, as plain JSON. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal, Self
from uuid import UUID

from forklake.errors import InvalidArgument, TableNotFound
from forklake.model.alike import pick
from forklake.model.earlier_descriptors import is_first_format, to_present
from forklake.model.ids import CatalogId, DataFileId, DeleteFileId, SnapshotId, TableId
from forklake.model.json_values import from_text, to_text
from forklake.model.names import QualifiedName, is_absolute
from forklake.model.table.files import DataFile
from forklake.model.table.write_target import WriteTarget

STAGING = "_staging/"
"""Where manifests are kept, below the folder of a catalog. No schema has a folder of this name."""
_FORMAT = "forklake/distributed-snapshot/2"


ReservationState = Literal["open", "committed", "cancelled", "expired"]


@dataclass(frozen=True, slots=True)
class ReservationInfo:
    """A distributed snapshot in a listing."""

    reservation_id: str
    snapshot_id: SnapshotId
    parent_snapshot_id: SnapshotId
    state: ReservationState
    created_at: datetime
    expires_at: datetime
    committed_snapshot_id: SnapshotId | None
    properties: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableTarget(WriteTarget):
    """What writers have to know of a table."""

    id: TableId
    schema: str
    name: str

    @property
    def full_name(self) -> QualifiedName:
        """The name with its schema."""
        return QualifiedName(self.schema, self.name)


@dataclass(frozen=True, slots=True)
class DistributedSnapshot:
    """The descriptor of a distributed snapshot: with it and the storage, any process can write a part."""

    reservation_id: str
    commit_uuid: str
    """Part of the path of every file that is written for it."""
    catalog_id: CatalogId
    catalog: str
    snapshot_id: SnapshotId
    """The reserved snapshot id; the commit gets a new one if other commits come first."""
    parent_snapshot_id: SnapshotId
    """The id of the snapshot that its writers read."""
    expires_at: datetime
    data_path: str
    """The data path of the lake, without credentials."""
    catalog_path: str
    """Where the catalog's files go, relative to the data path of the lake or absolute."""
    tables: tuple[TableTarget, ...]
    properties: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def table(self, name: str | tuple[str, str] | QualifiedName) -> TableTarget:
        """A table by its name."""
        wanted = QualifiedName.parse(name)
        by_name = {str(table.full_name): table for table in self.tables}
        found = pick(str(wanted), by_name, "table")
        if found is not None:
            return by_name[found]
        known = ", ".join(list(by_name)[:5])
        more = ", …" if len(by_name) > 5 else ""
        raise TableNotFound(
            f'this distributed snapshot has no table "{wanted}": it was begun for {known or "none"}{more}'
        )

    @property
    def staging(self) -> str:
        """The folder of its manifests, relative to the data path of the lake or absolute."""
        return f"{self.catalog_path}{STAGING}{self.commit_uuid}/"

    def folder(self, table: TableTarget) -> str:
        """The folder of all its files of a table; nothing else is in it."""
        return commit_folder(table.folder, self.commit_uuid)

    def address(self, path: str) -> str:
        """The full path or URL of one of its paths."""
        return path if is_absolute(path) else self.data_path + path

    def to_json(self) -> str:
        """The value as JSON, for another process."""
        return to_text(self, format=_FORMAT)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Parse the JSON that `to_json` returned."""
        try:
            if isinstance(text, str) and is_first_format(text):  # pyright: ignore[reportUnnecessaryIsInstance]
                text = to_present(text, _FORMAT)
            found = from_text(cls, text, format=_FORMAT)
            return replace(
                found,
                reservation_id=str(UUID(found.reservation_id)),
                commit_uuid=UUID(found.commit_uuid).hex,
                expires_at=found.expires_at.astimezone(UTC),
            )
        except (ValueError, KeyError, TypeError, InvalidArgument) as error:
            raise InvalidArgument(
                f"this string is not a distributed snapshot: {error}; give what to_json returned"
            ) from error


def commit_folder(folder: str, commit_uuid: str) -> str:
    """The folder of the files that one distributed snapshot adds to a table."""
    return f"{folder}{commit_uuid}/"


@dataclass(frozen=True, slots=True)
class BaseFile:
    """A data file with its deleted positions, for writers that delete more rows of it."""

    file: DataFile
    deleted: tuple[int, ...] = ()
    """Inlined deleted positions, in addition to those in its delete file."""

    def to_json(self) -> str:
        """The value as JSON, for another process."""
        return to_text(self)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Parse the JSON that `to_json` returned."""
        return from_text(cls, text)

    @property
    def id(self) -> DataFileId:
        """The id of the data file."""
        return self.file.id

    @property
    def inlined_since(self) -> int:
        """How many rows were deleted inline since its delete file was written."""
        return len(self.deleted) - (0 if self.file.deletes is None else self.file.deletes.inlined_before)

    @property
    def replaces(self) -> DeleteFileId | None:
        """The delete file that a new one takes the place of."""
        return None if self.file.deletes is None else self.file.deletes.id
