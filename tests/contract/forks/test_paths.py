"""Where files of forks lie: in a folder of their own, or at a place of their own (F4)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import forklake
from tests.contract.rows.shown import MANY, content, feed, ids, many, numbered


@pytest.fixture
def source(catalog: forklake.Catalog) -> forklake.Catalog:
    catalog.create_table("t", "id BIGINT, v VARCHAR").append(many())
    return catalog


def paths(table: forklake.Table) -> list[str]:
    return [file.path for file in table.files() if file.path]


def test_files_of_a_fork_go_where_it_was_told(anywhere: forklake.Lake, data_path: str, raw_on) -> None:
    source = anywhere.create_catalog("parent")
    table = source.create_table("t", "id BIGINT, v VARCHAR")
    table.append(many())
    table.delete("id < 110")
    own = data_path.partition("?")[0] + "-of-a-fork"
    child = anywhere.fork("parent", "child", data_path=own)
    other = child.table("t")
    inherited = paths(other)
    assert content(other) == content(table)
    other.append(many(1000))
    other.append(numbered(5000))
    other.delete("id >= 1000 AND id < 1120 OR id = 111")
    assert child.flush_inlined() == 1
    child.create_table("new", "id BIGINT, v VARCHAR").append(many())
    child.create_schema("s")
    child.create_table("s.new", "id BIGINT, v VARCHAR").append(many())
    assert ids(other) == [110, *range(112, MANY), *range(1120, 1000 + MANY), 5000]
    mine = [path for name in ("t", "new", "s.new") for path in paths(child.table(name))]
    assert [path for path in mine if path.startswith(f"{own}/")] == [p for p in mine if p not in inherited]
    assert len(mine) == 5
    # Delete files too; and all of them are known by their absolute paths.
    for kind in ("data_file", "delete_file"):
        written = raw_on(
            f"SELECT path, path_is_relative FROM ducklake_{kind} WHERE catalog_id = {child.id} AND path <> ''"
        )
        assert written
        assert all(path.startswith(f"{own}/") and not relative for path, relative in written)
    # Those who come after read from all places, and write to their own.
    grandchild = anywhere.fork("child", "grandchild")
    assert content(grandchild.table("t")) == content(other)
    assert feed(grandchild.table("t"), 1) == feed(other, 1)
    grandchild.table("t").append(many(7000))
    assert [path.split("/")[0] for path in paths(grandchild.table("t")) if path not in mine] == [
        f"grandchild.{grandchild.id}"
    ]
    assert ids(table) == list(range(110, MANY))
    child.materialize()
    assert ids(child.at(child.snapshots()[-2].id).table("t")) == ids(other)
    anywhere.drop_catalog("child")
    assert grandchild.table("t").count() == len(ids(grandchild.table("t"))) == 40 - 1 + 30 + 1 + MANY


@pytest.fixture
def raw_on(anywhere: forklake.Lake, lake_url: str, sql_on) -> Callable[..., list[tuple]]:
    return sql_on(lake_url)


def test_a_lake_is_read_with_its_forks_places_after_opening_it_again(
    lake: forklake.Lake, source: forklake.Catalog, tmp_path: Path, reopen
) -> None:
    child = lake.fork("main_catalog", "child", data_path=tmp_path / "own")
    child.table("t").append(many(1000))
    again = reopen().catalog("child").table("t")
    assert ids(again) == [*range(MANY), *range(1000, 1000 + MANY)]
    again.append(many(2000))
    assert len([*(tmp_path / "own").rglob("*.parquet")]) == 2


def test_relative_places_are_meant_from_here(
    lake: forklake.Lake, source: forklake.Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    child = lake.fork("main_catalog", "child", data_path="own")
    monkeypatch.chdir("/")
    child.table("t").append(many(1000))
    assert len([*(tmp_path / "own").rglob("*.parquet")]) == 1


PLACES: dict[str, Callable[[Path], str]] = {
    "the lake's": lambda root: f"{root}/files",
    "the lake's with a slash": lambda root: f"{root}/files/",
    "inside the lake's": lambda root: f"{root}/files/sub",
    "around the lake's": lambda root: f"{root}",
    "around everything": lambda root: "/",
    "the lake's by detour": lambda root: f"{root}/x/../files/sub",
    "the lake's by a link": lambda root: f"{root}/link/sub",
    "another fork's": lambda root: f"{root}/taken",
    "inside another fork's": lambda root: f"{root}/taken/deep/er",
    "around another fork's": lambda root: f"{root}/nest",
    "another fork's by detour": lambda root: f"{root}/files/../taken",
    "a dropped fork's": lambda root: f"{root}/dropped",
    "inside a dropped fork's": lambda root: f"{root}/dropped/sub",
    "an expired fork's": lambda root: f"{root}/./dropped/../dropped/",
}


@pytest.mark.parametrize("place", PLACES)
def test_places_of_others_are_refused(
    lake: forklake.Lake, source: forklake.Catalog, tmp_path: Path, unchanged, place: str
) -> None:
    lake.fork("main_catalog", "other", data_path=tmp_path / "taken")
    lake.fork("other", "nested", data_path=tmp_path / "nest" / "inner")
    lake.fork("main_catalog", "gone", data_path=tmp_path / "dropped")
    lake.drop_catalog("gone")
    (tmp_path / "link").symlink_to(tmp_path / "files")
    before = sorted(path.name for path in tmp_path.iterdir())
    with unchanged(), pytest.raises(forklake.DataPathOverlap, match="choose a place apart"):
        lake.fork("main_catalog", "new", data_path=PLACES[place](tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == before


@pytest.mark.parametrize("place", ["files2", "taken-too", "nest/other", "file", "Taken"])
def test_places_that_only_sound_alike_are_taken(
    lake: forklake.Lake, source: forklake.Catalog, tmp_path: Path, place: str
) -> None:
    lake.fork("main_catalog", "other", data_path=tmp_path / "taken")
    lake.fork("other", "nested", data_path=tmp_path / "nest" / "inner")
    child = lake.fork("main_catalog", "child", data_path=tmp_path / place)
    child.table("t").append(many(1000))
    assert len([*(tmp_path / place).rglob("*.parquet")]) == 1


def test_a_link_that_leads_to_a_taken_place_is_seen_through(
    lake: forklake.Lake, source: forklake.Catalog, tmp_path: Path, unchanged
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    lake.fork("main_catalog", "one", data_path=tmp_path / "link")
    with unchanged(), pytest.raises(forklake.DataPathOverlap):
        lake.fork("main_catalog", "two", data_path=tmp_path / "real")


def test_places_in_a_bucket_are_told_apart(lake_url: str, s3_url: str) -> None:
    bucket = f"s3://{urlsplit(s3_url).netloc}"
    with forklake.connect(lake_url, data_path=s3_url, create=True) as lake:
        lake.create_catalog("parent")
        lake.fork("parent", "other", data_path=f"{bucket}/own/a")
        for taken in ("", "/lake", "/lake/x", "/own", "/own/a/", "/own/a/b"):
            with pytest.raises(forklake.DataPathOverlap):
                lake.fork("parent", "new", data_path=bucket + taken)
        for free in ("/lake2", "/own/ab", "/own/b"):
            lake.fork("parent", free, data_path=bucket + free)
        with pytest.raises(forklake.InvalidUrl, match="options"):
            lake.fork("parent", "new", data_path=f"{bucket}/new?region=x")


def test_two_cannot_take_one_place_at_once(
    lake: forklake.Lake, source: forklake.Catalog, tmp_path: Path, reopen, in_threads
) -> None:
    def take(number: int) -> bool:
        try:
            reopen().fork("main_catalog", f"f{number}", data_path=tmp_path / "own" / ("x" * (number % 2)))
        except forklake.DataPathOverlap:
            return False
        return True

    assert sorted(in_threads(*(lambda n=n: take(n) for n in range(4)))) == [False] * 3 + [True]


@pytest.mark.parametrize(
    "path", ["", " ", "\0", "gs://bucket/x", "s3://", "s3://bucket/../x", "s3://u:p@b/x"]
)
def test_what_is_no_place_is_refused(lake: forklake.Lake, source, unchanged, path: str) -> None:
    with unchanged(), pytest.raises(forklake.InvalidUrl):
        lake.fork("main_catalog", "new", data_path=path)


def test_an_existing_fork_does_for_the_same_place_again(
    lake: forklake.Lake, source: forklake.Catalog, tmp_path: Path, unchanged
) -> None:
    made = lake.fork("main_catalog", "child", data_path=tmp_path / "own", if_not_exists=True)
    with unchanged():
        again = lake.fork("main_catalog", "child", data_path=tmp_path / "own", if_not_exists=True)
    assert again.id == made.id
