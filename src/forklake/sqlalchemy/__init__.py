"""The dialect for SQLAlchemy, `forklake+sqlite:///lake.db?catalog=shop`, and its types of columns."""

from __future__ import annotations

from forklake.sqlalchemy.dialect import ForklakeDialect
from forklake.sqlalchemy.types import (
    HUGEINT,
    NESTED,
    TINYINT,
    UBIGINT,
    UHUGEINT,
    UINTEGER,
    USMALLINT,
    UTINYINT,
)

__all__ = [
    "HUGEINT",
    "NESTED",
    "TINYINT",
    "UBIGINT",
    "UHUGEINT",
    "UINTEGER",
    "USMALLINT",
    "UTINYINT",
    "ForklakeDialect",
]
