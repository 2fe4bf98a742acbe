"""pandas writes DataFrames to tables, and reads queries and tables, by an engine."""

from __future__ import annotations

import pandas as pd
import pytest
import sqlalchemy as sa

import forklake


@pytest.fixture
def frame() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "a": [1, 2, 3],
            "b": ["x", None, "z"],
            "c": [0.1, float("nan"), 2.5],
            "t": pd.to_datetime(["2026-01-01 00:00:00.000000", "2026-01-02 03:04:05.678901", None]),
            "f": [True, False, True],
        }
    )


def test_a_frame_comes_back_as_it_was(lake: forklake.Lake, engine: sa.Engine, frame: pd.DataFrame) -> None:
    before = len(lake.snapshots())
    assert frame.to_sql("frame", engine, index=False) == 3
    assert len(lake.snapshots()) == before + 1
    pd.testing.assert_frame_equal(pd.read_sql("SELECT * FROM frame ORDER BY a", engine), frame)
    pd.testing.assert_frame_equal(pd.read_sql_table("frame", engine).sort_values("a"), frame)
    found = pd.read_sql(sa.text("SELECT a FROM frame WHERE a > :least"), engine, params={"least": 2})
    assert found["a"].tolist() == [3]


def test_frames_are_appended_replaced_and_refused(engine: sa.Engine, frame: pd.DataFrame) -> None:
    frame.to_sql("frame", engine)
    frame.to_sql("frame", engine, if_exists="append")
    assert pd.read_sql("SELECT count(*) AS n FROM frame", engine)["n"].tolist() == [6]
    with pytest.raises(ValueError, match="already exists"):
        frame.to_sql("frame", engine)
    frame[["a"]].to_sql("frame", engine, if_exists="replace", index=False)
    assert list(pd.read_sql("FROM frame", engine).columns) == ["a"]
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE SCHEMA staging")
    frame.to_sql("frame", engine, schema="staging", chunksize=2, method="multi")
    assert len(pd.read_sql_table("frame", engine, schema="staging")) == 3
