"""One statement while it runs: its session, its parameters, and what it may do."""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from forklake.api.catalog import Catalog
from forklake.api.scoped import scope_of
from forklake.api.transaction import Transaction
from forklake.commit.draft import Draft
from forklake.context.lake_context import LakeContext
from forklake.context.scope import Scope
from forklake.engine.query.run import Parameters, Rows, TimeLimit
from forklake.engine.query.workbench import Workbench
from forklake.errors import FileMissing, InvalidSql, NotFound
from forklake.lazy.arrow import pa
from forklake.model.names import QualifiedName, is_absolute, quoted
from forklake.model.time_travel import AsOf
from forklake.sql.access import Access, default_access
from forklake.sql.binder import Binder
from forklake.sql.functions.calls import call_function, changes_something, hidden_columns
from forklake.sql.names import Names
from forklake.sql.options import SqlOptions
from forklake.sql.statements import ObjectName
from forklake.store.paths import has_others_files, own_data_paths

if TYPE_CHECKING:
    from forklake.sql.session import Session


@dataclass(slots=True)
class Running:
    """A statement that is being run."""

    session: Session
    options: SqlOptions
    params: Parameters = None
    given: Mapping[str, pa.Table] = field(default_factory=dict[str, "pa.Table"])
    """Arrow tables that it may read, by their names."""
    limit: TimeLimit | None = None
    """For how long it may run."""
    has_called: bool = False
    """Whether it has called a function of ours, which may have changed something."""

    @classmethod
    def begin(
        cls, session: Session, options: SqlOptions, params: Parameters, given: Mapping[str, pa.Table]
    ) -> Running:
        """A statement that begins now."""
        seconds = options.max_seconds
        limit = None if seconds is None else TimeLimit(seconds, time.monotonic() + seconds)
        return cls(session, options, params, given, limit)

    def rows_of(self, binder: Binder) -> Rows:
        """Rows that a part of the statement needs."""
        return Rows(binder.workbench, self.context.storage, binder.plans, lambda: None, limit=self.limit)

    @property
    def context(self) -> LakeContext:
        """The lake."""
        return self.session.context

    @property
    def access(self) -> Access:
        """What it may reach."""
        context, options = self.context, self.options
        found = context.database.home() if context.database.dialect != "postgresql" else None
        return default_access(
            None if found is None else found.name,
            context.storage.data_path,
            lambda: own_data_paths(context.database),
            allow=options.allow,
            read_only=options.read_only,
            own=self._own_folder,
        )

    def _own_folder(self) -> str | None:
        """Where the catalog keeps its files, if no other one keeps any there."""
        if self.session.handle is None:
            return None
        head, context = scope_of(self.session.work).read().head, self.context
        path = head.data_path
        if has_others_files(context.database, head.catalog_id, path):
            return None
        return context.storage.address(path.rstrip("/"), relative=not is_absolute(path))

    @property
    def work(self) -> Catalog | Transaction:
        """Where changes take effect."""
        if self.options.read_only:
            raise InvalidSql("this statement changes something, and only reading is allowed here")
        return self.session.work

    @property
    def scope(self) -> Scope:
        """The same, for engines."""
        return scope_of(self.work)

    def names(self, draft: Draft | None = None) -> Names:
        """What names mean; with a draft, in the catalog as the draft shows it."""
        session = self.session
        drafts: dict[tuple[str, AsOf | None], Draft] = {}
        if draft is not None and session.catalog is not None:
            drafts[session.catalog.lower(), None] = draft
        return Names(session.find_scope, session.catalog, session.schema, drafts)

    def target(self, name: ObjectName) -> QualifiedName:
        """The table that a statement changes."""
        return self.names().target(name.parts)

    @contextmanager
    def binder(self, draft: Draft | None = None) -> Generator[Binder]:
        """What binds queries of this statement, for the time of a block."""
        access = self.access
        with self._workbench(access) as workbench:
            yield self._binder(workbench, access, self.names(draft))

    def _workbench(self, access: Access) -> AbstractContextManager[Workbench]:
        return self.context.workbenches.one(access.directories, self.session.owner, self.options.memory)

    def view_columns(self, name: QualifiedName) -> list[tuple[str, str]] | None:
        """Names and types of the columns of a view; None if it cannot be read, as when a table is gone."""
        try:
            with self.binder() as binder:
                query = binder.read(f"FROM {quoted(name.schema)}.{quoted(name.name)} LIMIT 0")
                (sql,) = binder.prepare(query)
                rows = self.rows_of(binder)
                rows.begin(sql, None)
                return list(zip(rows.schema.names, rows.types, strict=True))
        except (InvalidSql, NotFound):
            return None

    def query(self, text: str) -> Rows:
        """The rows of a query, of the present as it is when they are found."""
        while True:
            names = self.names()
            try:
                return self._query(text, names)
            except (NotFound, FileMissing):
                # What a function has done is not done twice.
                if self.has_called or not names.are_overtaken():
                    raise

    def _query(self, text: str, names: Names) -> Rows:
        access, context = self.access, self.context
        workbench = context.workbenches.take(access.directories, self.session.owner, self.options.memory)
        try:
            binder = self._binder(workbench, access, names)
            (sql,) = binder.prepare(binder.read(text))
            rows = Rows(
                workbench,
                context.storage,
                binder.plans,
                lambda: context.workbenches.give_back(workbench),
                most_rows=self.options.max_rows,
                # Of its own: when they are asked for is not up to the statement.
                limit=None if self.limit is None else TimeLimit(self.limit.seconds),
            )
            rows.begin(sql, binder.used(sql) if self.params else None)
        except BaseException:
            context.workbenches.give_back(workbench)
            raise
        return rows

    def _binder(self, workbench: Workbench, access: Access, names: Names) -> Binder:
        binder = Binder(
            context=self.context,
            workbench=workbench,
            names=names,
            access=access,
            params=self.params,
            limit=self.limit,
            data=self.options.data,
            call=self._call,
            hides=hidden_columns,
            changes=changes_something,
        )
        for name, rows in self.given.items():
            binder.add_rows(name, rows)
        workbench.set_variables(self.session.variables)
        return binder

    def _call(
        self,
        name: Sequence[str],
        positional: Sequence[Any],
        named: Mapping[str, Any],
        *,
        only_columns: bool = False,
    ) -> pa.Table | None:
        found = call_function(self, name, positional, named, only_columns=only_columns)
        self.has_called |= found is not None
        return found
