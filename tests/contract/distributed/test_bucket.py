"""A distributed snapshot with files in a bucket: the descriptor says where, the worker brings the key."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit

import forklake
from forklake.distributed import DistributedSnapshot, base_files, read_manifest, write_part
from tests.contract.rows.shown import MANY, ids, many


def test_workers_bring_their_own_credentials(lake_url: str, s3_url: str, sql_on) -> None:
    options = dict(parse_qsl(urlsplit(s3_url).query))
    with forklake.connect(lake_url, data_path=s3_url, create=True) as lake:
        catalog = lake.create_catalog("c")
        table = catalog.create_table("t", "id BIGINT, v VARCHAR")
        ds = DistributedSnapshot.from_json(catalog.begin_distributed().to_json())
        assert options["secret_key"] not in ds.to_json()
        kept = write_part(ds, "t", many(), part=0, manifest="file", storage_options=options)
        lost = write_part(ds, "t", many(), part=0, manifest="file", storage_options=options)
        assert kept.path is not None
        assert read_manifest(ds, kept.path, storage_options=options) == kept
        value = write_part(ds, "t", many(1000), part=1, storage_options=options)
        snapshot = catalog.commit_distributed(ds, [ds.address(ds.staging), value])
        assert ids(table) == [*range(MANY), *range(1000, 1000 + MANY)]
        second = catalog.begin_distributed()
        bases = base_files(table.scan().plan())
        gone = {base.id: range(120) for base in bases}
        deletes = write_part(second, "t", delete=gone, files=bases, storage_options=options)
        catalog.commit_distributed(second, deletes)
        assert table.count() == 60
        third = catalog.begin_distributed()
        write_part(third, "t", many(), manifest="file", storage_options=options)
        catalog.cancel_distributed(third)
        assert snapshot == ds.snapshot_id
        sql_on(lake_url)(
            "UPDATE ducklake_snapshot_reservation SET expires_at = '2020-01-01 00:00:00.000000+00:00'"
        )
        # Two manifests; the attempt that lost went with the commit, and what was cancelled before.
        assert [swept.files for swept in lake.expire_reservations()] == [2, 0, 0]
        left = {file.path for file in lake._context.storage.files()} - {*value.paths, *deletes.paths}
        assert left in (set(kept.paths), set(lost.paths))
