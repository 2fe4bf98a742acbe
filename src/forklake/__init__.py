"""forklake: a lakehouse that keeps many catalogs in one metadata database."""

from forklake import distributed as distributed
from forklake.catalog import Catalog
from forklake.compact.plan import Rewrite
from forklake.compact.run import Rewritten
from forklake.compacting import CompactedTable, CompactProgress, CompactResult
from forklake.diffing import CatalogDiff, RowDiff, TableDiff
from forklake.engine.locate import RowPlace
from forklake.errors import (
    AlreadyExists,
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
    InvalidArgument,
    InvalidData,
    InvalidManifest,
    InvalidName,
    InvalidPredicate,
    InvalidSchemaChange,
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
    ReadOnlyStore,
    ReservationConsumed,
    ReservationError,
    ReservationExpired,
    SchemaExists,
    SchemaNotEmpty,
    SchemaNotFound,
    SnapshotNotFound,
    StorageError,
    StoreBusy,
    StoreError,
    StoreUnavailable,
    TableExists,
    TableNotFound,
    TransactionClosed,
    UnknownType,
    UnsupportedVersion,
    ViewExists,
    ViewNotFound,
)
from forklake.facts import TableFile, TableStats
from forklake.feed import ChangeFeed
from forklake.filerows import FileRows
from forklake.fork.diff import ObjectDiff
from forklake.fork.merge import MergedTable, MergeResult
from forklake.lake import Lake, connect, init
from forklake.merging import RowsMerged
from forklake.model.changes import Change, Conflict
from forklake.model.ddl import ColumnSpec
from forklake.model.entities import MacroImpl, MacroParameter
from forklake.model.names import QualifiedName
from forklake.model.options import Options
from forklake.reading import Scan
from forklake.scan.plan import ScanPlan
from forklake.table import Table
from forklake.transaction import Transaction

__version__ = "0.1.0"

__all__ = [
    "AlreadyExists",
    "Catalog",
    "CatalogDiff",
    "CatalogExists",
    "CatalogNotFound",
    "Change",
    "ChangeFeed",
    "ColumnExists",
    "ColumnNotFound",
    "ColumnSpec",
    "CommitConflict",
    "CommittedBefore",
    "CompactProgress",
    "CompactResult",
    "CompactedTable",
    "Conflict",
    "CorruptMetadata",
    "DataPathMismatch",
    "DataPathOverlap",
    "DuplicateColumn",
    "EngineError",
    "FileMissing",
    "FileRows",
    "ForklakeError",
    "InvalidArgument",
    "InvalidData",
    "InvalidManifest",
    "InvalidName",
    "InvalidPredicate",
    "InvalidSchemaChange",
    "InvalidUrl",
    "Lake",
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
    "ObjectDiff",
    "Options",
    "QualifiedName",
    "ReadOnlyStore",
    "ReservationConsumed",
    "ReservationError",
    "ReservationExpired",
    "Rewrite",
    "Rewritten",
    "RowDiff",
    "RowPlace",
    "RowsMerged",
    "Scan",
    "ScanPlan",
    "SchemaExists",
    "SchemaNotEmpty",
    "SchemaNotFound",
    "SnapshotNotFound",
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
    "UnsupportedVersion",
    "ViewExists",
    "ViewNotFound",
    "connect",
    "init",
]
