"""The published suite of the standard, as it is, on every backend."""

from __future__ import annotations

import unittest
from pathlib import Path

import dbapi20

from forklake import dbapi


def test_the_published_suite_finds_nothing(lake_url: str, tmp_path: Path) -> None:
    connections: list[dbapi.Connection] = []

    class Compliance(dbapi20.DatabaseAPI20Test):
        driver = dbapi

        def _connect(self) -> dbapi.Connection:
            # The suite leaves some of them open.
            connections.append(dbapi.connect(lake_url, "shop", create=True, data_path=tmp_path / "files"))
            return connections[-1]

        def test_nextset(self) -> None:
            """Nothing has more than one result, so there is no such method."""
            assert not hasattr(dbapi.Cursor, "nextset")

        def test_setoutputsize(self) -> None:
            """It does nothing, which the suite tests apart."""

    suite = unittest.defaultTestLoader.loadTestsFromTestCase(Compliance)
    result = unittest.TestResult()
    suite.run(result)
    for connection in connections:
        if not connection.closed:
            connection.close()
    assert result.testsRun > 30
    assert [*result.errors, *result.failures, *result.skipped] == []
