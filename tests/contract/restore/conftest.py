"""Fixtures of going back; `lake`, `catalog`, `raw`, `reopen` come from the suite around it."""

from tests.contract.rows.conftest import counted

__all__ = ("counted",)
