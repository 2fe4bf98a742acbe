"""Distributed snapshots: many processes write one snapshot, with access to the storage only.

`Catalog.begin_distributed` returns a `DistributedSnapshot`, which can be sent as JSON. Any process writes
parts of it and returns manifests; `Catalog.commit_distributed` commits them as one snapshot.
"""

from typing import TYPE_CHECKING

from forklake.lazy import attach

if TYPE_CHECKING:
    from forklake.data.parquet.schema import ROW_ID_NAME as ROW_ID
    from forklake.data.parquet.schema import SNAPSHOT_ID_NAME as SNAPSHOT_ID
    from forklake.distributed.bases import base_files
    from forklake.distributed.describe import describe_files
    from forklake.distributed.work import output_folder, read_manifest
    from forklake.distributed.write import write_part
    from forklake.model.distributed import BaseFile, DistributedSnapshot, TableTarget
    from forklake.model.manifest import DeleteFilePart, FilePart, Manifest, PositionsPart, RemovalPart
else:
    __getattr__, __dir__ = attach(
        __name__,
        {
            "forklake.data.parquet.schema": ("ROW_ID_NAME as ROW_ID", "SNAPSHOT_ID_NAME as SNAPSHOT_ID"),
            "forklake.distributed.bases": ("base_files",),
            "forklake.distributed.describe": ("describe_files",),
            "forklake.distributed.work": ("output_folder", "read_manifest"),
            "forklake.distributed.write": ("write_part",),
            "forklake.model.distributed": ("BaseFile", "DistributedSnapshot", "TableTarget"),
            "forklake.model.manifest": (
                "DeleteFilePart",
                "FilePart",
                "Manifest",
                "PositionsPart",
                "RemovalPart",
            ),
        },
    )

__all__ = [
    "ROW_ID",
    "SNAPSHOT_ID",
    "BaseFile",
    "DeleteFilePart",
    "DistributedSnapshot",
    "FilePart",
    "Manifest",
    "PositionsPart",
    "RemovalPart",
    "TableTarget",
    "base_files",
    "describe_files",
    "output_folder",
    "read_manifest",
    "write_part",
]
