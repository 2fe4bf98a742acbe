"""One clock: that of the database. What the clock of a client says changes nothing."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import forklake
from forklake import distributed
from tests.unit.command_line import data

SOURCE = Path(forklake.__file__).parent
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
only_postgresql = pytest.mark.parametrize("lake_url", ["postgresql"], indirect=True)
"""Where the database is in the process, its clock is the process's."""

Turn = Callable[[timedelta], None]


@pytest.fixture
def turn_clock(monkeypatch: pytest.MonkeyPatch) -> Turn:
    """Let the clock of this process be wrong by some time, wherever forklake looks at it."""

    def turn(by: timedelta) -> None:
        class Kind(type):
            def __instancecheck__(cls, value: object) -> bool:
                return isinstance(value, datetime)

        class Wrong(datetime, metaclass=Kind):
            @classmethod
            def now(cls, tz: Any = None) -> datetime:
                return datetime.now(tz) + by

        for name, module in list(sys.modules.items()):
            if name.startswith("forklake") and getattr(module, "datetime", None) is datetime:
                monkeypatch.setattr(module, "datetime", Wrong)

    return turn


wrong_by = pytest.mark.parametrize("by", [-DAY, DAY], ids=["late", "early"])


@pytest.fixture
def source(catalog: forklake.Catalog) -> forklake.Catalog:
    catalog.create_table("t", "n BIGINT")
    return catalog


def test_nobody_asks_another_clock() -> None:
    asking = {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if re.search(r"datetime\.now\(|utcnow\(|time\.time\(|date\.today\(", path.read_text())
    }
    # The clock of an embedded database, that of a worker, which has no database, and that of a folder for
    # copies on this machine.
    assert asking == {"store/embedded.py", "distributed/work.py", "index/bm25/unpacked.py"}


@wrong_by
def test_catalogs_expire_by_the_clock_of_the_database(
    lake: forklake.Lake, source: forklake.Catalog, turn_clock: Turn, by: timedelta
) -> None:
    turn_clock(by)
    lake.fork("main_catalog", "later", ttl=HOUR)
    lake.fork("main_catalog", "set")
    lake.set_ttl("set", HOUR)
    lake.fork_many("main_catalog", ["due", "due, too"], ttl=timedelta(milliseconds=1))
    now = lake.now()
    listed = {info.name: info for info in lake.catalogs()}
    assert all(now < (listed[name].expires_at or now) <= now + HOUR for name in ("later", "set"))
    time.sleep(0.01)
    assert sorted(lake.drop_expired()) == ["due", "due, too"]
    lake.set_ttl("set", timedelta(milliseconds=1))
    time.sleep(0.01)
    assert lake.drop_expired() == ["set"]


@wrong_by
@only_postgresql
def test_the_command_line_marks_what_has_expired_by_the_clock_of_the_database(
    lake: forklake.Lake, lake_url: str, source: forklake.Catalog, turn_clock: Turn, by: timedelta
) -> None:
    lake.fork("main_catalog", "later", ttl=HOUR)
    lake.fork("main_catalog", "due", ttl=timedelta(milliseconds=1))
    time.sleep(0.01)
    turn_clock(by)
    marks = {each["name"]: each["expired"] for each in data("--lake", lake_url, "catalogs")}
    assert marks == {"main_catalog": None, "later": False, "due": True}
    found = data("--lake", lake_url, "drop", "--expired", "--dry-run")
    assert [each["name"] for each in found] == ["due"]
    assert data("--lake", lake_url, "ttl", "later", "1h")["expires_at"] > lake.now().isoformat()


@wrong_by
@only_postgresql
def test_reservations_end_by_the_clock_of_the_database(
    lake: forklake.Lake, source: forklake.Catalog, turn_clock: Turn, by: timedelta, raw: Callable[..., Any]
) -> None:
    kept, over, empty = (source.begin_distributed(["t"], ttl=HOUR) for _ in range(3))
    parts = [distributed.write_part(ds, "t", [{"n": 1}], part="one") for ds in (kept, over)]
    turn_clock(by)
    assert lake.expire_reservations() == []
    raw(
        "UPDATE ducklake_snapshot_reservation SET expires_at = now() - interval '1 minute' "
        f"WHERE reservation_id = '{over.reservation_id}'"
    )
    with pytest.raises(forklake.ReservationExpired):
        source.commit_distributed(over, parts[1])
    assert [swept.reservation_id for swept in lake.expire_reservations()] == [over.reservation_id]
    source.commit_distributed(kept, parts[0])
    assert source.table("t").count() == 1
    assert source.commit_distributed(empty, []) == empty.parent_snapshot_id


@wrong_by
@only_postgresql
def test_snapshots_are_dated_by_the_clock_of_the_database(
    lake: forklake.Lake, source: forklake.Catalog, turn_clock: Turn, by: timedelta
) -> None:
    turn_clock(by)
    before = lake.now()
    source.table("t").append([{"n": 1}])
    assert before < source.snapshots()[-1].time < lake.now()
    assert source.at(before).table("t").count() == 0
    assert lake.catalog("main_catalog", at=lake.now()).table("t").count() == 1
