"""forklake: a lakehouse that keeps many catalogs in one metadata database."""

from typing import TYPE_CHECKING

from forklake.errors import (
    AlreadyExists,
    AmbiguousName,
    CatalogExists,
    CatalogNotFound,
    ColumnExists,
    ColumnNotFound,
    CommitConflict,
    CommittedBefore,
    CorruptMetadata,
    DataPathMismatch,
    DataPathOverlap,
    DuplicateColumn,
    EngineError,
    FileMissing,
    ForklakeError,
    IndexExists,
    IndexNotBuilt,
    IndexNotFound,
    InvalidArgument,
    InvalidData,
    InvalidIndex,
    InvalidManifest,
    InvalidName,
    InvalidPredicate,
    InvalidQuery,
    InvalidSchemaChange,
    InvalidSql,
    InvalidUrl,
    MacroExists,
    MacroNotFound,
    MergeConflict,
    MetadataExists,
    MetadataNotFound,
    MissingDependency,
    NamingError,
    NotFound,
    NotPicklable,
    NullNotAllowed,
    ReadOnlyStore,
    ReservationConsumed,
    ReservationError,
    ReservationExpired,
    SchemaExists,
    SchemaNotEmpty,
    SchemaNotFound,
    SnapshotNotFound,
    StatementLimit,
    StorageError,
    StoreBusy,
    StoreError,
    StoreUnavailable,
    TableExists,
    TableNotFound,
    TransactionClosed,
    UnknownType,
    UnreadableIndex,
    UnsupportedVersion,
    ViewExists,
    ViewNotFound,
)
from forklake.lazy import attach
from forklake.version import VERSION

if TYPE_CHECKING:
    from forklake import dbapi as dbapi
    from forklake import distributed as distributed
    from forklake.api.catalog import Catalog
    from forklake.api.change_feed import ChangeFeed
    from forklake.api.connect import connect, init, upgrade
    from forklake.api.diff import CatalogDiff, RowDiff, TableDiff
    from forklake.api.file_rows import FileRows
    from forklake.api.lake import Lake
    from forklake.api.scan import Scan
    from forklake.api.sql_result import SqlResult
    from forklake.api.table import Table
    from forklake.api.table_statistics import TableFile, TableStats
    from forklake.api.transaction import Transaction
    from forklake.api.upsert import RowsMerged
    from forklake.compact.compaction import CompactedTable, CompactResult
    from forklake.compact.plan import Rewrite
    from forklake.compact.run import Rewritten
    from forklake.engine.locate_row import RowPlace
    from forklake.fork.diff import ObjectDiff
    from forklake.fork.merge import MergedTable, MergeResult
    from forklake.maintenance.check import CheckResult, Difference
    from forklake.maintenance.checkpoint import (
        CheckpointFailure,
        CheckpointResult,
        FlushedTable,
        RewrittenTable,
    )
    from forklake.maintenance.collect import GarbageResult, KeptFile
    from forklake.maintenance.expire import ExpireResult, LakeExpireResult
    from forklake.maintenance.orphans import OrphansResult
    from forklake.model.changes import Change, Conflict
    from forklake.model.entities import MacroImpl, MacroParameter
    from forklake.model.fork_tree import ForkNode, ForkTree
    from forklake.model.names import QualifiedName
    from forklake.model.options import Options
    from forklake.model.progress import Progress
    from forklake.model.sql.ddl import ColumnSpec
    from forklake.scan.scan_plan import ScanPlan
    from forklake.store.upgrades.upgrade import UpgradeResult
