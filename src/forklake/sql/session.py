"""A session of SQL: what belongs to one handle from statement to statement, and how each is run."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import singledispatch
from typing import Any

from forklake.api.catalog import Catalog
from forklake.api.lake import Lake, context_of
from forklake.api.scoped import scope_of
from forklake.api.sql_result import SqlResult, counted
from forklake.api.transaction import Transaction
from forklake.context.lake_context import LakeContext
from forklake.context.scope import Scope
from forklake.engine.query.run import Parameters
from forklake.engine.query.workbench import Variable
from forklake.errors import (
    CatalogNotFound,
    InvalidArgument,
    InvalidPredicate,
    InvalidSchemaChange,
    InvalidSql,
    NamingError,
    TransactionClosed,
    UnknownType,
)
from forklake.lazy.arrow import pa
from forklake.sql import statements as st
from forklake.sql.copy import copy_from, copy_to
from forklake.sql.definitions import run_definition
from forklake.sql.functions.calls import call_function
from forklake.sql.merge import merge_rows
from forklake.sql.options import SqlOptions, checked_options
from forklake.sql.parser.parse import parse
from forklake.sql.rows import delete_rows, insert_rows, truncate, update_rows
from forklake.sql.statement import Running

__all__ = ["Session", "checked_options", "session_of"]


_REFUSED = (NamingError, InvalidArgument, InvalidPredicate, InvalidSchemaChange, UnknownType)
"""What is found before a statement runs: a transaction goes on after it, as in DuckDB."""


class Session:
    """The state of SQL on one handle: its transaction, the schema of bare names, prepared statements."""

    def __init__(self, lake: Lake, catalog: Catalog | None, transaction: Transaction | None = None) -> None:
        """On a catalog, on a transaction of it, or on a lake, where names begin with the catalog."""
        self.lake = lake
        self.handle = catalog
        self.schema = "main"
        self.fixed = transaction
        """The transaction whose handle this is."""
        self.open: Transaction | None = None
        """One that was begun by BEGIN."""
        self.is_aborted = False
        """Whether a statement of it has failed while it ran: nothing but its end is possible then."""
        self.is_read_only = False
        """Whether it was begun by BEGIN READ ONLY."""
        self.prepared: dict[str, st.Parsed] = {}
        self.variables: dict[str, Variable] = {}
        """What SET VARIABLE set, by names in lower case."""

    @property
    def context(self) -> LakeContext:
        """The lake."""
        return context_of(self.lake)

    @property
    def catalog(self) -> str | None:
        """The name of the catalog that names without one are in."""
        return None if self.handle is None else self.handle.name

    @property
    def owner(self) -> object:
        """Whose statements these are: what other catalogs have read is not kept for them."""
        return None if self.is_of_lake or self.handle is None else self.handle.id

    @property
    def work(self) -> Catalog | Transaction:
        """Where changes take effect."""
        found = self.fixed or self.open or self.handle
        if found is None:
            raise InvalidSql("say in which catalog: USE a catalog first, or call sql() of the catalog")
        return found

    def find_scope(self, name: str) -> Scope | None:
        """The catalog of a name, if statements of this session may read it."""
        handle = self.handle
        if handle is not None and name.lower() == handle.name.lower():
            return scope_of(self.work)
        if handle is not None and not self.is_of_lake:
            return None
        try:
            return scope_of(self.lake.catalog(name))
        except CatalogNotFound:
            return None

    def is_catalog(self, name: str) -> bool:
        """Whether this is the name of the catalog that the session is on."""
        return self.catalog is not None and name.lower() == self.catalog.lower()

    is_of_lake = False
    """Whether other catalogs can be named too."""

    def run(self, text: str, params: Parameters = None, options: SqlOptions | None = None) -> SqlResult:
        """Run the statements of a text in order. Returns the result of the last."""
        options = options or SqlOptions()
        parsed = parse(text)
        if not parsed:
            raise InvalidSql("there is no statement: the text is empty")
        if options.one_transaction and self.open is None and self.fixed is None and len(parsed) > 1:
            return self._in_one_transaction(parsed, params, options)
        result = SqlResult()
        for place, one in enumerate(parsed):
            if place:
                # Only the last result is returned; what others would compute is not asked for.
                result.close()
            result = self.execute(one.statement, parameters_of(one, params, len(parsed)), options)
        return result

    def _in_one_transaction(
        self, parsed: list[st.Parsed], params: Parameters, options: SqlOptions
    ) -> SqlResult:
        self.begin()
        try:
            result = SqlResult()
            for one in parsed:
                result = self.execute(one.statement, parameters_of(one, params, len(parsed)), options)
                if result.columns:
                    result.to_arrow()
        except BaseException:
            if self.open is not None:
                self.rollback()
            raise
        if self.open is not None:
            self.commit()
        return result

    def execute(
        self,
        statement: st.Statement,
        params: Parameters,
        options: SqlOptions,
        given: Mapping[str, pa.Table] | None = None,
    ) -> SqlResult:
        """Run one statement. It may read Arrow tables by the names under which they are given."""
        if self.is_read_only:
            options = replace(options, read_only=True)
        with self.guarded(statement):
            return _execute(statement, Running.begin(self, options, params, given or {}))

    @contextmanager
    def guarded(self, statement: st.Statement) -> Generator[None]:
        """Run a statement in the block: the transaction is aborted if it fails while it runs."""
        if self.is_aborted and not isinstance(statement, st.TransactionControl):
            raise TransactionClosed(
                "the current transaction is aborted, since a statement of it failed: ROLLBACK and begin again"
            )
        try:
            yield
        except _REFUSED:
            raise
        except BaseException:
            self.is_aborted = self.open is not None
            raise

    # ---- Transactions ---

    def begin(self, *, read_only: bool = False) -> None:
        """BEGIN. A transaction that is `read_only` refuses changes."""
        if self.fixed is not None:
            raise InvalidSql("this is a transaction already: it ends with its block, commit() or rollback()")
        if self.open is not None:
            raise InvalidSql("there is a transaction already: COMMIT or ROLLBACK it first")
        if self.handle is None:
            raise InvalidSql("a transaction is on one catalog: USE it first, or call sql() of the catalog")
        self.open, self.is_read_only = self.handle.transaction(), read_only

    def commit(self) -> None:
        """COMMIT."""
        was_aborted = self.is_aborted
        transaction = self._ended("COMMIT")
        if was_aborted:
            transaction.rollback()
            raise TransactionClosed(
                "the transaction is rolled back instead: a statement of it had failed, so run all of it again"
            )
        transaction.commit()

    def rollback(self) -> None:
        """ROLLBACK."""
        self._ended("ROLLBACK").rollback()

    def _ended(self, how: str) -> Transaction:
        if self.fixed is not None:
            raise InvalidSql(f"{how} ends a transaction that BEGIN began; this one ends with its block")
        if self.open is None:
            raise InvalidSql(f"there is no transaction to {how}: BEGIN one first")
        ended = self.open
        self.open, self.is_aborted, self.is_read_only = None, False, False
        return ended


class LakeSession(Session):
    """A session on a lake: names begin with a catalog."""

    is_of_lake = True


def session_of(lake: Lake, catalog: Catalog | None, transaction: Transaction | None = None) -> Session:
    """A new session."""
    return LakeSession(lake, None) if catalog is None else Session(lake, catalog, transaction)


def parameters_of(one: st.Parsed, params: Parameters, statements: int) -> Parameters:
    """The parameters of one statement of several; refused if there are too few or too many."""
    if params is not None and not isinstance(params, Mapping | list | tuple):
        raise InvalidSql(f"parameters are a list or a dict, not {type(params).__name__}")
    by_place = {str(at): value for at, value in enumerate(() if params is None else params, 1)}
    given = params if isinstance(params, Mapping) else by_place
    missing = sorted(one.parameters - given.keys())
    if missing:
        listed = ", ".join(f"${name}" for name in missing)
        raise InvalidSql(f"the statement has parameters that got no value: {listed}")
    unused = sorted(given.keys() - one.parameters)
    if unused and statements == 1:
        listed = ", ".join(f"${name}" for name in unused)
        raise InvalidSql(f"the statement has no parameters {listed}, which got values")
    if not one.parameters:
        return None
    return {name: given[name] for name in one.parameters}


@singledispatch
def _execute(statement: Any, running: Running) -> SqlResult:
    return run_definition(statement, running)


@_execute.register
def _(statement: st.Query, running: Running) -> SqlResult:
    return SqlResult(running.query(statement.text.text))


def _counting(run: Callable[[Any, Running], SqlResult | int]) -> Callable[[Any, Running], SqlResult]:
    def counting(statement: Any, running: Running) -> SqlResult:
        found = run(statement, running)
        return counted(found) if isinstance(found, int) else found

    return counting


for _kind, _run in {
    st.Insert: insert_rows,
    st.Update: update_rows,
    st.Delete: delete_rows,
    st.Merge: merge_rows,
    st.Truncate: truncate,
    st.CopyTo: copy_to,
    st.CopyFrom: copy_from,
}.items():
    _execute.register(_kind, _counting(_run))


@_execute.register
def _(statement: st.TransactionControl, running: Running) -> SqlResult:
    session = running.session
    match statement.action:
        case "begin":
            session.begin(read_only=statement.read_only)
        case "commit":
            session.commit()
        case "rollback":
            session.rollback()
    return SqlResult()


@_execute.register
def _(statement: st.Use, running: Running) -> SqlResult:
    session, parts = running.session, statement.name.parts
    if session.is_of_lake and len(parts) == 1:
        session.handle = session.lake.catalog(parts[0])
        session.schema = "main"
        return SqlResult()
    if len(parts) == 2:
        if session.is_of_lake:
            session.handle = session.lake.catalog(parts[0])
        elif session.catalog is None or parts[0].lower() != session.catalog.lower():
            raise CatalogNotFound(f'"{parts[0]}" is another catalog: this is {session.catalog}')
    names = running.names()
    draft = None if session.catalog is None else names.draft(session.catalog)
    if draft is not None:
        session.schema = draft.schema_named(parts[-1]).name
    return SqlResult()


@_execute.register
def _(statement: st.SetVariable, running: Running) -> SqlResult:
    variables, name = running.session.variables, statement.name.lower()
    if statement.value is None:
        variables.pop(name, None)
    else:
        rows = running.query(f"SELECT ({statement.value.text}) AS value")
        variables[name] = Variable(rows.all(), rows.types[0])
    return SqlResult()


@_execute.register
def _(statement: st.Call, running: Running) -> SqlResult:
    text = f"SELECT * FROM {_written(statement.name)}({statement.arguments.text})"
    rows = running.query(text)
    result = SqlResult(rows)
    # A call has taken effect when it returns.
    result.to_arrow()
    return result


@_execute.register
def _(statement: st.Checkpoint, running: Running) -> SqlResult:
    session = running.session
    if statement.catalog is not None and not session.is_catalog(statement.catalog):
        raise InvalidSql(f'"{statement.catalog}" is another catalog: call CHECKPOINT there')
    return SqlResult(call_function(running, ("checkpoint",), (), {}))


@_execute.register
def _(statement: st.Prepare, running: Running) -> SqlResult:
    running.session.prepared[statement.name.lower()] = statement.prepared
    return SqlResult()


@_execute.register
def _(statement: st.Execute, running: Running) -> SqlResult:
    prepared = running.session.prepared
    if statement.name.lower() not in prepared:
        raise InvalidSql(f'there is no prepared statement "{statement.name}": PREPARE it first')
    if statement.deallocate:
        del prepared[statement.name.lower()]
        return SqlResult()
    params: Parameters = None
    if statement.arguments is not None and statement.arguments.text.strip():
        row = SqlResult(running.query(f"SELECT {statement.arguments.text}")).to_rows()[0]
        params = list(row)
    found = prepared[statement.name.lower()]
    return _execute(found.statement, replace(running, params=parameters_of(found, params, 1)))


@_execute.register
def _(statement: st.Explain, running: Running) -> SqlResult:
    from forklake.sql.explain import explain

    return explain(statement, running)


def _written(name: st.ObjectName) -> str:
    return ".".join(f'"{part}"' if not part.isidentifier() else part for part in name.parts)
