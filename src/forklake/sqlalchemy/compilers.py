"""From expressions of SQLAlchemy to DuckDB's SQL, which is mostly PostgreSQL's."""

from __future__ import annotations

from typing import Any

from sqlalchemy import exc
from sqlalchemy.dialects.postgresql.base import PGCompiler, PGTypeCompiler
from sqlalchemy.sql.compiler import DDLCompiler, IdentifierPreparer

from forklake.sql.parser.keywords import NO_NAMES

_DEFAULT_DECIMAL = "DECIMAL(38, 10)"
"""For a Numeric without digits: DuckDB would keep three of them."""
_MOST_BITS_OF_REAL = 24


class ForklakePreparer(IdentifierPreparer):
    """Names: in quotes where DuckDB needs them."""

    reserved_words = {word.lower() for word in NO_NAMES}  # noqa: RUF012


class ForklakeCompiler(PGCompiler):
    """Queries and changes of rows."""

    def visit_regexp_match_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        """DuckDB's `~` looks at the whole value."""
        return self._matches(binary, kw)

    def visit_not_regexp_match_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        """The same, denied."""
        return f"NOT {self._matches(binary, kw)}"

    def _matches(self, binary: Any, kw: dict[str, Any]) -> str:
        flags = binary.modifiers["flags"]
        arguments = [self.process(binary.left, **kw), self.process(binary.right, **kw)]
        if flags is not None:
            arguments.append("'" + str(flags).replace("'", "''") + "'")
        return f"regexp_matches({', '.join(arguments)})"

    def visit_bitwise_xor_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        """A function in DuckDB."""
        return f"xor({self.process(binary.left, **kw)}, {self.process(binary.right, **kw)})"

    def visit_match_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        """Refuse a search for text."""
        raise exc.CompileError("forklake has no MATCH: use ilike() or regexp_match()")

    def for_update_clause(self, select: Any, **kw: Any) -> str:
        """Say nothing: nobody waits for locks of rows, a conflict is found at the commit."""
        return ""

    def limit_clause(self, select: Any, **kw: Any) -> str:
        """LIMIT and OFFSET; DuckDB knows no LIMIT ALL."""
        limit = "" if select._limit_clause is None else f"\n LIMIT {self.process(select._limit_clause, **kw)}"
        start = (
            "" if select._offset_clause is None else f"\n OFFSET {self.process(select._offset_clause, **kw)}"
        )
        return limit + start

    def fetch_clause(self, select: Any, **kw: Any) -> str:
        """FETCH FIRST is a LIMIT."""
        options = select._fetch_clause_options
        if options["percent"] or options["with_ties"]:
            raise exc.CompileError("forklake has no FETCH with PERCENT or WITH TIES")
        start = (
            "" if select._offset_clause is None else f"\n OFFSET {self.process(select._offset_clause, **kw)}"
        )
        return f"\n LIMIT {self.process(select._fetch_clause, **kw)}{start}"

    def render_literal_value(self, value: Any, type_: Any) -> str:
        """A backslash is a backslash."""
        return super(PGCompiler, self).render_literal_value(value, type_)


class ForklakeDDLCompiler(DDLCompiler):
    """Definitions. Keys say how tables belong together, but are not enforced: they are left out."""

    def visit_primary_key_constraint(self, constraint: Any, **kw: Any) -> Any:
        """Leave it out: the columns are NOT NULL, and nothing makes them unique."""
        return None

    def visit_foreign_key_constraint(self, constraint: Any, **kw: Any) -> Any:
        """Leave it out."""
        return None

    def visit_add_constraint(self, create: Any, **kw: Any) -> str:
        """No statement for a key; what else there is, is refused."""
        self.process(create.element)
        return ""

    def visit_drop_constraint(self, drop: Any, **kw: Any) -> str:
        """No statement: there is none."""
        return ""

    def visit_unique_constraint(self, constraint: Any, **kw: Any) -> str:
        """Refuse it: whoever says so relies on it."""
        raise exc.CompileError("forklake does not enforce UNIQUE: leave the constraint out of the table")

    def visit_check_constraint(self, constraint: Any, **kw: Any) -> str:
        """Refuse it."""
        raise exc.CompileError("forklake does not enforce CHECK: leave the constraint out of the table")

    def visit_column_check_constraint(self, constraint: Any, **kw: Any) -> str:
        """Refuse it."""
        return self.visit_check_constraint(constraint, **kw)

    def visit_create_index(self, create: Any, *args: Any, **kw: Any) -> str:
        """No statement: tables are pruned by their statistics. pandas asks for an index on every table."""
        if create.element.unique:
            raise exc.CompileError("forklake does not enforce unique indexes: leave it out")
        return ""

    def visit_drop_index(self, drop: Any, **kw: Any) -> str:
        """No statement: there is none."""
        return ""

    def visit_identity_column(self, identity: Any, **kw: Any) -> str:
        """Refuse it."""
        raise exc.CompileError("forklake makes up no numbers: give the column values, or a default of uuid()")

    def visit_computed_column(self, generated: Any, **kw: Any) -> str:
        """Refuse it."""
        raise exc.CompileError("forklake has no generated columns: use a view")


class ForklakeTypeCompiler(PGTypeCompiler):
    """Types in definitions and casts."""

    def visit_FLOAT(self, type_: Any, **kw: Any) -> str:
        """FLOAT is of 32 bits in DuckDB, and of 64 in PostgreSQL and in pandas."""
        return "REAL" if type_.precision and type_.precision <= _MOST_BITS_OF_REAL else "DOUBLE"

    def visit_DOUBLE_PRECISION(self, type_: Any, **kw: Any) -> str:
        """In one word."""
        return "DOUBLE"

    def visit_DOUBLE(self, type_: Any, **kw: Any) -> str:
        """In one word."""
        return "DOUBLE"

    def visit_double(self, type_: Any, **kw: Any) -> str:
        """In one word."""
        return "DOUBLE"

    def visit_NUMERIC(self, type_: Any, **kw: Any) -> str:
        """With digits in any case."""
        return self.visit_DECIMAL(type_, **kw)

    def visit_DECIMAL(self, type_: Any, **kw: Any) -> str:
        """With digits in any case."""
        if type_.precision is None:
            return _DEFAULT_DECIMAL
        return f"DECIMAL({type_.precision}, {type_.scale or 0})"

    def visit_TIMESTAMP(self, type_: Any, **kw: Any) -> Any:
        """Microseconds."""
        return "TIMESTAMP WITH TIME ZONE" if type_.timezone else "TIMESTAMP"

    def visit_DATETIME(self, type_: Any, **kw: Any) -> Any:
        """A timestamp."""
        return self.visit_TIMESTAMP(type_, **kw)

    def visit_TIME(self, type_: Any, **kw: Any) -> Any:
        """Microseconds."""
        return "TIME WITH TIME ZONE" if type_.timezone else "TIME"

    def visit_INTERVAL(self, type_: Any, **kw: Any) -> str:
        """Without fields."""
        return "INTERVAL"

    def visit_large_binary(self, type_: Any, **kw: Any) -> Any:
        """Bytes."""
        return "BLOB"

    def visit_BYTEA(self, type_: Any, **kw: Any) -> Any:
        """Bytes."""
        return "BLOB"

    def visit_JSONB(self, type_: Any, **kw: Any) -> Any:
        """JSON is text."""
        return "JSON"

    def visit_whole_number(self, type_: Any, **kw: Any) -> str:
        """HUGEINT and others that SQLAlchemy does not know."""
        return type(type_).__name__
