"""Lakes in several schemas of one database do not see each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import forklake
from forklake.errors import ForklakeError, MetadataNotFound

ODD_SCHEMA = "we\"ird; sch'ema.µ ✓ %s $1 --"


@pytest.fixture(params=["duckdb", "postgresql"])
def shared_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a database that can hold several lakes."""
    if request.param == "postgresql":
        return request.getfixturevalue("postgres_database")
    return f"duckdb:///{tmp_path / 'shared.db'}"


@pytest.fixture
def open_in(shared_url: str, tmp_path: Path) -> Iterator[Callable[..., forklake.Lake]]:
    """Opens, or with create=True makes, the lake in a metadata schema of one shared database."""
    opened: list[forklake.Lake] = []

    def connect(schema: str, **options: Any) -> forklake.Lake:
        url = f"{shared_url}?metadata_schema={quote(schema, safe='')}"
        opened.append(forklake.connect(url, data_path=tmp_path / "files", **options))
        return opened[-1]

    yield connect
    for lake in opened:
        lake.close()


# The name of a DuckDB file without its ending is also the name of a catalog, which `USE` could mean as well.
@pytest.mark.parametrize("schema", [ODD_SCHEMA, "two words", "select", "shared", "temp", "Ünïcode", "7"])
def test_lakes_in_schemas_of_one_database_do_not_see_each_other(
    open_in: Callable[..., forklake.Lake], schema: str
) -> None:
    plain = open_in("plain", create=True)
    odd = open_in(schema, create=True)
    plain.create_catalog("a").create_table("only_in_plain", "id BIGINT")
    odd.create_catalog("a").create_schema("only_in_odd")
    odd.create_catalog("b")

    for lake in (open_in("plain"), plain):
        assert [catalog.name for catalog in lake.catalogs()] == ["a"]
        assert [table.name for table in lake.catalog("a").tables()] == ["only_in_plain"]
        assert [snapshot.id for snapshot in lake.snapshots()] == [0, 1, 2]
    for lake in (open_in(schema), odd):
        assert [catalog.name for catalog in lake.catalogs()] == ["a", "b"]
        assert lake.catalog("a").tables() == []
        assert [schema.name for schema in lake.catalog("a").schemas()] == ["main", "only_in_odd"]
        assert [snapshot.id for snapshot in lake.snapshots()] == [0, 1, 2, 3]


def test_views_read_the_lake_they_belong_to_wherever_the_connection_stands(
    shared_url: str, open_in: Callable[..., forklake.Lake], sql_on: Callable[[str], Callable[..., Any]]
) -> None:
    open_in("first", create=True).create_catalog("a").create_schema("of_first")
    open_in("second", create=True).create_catalog("a").create_schema("of_second")
    text = "SELECT schema_name FROM {}.visible_schema WHERE schema_name <> 'main'"
    standing_in_first = sql_on(f"{shared_url}?metadata_schema=first")
    assert standing_in_first(text.format("first")) == [("of_first",)]
    assert standing_in_first(text.format("second")) == [("of_second",)]


def test_a_schema_without_a_lake_is_not_found_beside_one_that_has_a_lake(
    open_in: Callable[..., forklake.Lake],
) -> None:
    open_in("here", create=True)
    with pytest.raises(MetadataNotFound):
        open_in("elsewhere")


def test_two_long_schema_names_never_mean_one_lake(open_in: Callable[..., forklake.Lake]) -> None:
    # PostgreSQL cuts names after 63 bytes.
    first, second = "n" * 63 + "_first", "n" * 63 + "_second"
    try:
        open_in(first, create=True).create_catalog("of_first")
        lake = open_in(second, create=True)
    except ForklakeError as error:
        assert "63" in str(error)
    else:
        assert lake.catalogs() == []


def test_names_of_schemas_are_told_apart_as_the_database_does(open_in: Callable[..., forklake.Lake]) -> None:
    open_in("lake", create=True).create_catalog("of_lower")
    # DuckDB takes both names for one schema, PostgreSQL does not; in neither do two lakes mix.
    try:
        upper = open_in("LAKE", create=True)
    except ForklakeError as error:
        assert "\n" not in str(error)
    else:
        upper.create_catalog("of_upper")
    assert [catalog.name for catalog in open_in("lake").catalogs()][:1] == ["of_lower"]
