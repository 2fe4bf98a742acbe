"""How much is asked of a bucket to find a row: for a thousand files as little as for a few."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest

import forklake
from forklake.index import coverage, segment_files, segment_parquet
from forklake.index.hash import Hash
from forklake.model.ids import CatalogId, DataFileId, IndexFileId, IndexId, SnapshotId
from forklake.model.index import IndexFile, SegmentSummary
from tests.index_checks import segments_of
from tests.moto_server import S3Server

FILES, MOST = 1_000, 30
OF_A_ROW = 4
"""What it takes to read one row of a data file that nobody has read before."""


def most_segments() -> int:
    """Of how many segments an index consists while commits of a file of a million rows each come in."""
    segments: list[IndexFile] = []
    most = number = 0
    for file in range(FILES):
        segments.append(_segment(file + 1, (file,), 0))
        while found := coverage.merges(segments, CatalogId(1), Hash.most_rows):
            for some in found:
                number += 1
                segments = [one for one in segments if one not in some]
                files = tuple(at for one in some for at in one.covers)
                segments.append(_segment(FILES + number, files, some[0].level + 1))
        most = max(most, len(segments))
        assert Counter(at for one in segments for at in one.covers) == Counter(range(file + 1))
    return most


def _segment(number: int, files: tuple[int, ...], level: int) -> IndexFile:
    rows, covers = 1_000_000 * len(files), tuple(map(DataFileId, files))
    return IndexFile(
        IndexFileId(number),
        IndexId(1),
        CatalogId(1),
        SnapshotId(1),
        f"{number}",
        True,
        9 * rows,
        SegmentSummary(rows, "forklake-hash", 1),
        covers,
        level,
    )


@pytest.fixture
def people(lake_url: str, s3_url: str) -> Iterator[forklake.Table]:
    """Six files of random ids in a bucket, with three segments."""
    with forklake.connect(lake_url, data_path=s3_url, create=True) as lake:
        table = lake.create_catalog("shop").create_table("people", "id UUID, v INTEGER")
        table.set_option("data_inlining_row_limit", 0)
        table.create_index("by_id", kind="hash", columns=["id"])
        random = np.random.default_rng(5)
        for first in (0, 100, 200):
            with lake.catalog("shop").transaction() as tx:
                for number in (first, first + 1):
                    ids = [UUID(bytes=random.bytes(16)) for _ in range(50)]
                    rows = pa.table(
                        {"id": [one.bytes for one in ids], "v": [number + at for at in range(50)]}
                    )
                    tx.table("people").append(
                        rows.set_column(0, "id", pa.array(rows.column(0).to_pylist(), pa.uuid()))
                    )
        yield table


def test_a_row_of_a_thousand_files_takes_less_than_thirty_requests(
    people: forklake.Table, lake_url: str, s3_url: str, s3_server: S3Server
) -> None:
    ids = [people.scan(f"v = {value}").to_pylist()[0]["id"] for value in (7, 108, 209)]
    segments = len(segments_of(people, "by_id"))
    assert segments == 3

    def requests(table: forklake.Table, id: object) -> tuple[int, int]:
        """How much was asked of segments, and of data files."""
        s3_server.requests.clear()
        assert table.scan(f"id = '{id}'").count() == 1
        asked = [request for request in s3_server.requests if request.method in ("GET", "HEAD")]
        of_index = sum("/index-" in request.path for request in asked)
        return of_index, len(asked) - of_index

    # A client that was just started knows nothing.
    segment_parquet.forget()
    segment_files.forget()
    with forklake.connect(lake_url, data_path=s3_url) as lake:
        table = lake.catalog("shop").table("people")
        of_index, of_data = requests(table, ids[0])
        # Its size, the footer, and a row group.
        assert of_index <= 3 * segments
        assert of_data <= OF_A_ROW
        segment_parquet.forget(footers=False)
        of_index, of_data = requests(table, ids[1])
        assert of_index == segments
        assert of_data <= OF_A_ROW
    each = of_index / segments
    assert most_segments() * each + OF_A_ROW < MOST


def test_a_segment_that_is_gone_from_the_bucket_is_told(people: forklake.Table, s3_server: S3Server) -> None:
    id = people.scan("v = 7").to_pylist()[0]["id"]
    assert people.scan(f"id = '{id}'").count() == 1
    segment_parquet.forget()
    with s3_server.refusing(lambda request: "/index-" in request.path, "404 Not Found"):
        plan = people.scan(f"id = '{id}'").plan()
        assert len(plan.files) == 6
        assert plan.indexes[0].problem
        assert people.scan(f"id = '{id}'").count() == 1
    assert len(people.scan(f"id = '{id}'").plan().files) == 1
