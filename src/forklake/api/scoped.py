"""What handles on catalogs, transactions and tables have in common: the scope that they work in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forklake.api.handle import Handle
from forklake.model.names import QualifiedName

if TYPE_CHECKING:
    from forklake.context.scope import Scope

Name = str | tuple[str, str] | QualifiedName
"""`orders`, `sales.orders`, `'"odd.schema"."t"'`, or a (schema, name) pair. The schema defaults to `main`."""


class ScopedHandle(Handle):
    """A handle that reads and changes a catalog, where its scope says."""

    @property
    def _scope(self) -> Scope:
        raise NotImplementedError


def scope_of(handle: ScopedHandle) -> Scope:
    """Where the work of a handle takes effect, for engines that do it."""
    return handle._scope  # pyright: ignore[reportPrivateUsage]
