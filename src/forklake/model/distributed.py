"""A snapshot that many processes write together: what each of them has to know, as plain JSON. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import Any, Literal, Self
from uuid import UUID

from forklake.errors import InvalidArgument, TableNotFound
from forklake.model.entities import Column, Default
from forklake.model.ids import CatalogId, ColumnId, DataFileId, DeleteFileId, SnapshotId, TableId
from forklake.model.names import QualifiedName, is_absolute
from forklake.model.options import Options
from forklake.model.table.files import DataFile, DeleteFile
from forklake.model.table.layout import PartitionField, Partitioning, SortKey
from forklake.model.table.write_target import WriteTarget

STAGING = "_staging/"
"""Where manifests are kept, below the folder of a catalog. No schema has a folder of this name."""
_FORMAT = "forklake/distributed-snapshot/1"


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
        for table in self.tables:
            if table.full_name == wanted:
                return table
        known = ", ".join(str(table.full_name) for table in self.tables[:5])
        more = ", …" if len(self.tables) > 5 else ""
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
        return json.dumps(
            {
                "format": _FORMAT,
                "reservation_id": self.reservation_id,
                "commit_uuid": self.commit_uuid,
                "catalog_id": self.catalog_id,
                "catalog": self.catalog,
                "snapshot_id": self.snapshot_id,
                "parent_snapshot_id": self.parent_snapshot_id,
                "expires_at": self.expires_at.isoformat(),
                "data_path": self.data_path,
                "catalog_path": self.catalog_path,
                "tables": [_from_table(table) for table in self.tables],
                "properties": dict(self.properties),
            },
            ensure_ascii=False,
        )

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Parse the JSON that `to_json` returned."""
        try:
            found = json.loads(text)
            if found.pop("format") != _FORMAT:
                raise ValueError("it was written by another version")
            values: dict[str, Any] = {
                **found,
                "reservation_id": str(UUID(found["reservation_id"])),
                "commit_uuid": UUID(found["commit_uuid"]).hex,
                "expires_at": datetime.fromisoformat(found["expires_at"]).astimezone(UTC),
                "tables": tuple(_to_table(table) for table in found["tables"]),
            }
            return cls(**values)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InvalidArgument(
                f"this text is not a distributed snapshot: {error}; give what to_json returned"
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
        deletes = self.file.deletes
        about = {name: getattr(self.file, name) for name in _plain(DataFile)}
        known = None if deletes is None else {name: getattr(deletes, name) for name in _plain(DeleteFile)}
        return json.dumps({"file": about, "deletes": known, "deleted": self.deleted})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Parse the JSON that `to_json` returned."""
        found = json.loads(text)
        deletes = None if found["deletes"] is None else DeleteFile(**found["deletes"])
        return cls(DataFile(**found["file"], deletes=deletes), tuple(found["deleted"]))

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


def _plain(kind: type[DataFile] | type[DeleteFile]) -> list[str]:
    return [entry.name for entry in fields(kind) if entry.name != "deletes"]


def _from_table(table: TableTarget) -> dict[str, Any]:
    part = table.partitioning
    return {
        "id": table.id,
        "schema": table.schema,
        "name": table.name,
        "folder": table.folder,
        "columns": [_from_column(column) for column in table.columns],
        "partitioning": part
        and {"id": part.id, "fields": [[entry.column_id, entry.transform] for entry in part.fields]},
        "sort": [[key.name, key.direction, key.nulls] for key in table.sort],
        "options": {name: getattr(table.options, name) for name in Options.__slots__},
    }


def _to_table(found: Mapping[str, Any]) -> TableTarget:
    part = found["partitioning"]
    return TableTarget(
        folder=found["folder"],
        columns=tuple(_to_column(column) for column in found["columns"]),
        options=Options(**found["options"]),
        partitioning=part
        and Partitioning(
            part["id"],
            found["id"],
            tuple(PartitionField(ColumnId(number), transform) for number, transform in part["fields"]),
        ),
        sort=tuple(SortKey(*key) for key in found["sort"]),
        id=found["id"],
        schema=found["schema"],
        name=found["name"],
    )


def _from_column(column: Column) -> dict[str, Any]:
    default = column.default
    return {
        "id": column.id,
        "name": column.name,
        "type": column.type,
        "nullable": column.nullable,
        "initial_default": column.initial_default,
        "default": default and [default.value, default.kind, default.dialect],
        "children": [_from_column(child) for child in column.children],
        "order": column.order,
    }


def _to_column(found: Mapping[str, Any]) -> Column:
    values: dict[str, Any] = {
        **found,
        "default": found["default"] and Default(*found["default"]),
        "children": tuple(_to_column(child) for child in found["children"]),
    }
    return Column(**values)
