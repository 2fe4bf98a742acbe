"""Expiring, collecting and removing orphans in a bucket."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

import forklake
from forklake.data.storage.s3 import S3
from forklake.data.storage.storage import open_storage
from tests.contract.maintenance.cleaned import NOW, RunSql, clean, ids, left_behind, named, rows
from tests.moto_server import ACCESS_KEY, SECRET_KEY, Request, S3Server
from tests.unit.command_line import run


@pytest.fixture
def bucket_lake(lake_url: str, s3_url: str) -> Iterator[forklake.Lake]:
    """A lake in a bucket, with a table whose rows are in files."""
    with forklake.connect(lake_url, data_path=s3_url, create=True) as lake:
        table = lake.create_catalog("shop").create_table("t", "id INT, v VARCHAR")
        table.set_option("data_inlining_row_limit", 0)
        table.append(rows(0, 10))
        table.append(rows(10, 20))
        yield lake


@pytest.fixture
def raw(bucket_lake: forklake.Lake, lake_url: str, sql_on: Any) -> RunSql:
    return sql_on(lake_url)


def objects(s3_url: str) -> set[str]:
    return {file.path for file in open_storage(s3_url).files()}


def test_what_nobody_reaches_leaves_the_bucket(
    bucket_lake: forklake.Lake, raw: RunSql, s3_url: str, s3_server: S3Server
) -> None:
    shop, lake = bucket_lake.catalog("shop"), bucket_lake
    own = s3_server.url(s3_server.new_bucket(), "own")
    merged = lake.fork("shop", "merged")
    merged.table("t").append(rows(30, 35))
    merged.table("t").delete("id = 3")
    lake.merge(merged, "shop")
    lake.drop_catalog(merged)
    fork = lake.fork("shop", "fork", data_path=own.partition("?")[0])
    fork.table("t").overwrite(rows(20, 25))
    shop.compact()
    before = objects(s3_url)
    found = lake.expire(older_than=NOW)
    assert found.forgotten == 1
    assert lake.collect_garbage(older_than=timedelta(days=1)).removed == 0
    assert objects(s3_url) == before
    clean(lake)
    assert ids(shop) == [0, 1, 2, *range(4, 20), *range(30, 35)]
    assert ids(fork) == [*range(20, 25)]
    inside = {path for path in named(raw) if "://" not in path}
    assert objects(s3_url) == inside != before
    assert len(objects(own)) == 1
    lake.drop_catalogs(["shop", "fork"])
    clean(lake)
    assert objects(s3_url) == objects(own) == set()
    # A data path is known until nothing is in it, so the fork's goes with the next collection.
    clean(lake)
    assert left_behind(raw) == {}


def test_an_object_that_cannot_be_removed_stops_no_other_and_is_tried_again(
    bucket_lake: forklake.Lake, raw: RunSql, lake_url: str, s3_url: str, s3_server: S3Server
) -> None:
    bucket_lake.catalog("shop").table("t").overwrite(rows(50, 55))
    bucket_lake.expire(older_than=NOW)
    old = sorted(objects(s3_url) - set(_live(raw)))
    assert len(old) == 2

    def refuses(request: Request) -> bool:
        return request.method == "DELETE" and request.path.endswith(old[0])

    with s3_server.refusing(refuses):
        found = bucket_lake.collect_garbage(older_than=NOW)
        assert (found.removed, [(file.path, file.failed) for file in found.kept]) == (1, [(old[0], True)])
        assert "not allowed" in found.kept[0].why or "DELETE" in found.kept[0].why.upper()
        assert objects(s3_url) == {*_live(raw), old[0]}
        # The exit code says so, and what happened is printed all the same.
        ended = run("--lake", lake_url, "gc", "--older-than", "0s", **s3_environment(s3_server))
        assert ended.exit_code == 1 and old[0] in ended.stderr
    assert bucket_lake.collect_garbage(older_than=NOW).removed == 1
    assert objects(s3_url) == set(_live(raw))


def _live(raw: RunSql) -> list[str]:
    return [path for (path,) in raw("SELECT path FROM ducklake_data_file WHERE end_snapshot IS NULL")]


def s3_environment(server: S3Server) -> dict[str, str]:
    """What tells the command how to get to the bucket: options are not stored in the lake."""
    return {
        "AWS_ENDPOINT_URL": server.endpoint,
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_REGION": "us-east-1",
    }


def test_a_bucket_that_lists_late_loses_nothing(
    bucket_lake: forklake.Lake, raw: RunSql, s3_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = bucket_lake.catalog("shop").table("t")
    table.overwrite(rows(50, 55))
    late = list(open_storage(s3_url).files())
    # What was listed has gone since, and what came since is not listed.
    clean(bucket_lake)
    table.append(rows(60, 65))
    listed = open_storage(s3_url)
    bucket, prefix = listed.data_path.removeprefix("s3://").partition("/")[::2]
    full = S3.files

    def stale(place: S3, folder: str) -> Iterator[Any]:
        assert folder.startswith(bucket)
        return (replace(file, path=f"{bucket}/{prefix}{file.path}") for file in late)

    monkeypatch.setattr(S3, "files", stale)
    found = bucket_lake.remove_orphans(older_than=NOW)
    # They are gone already: removing them again is no failure.
    assert not found.kept
    monkeypatch.setattr(S3, "files", full)
    assert ids(bucket_lake.catalog("shop")) == [*range(50, 55), *range(60, 65)]
    assert objects(s3_url) == named(raw)


def test_orphans_in_a_bucket(bucket_lake: forklake.Lake, raw: RunSql, s3_url: str) -> None:
    storage = open_storage(s3_url)
    (first, *_) = sorted(objects(s3_url))
    orphan = first.rpartition("/")[0] + "/" + "0" * 32 + "-0.parquet"
    for path in (orphan, "notes.txt"):
        with storage.open_output(path) as stream:
            stream.write(b"anything")
    assert bucket_lake.remove_orphans().files == 0
    assert bucket_lake.remove_orphans(older_than=NOW, dry_run=True).files == 1
    found = bucket_lake.remove_orphans(older_than=NOW)
    assert (found.files, found.bytes) == (1, 8)
    assert [path.rpartition("/")[2] for path in found.unknown] == ["notes.txt"]
    assert objects(s3_url) == named(raw) | {"notes.txt"}