else:
    __getattr__, __dir__ = attach(
        __name__,
        {
            "forklake.api.catalog": ("Catalog",),
            "forklake.api.change_feed": ("ChangeFeed",),
            "forklake.api.diff": ("CatalogDiff", "RowDiff", "TableDiff"),
            "forklake.api.file_rows": ("FileRows",),
            "forklake.api.connect": ("connect", "init", "upgrade"),
            "forklake.api.lake": ("Lake",),
            "forklake.api.scan": ("Scan",),
            "forklake.api.sql_result": ("SqlResult",),
            "forklake.api.table": ("Table",),
            "forklake.api.table_statistics": ("TableFile", "TableStats"),
            "forklake.api.transaction": ("Transaction",),
            "forklake.api.upsert": ("RowsMerged",),
            "forklake.compact.compaction": ("CompactedTable", "CompactResult"),
            "forklake.compact.plan": ("Rewrite",),
            "forklake.compact.run": ("Rewritten",),
            "forklake.engine.locate_row": ("RowPlace",),
            "forklake.fork.diff": ("ObjectDiff",),
            "forklake.fork.merge": ("MergedTable", "MergeResult"),
            "forklake.maintenance.check": ("CheckResult", "Difference"),
            "forklake.maintenance.checkpoint": (
                "CheckpointFailure",
                "CheckpointResult",
                "FlushedTable",
                "RewrittenTable",
            ),
            "forklake.maintenance.collect": ("GarbageResult", "KeptFile"),
            "forklake.maintenance.expire": ("ExpireResult", "LakeExpireResult"),
            "forklake.maintenance.orphans": ("OrphansResult",),
            "forklake.model.changes": ("Change", "Conflict"),
            "forklake.model.entities": ("MacroImpl", "MacroParameter"),
            "forklake.model.fork_tree": ("ForkNode", "ForkTree"),
            "forklake.model.names": ("QualifiedName",),
            "forklake.model.options": ("Options",),
            "forklake.model.progress": ("Progress",),
            "forklake.model.sql.ddl": ("ColumnSpec",),
            "forklake.scan.scan_plan": ("ScanPlan",),
            "forklake.store.upgrades.upgrade": ("UpgradeResult",),
        },
        submodules=("dbapi", "distributed"),
    )

__version__ = VERSION
del VERSION

__all__ = [
    "AlreadyExists",
    "AmbiguousName",
    "Catalog",
    "CatalogDiff",
    "CatalogExists",
    "CatalogNotFound",
    "Change",
    "ChangeFeed",
    "CheckResult",
    "CheckpointFailure",
    "CheckpointResult",
    "ColumnExists",
    "ColumnNotFound",
    "ColumnSpec",
    "CommitConflict",
    "CommittedBefore",
    "CompactResult",
    "CompactedTable",
    "Conflict",
    "CorruptMetadata",
    "DataPathMismatch",
    "DataPathOverlap",
    "Difference",
    "DuplicateColumn",
    "EngineError",
    "ExpireResult",
    "FileMissing",
    "FileRows",
    "FlushedTable",
    "ForkNode",
    "ForkTree",
    "ForklakeError",
    "GarbageResult",
    "IndexExists",
    "IndexNotBuilt",
    "IndexNotFound",
    "InvalidArgument",
    "InvalidData",
    "InvalidIndex",
    "InvalidManifest",
    "InvalidName",
    "InvalidPredicate",
    "InvalidQuery",
    "InvalidSchemaChange",
    "InvalidSql",
    "InvalidUrl",
    "KeptFile",
    "Lake",
    "LakeExpireResult",
    "MacroExists",
    "MacroImpl",
    "MacroNotFound",
    "MacroParameter",
    "MergeConflict",
    "MergeResult",
    "MergedTable",
    "MetadataExists",
    "MetadataNotFound",
    "MissingDependency",
    "NamingError",
    "NotFound",
    "NotPicklable",
    "NullNotAllowed",
    "ObjectDiff",
    "Options",
    "OrphansResult",
    "Progress",
    "QualifiedName",
    "ReadOnlyStore",
    "ReservationConsumed",
    "ReservationError",
    "ReservationExpired",
    "Rewrite",
    "Rewritten",
    "RewrittenTable",
    "RowDiff",
    "RowPlace",
    "RowsMerged",
    "Scan",
    "ScanPlan",
    "SchemaExists",
    "SchemaNotEmpty",
    "SchemaNotFound",
    "SnapshotNotFound",
    "SqlResult",
    "StatementLimit",
    "StorageError",
    "StoreBusy",
    "StoreError",
    "StoreUnavailable",
    "Table",
    "TableDiff",
    "TableExists",
    "TableFile",
    "TableNotFound",
    "TableStats",
    "Transaction",
    "TransactionClosed",
    "UnknownType",
    "UnreadableIndex",
    "UnsupportedVersion",
    "UpgradeResult",
    "ViewExists",
    "ViewNotFound",
    "connect",
    "init",
    "upgrade",
]
