"""What names in SQL mean: catalogs, schemas, and what is in them, as one statement sees them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from forklake.commit.draft import Draft
from forklake.context.scope import Scope
from forklake.errors import CatalogNotFound, TableNotFound
from forklake.model.alike import fold, nearest_of
from forklake.model.entities import Macro, MacroKind, Table, View
from forklake.model.names import QualifiedName
from forklake.model.time_travel import AsOf

DATABASES = frozenset({"memory", "temp", "system"})
"""Names that DuckDB has for databases of its own."""


@dataclass(frozen=True, slots=True)
class Found:
    """A table, view or macro that a name stands for."""

    catalog: str
    schema: str
    draft: Draft
    item: Table | View | Macro
    at: AsOf | None = None

    @property
    def name(self) -> str:
        """Its own name, as it was created."""
        return self.item.name

    @property
    def key(self) -> tuple[Any, ...]:
        """What tells it from all others, at this snapshot and at past ones."""
        return (self.catalog, self.at, type(self.item), self.item.id)


@dataclass(slots=True)
class Names:
    """The names that one statement can use. Each catalog is looked at once, and so seen in one state."""

    scope_of: Callable[[str], Scope | None]
    """The catalog of a name, if the statement may use it."""
    catalog: str | None
    """The catalog of names that do not say one; None where each has to."""
    schema: str = "main"
    drafts: dict[tuple[str, AsOf | None], Draft] = field(default_factory=dict[tuple[str, AsOf | None], Draft])

    def draft(self, catalog: str, at: AsOf | None = None) -> Draft | None:
        """A catalog as the statement sees it."""
        key = (catalog.lower(), at)
        if key not in self.drafts:
            scope = self.scope_of(catalog)
            if scope is None:
                return None
            self.drafts[key] = scope.read() if at is None else scope.at(at).read()
        return self.drafts[key]

    def are_overtaken(self) -> bool:
        """Whether the present state of a catalog, as the statement sees it, was expired meanwhile."""
        for (catalog, at), draft in self.drafts.items():
            scope = self.scope_of(catalog) if at is None else None
            if scope is not None and scope.is_overtaken(draft):
                return True
        return False

    def name_of(self, catalog: str) -> str:
        """The name of a catalog as it was created."""
        scope = self.scope_of(catalog)
        return catalog if scope is None else scope.name

    def places(self, parts: Sequence[str]) -> list[tuple[str, str, str]]:
        """What `orders`, `sales.orders` or `shop.sales.orders` may be: catalog, schema and name, in order."""
        if len(parts) >= 3:
            return [(parts[-3], parts[-2], parts[-1])]
        if len(parts) == 2:
            inside = [] if self.catalog is None else [(self.catalog, parts[0], parts[1])]
            return [*inside, (parts[0], "main", parts[1])]
        return [] if self.catalog is None else [(self.catalog, self.schema, parts[0])]

    def relation(self, parts: Sequence[str], at: AsOf | None = None) -> Found | None:
        """The table or view of a name, if there is one."""
        for catalog, schema, name in self.places(parts):
            draft = self.draft(catalog, at)
            if draft is None:
                continue
            item = draft.find_relation(QualifiedName(schema, name))
            if item is not None:
                return self._found(catalog, draft, item, at)
        return None

    def macro(self, parts: Sequence[str], kind: MacroKind) -> Found | None:
        """The macro of a name, if there is one: an expression, or a query."""
        places = self.places(parts)
        if len(parts) == 1:
            # As in DuckDB, which looks for tables in the schema alone.
            places += [
                (catalog, "main", name) for catalog, schema, name in places if schema.lower() != "main"
            ]
        for catalog, schema, name in places:
            draft = self.draft(catalog)
            item = None if draft is None else draft.find_macro(QualifiedName(schema, name), kind)
            if draft is not None and item is not None:
                return self._found(catalog, draft, item, None)
        return None

    def target(
        self, parts: Sequence[str], what: Literal["table", "view", "macro"] = "table"
    ) -> QualifiedName:
        """Where a statement that changes something means: always in the catalog that it runs in."""
        for catalog, schema, name in self.places(parts):
            if self.catalog is not None and catalog.lower() == self.catalog.lower():
                if len(parts) == 2 and self._is_own_name(parts[0]):
                    schema = "main"
                return QualifiedName.parse((schema, name), what)
        raise CatalogNotFound(
            f'"{".".join(parts)}" is in another catalog than this statement changes: run it there'
        )

    def unknown(self, parts: Sequence[str], at: AsOf | None = None) -> TableNotFound:
        """What to say of a table that is not there, or was not at a past snapshot."""
        if at is not None and self.relation(parts) is not None:
            when = f"snapshot {at}" if isinstance(at, int) else str(at)
            said = f'there was no table or view "{".".join(parts)}" at {when}'
            return TableNotFound(f"{said}: it is younger, or had another name")
        schema, name = parts[-2] if len(parts) > 1 else self.schema, parts[-1]
        meant = nearest_of(QualifiedName(schema, name), self._known())
        hint = "SHOW TABLES lists what there is" if meant is None else f'did you mean "{self._shown(meant)}"?'
        return TableNotFound(f'there is no table or view "{".".join(parts)}": {hint}')

    def _is_own_name(self, first: str) -> bool:
        """Whether `shop.orders` says the catalog, not a schema."""
        if self.catalog is None or first.lower() != self.catalog.lower():
            return False
        draft = self.draft(self.catalog)
        return draft is not None and all(schema.name.lower() != first.lower() for schema in draft.schemas())

    def _known(self) -> list[QualifiedName]:
        draft = None if self.catalog is None else self.draft(self.catalog)
        if draft is None:
            return []
        names = [QualifiedName(table.schema, table.name) for table in draft.tables()]
        return [*names, *(draft.name_of(view) for view in draft.views())]

    def _shown(self, name: QualifiedName) -> str:
        return name.name if fold(name.schema) == fold(self.schema) else str(name)

    def _found(self, catalog: str, draft: Draft, item: Table | View | Macro, at: AsOf | None) -> Found:
        return Found(self.name_of(catalog), draft.name_of(item).schema, draft, item, at)


def view_name(found: Found) -> str:
    """A table at a past snapshot has a view of its own beside that of the present."""
    return found.name if found.at is None else f"{found.name} at {found.draft.head.snapshot_id}"


def is_ambiguous(parts: Sequence[str], found: Found) -> bool:
    """Whether DuckDB would not find the view by the name as it was written."""
    if found.catalog.lower() in DATABASES:
        return True
    if len(parts) != 2:
        return False
    return parts[0].lower() in {found.catalog.lower(), *DATABASES}


def past(scope_of: Callable[[str], Scope | None], at: AsOf) -> Callable[[str], Scope | None]:
    """Catalogs as they were at a snapshot."""

    def found(name: str) -> Scope | None:
        scope = scope_of(name)
        return None if scope is None else scope.at(at)

    return found
