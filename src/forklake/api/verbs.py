"""The verbs that a catalog and a transaction share; each takes effect where its scope says."""

from __future__ import annotations

from forklake.api.definitions import DefinitionVerbs
from forklake.api.maintenance import MaintenanceVerbs
from forklake.api.restoring import RestoreVerbs


class CatalogVerbs(DefinitionVerbs, MaintenanceVerbs, RestoreVerbs):
    """Reading and changing what a catalog holds."""

    @property
    def name(self) -> str:
        """The name of the catalog."""
        return self._scope.name
