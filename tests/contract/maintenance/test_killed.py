"""A process that is killed while it collects: the next goes on, nothing is lost and nothing is forgotten."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

import forklake
from forklake.data.storage.storage import open_storage
from tests.contract.maintenance.cleaned import NOW, ids, left_behind, named, rows

ROUNDS = {"sqlite": 40, "duckdb": 16, "postgresql": 24}
FEWER = 2
"""With files in a bucket, so many times fewer rounds: what is done to the metadata is the same."""
# A process for each round is forked by one that has loaded everything, and holds no connection. It dies by
# SIGKILL before or after a statement, a commit or the removal of a file; or after some time, wherever it is.
COLLECT = """
    import signal, traceback
    from datetime import timedelta
    from forklake.data.storage.local import LocalDisk
    from forklake.data.storage.s3 import S3
    from forklake.store.duckdb import DuckDBDatabase, DuckDBSession
    from forklake.store.postgres import PostgresDatabase, PostgresSession
    from forklake.store.sqlite import SqliteDatabase, SqliteSession
    import pyarrow.parquet, duckdb

    def die():
        os.kill(os.getpid(), signal.SIGKILL)

    def collect(url, data_path, point, seconds):
        passed = 0
        def watched(work):
            def step(*given, **named):
                nonlocal passed
                passed += 1
                if passed == point:
                    die()
                done = work(*given, **named)
                if passed == -point:
                    die()
                return done
            return step
        for owner in (DuckDBSession, PostgresSession, SqliteSession):
            for name in ("execute", "rows", "commit"):
                setattr(owner, name, watched(getattr(owner, name)))
        for owner in (DuckDBDatabase, PostgresDatabase, SqliteDatabase):
            owner.rows = watched(owner.rows)
        LocalDisk.delete, S3.delete = watched(LocalDisk.delete), watched(S3.delete)
        if seconds is not None:
            signal.signal(signal.SIGALRM, lambda *_: die())
            signal.setitimer(signal.ITIMER_REAL, seconds)
        with forklake.connect(url, data_path=data_path) as lake:
            passed = 0
            lake.expire(older_than=timedelta(0))
            lake.collect_garbage(older_than=timedelta(0))

    say("ready")
    for line in sys.stdin:
        url, data_path, point, seconds = json.loads(line)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                collect(url, data_path, point, seconds)
                code = 0
            except Exception:
                traceback.print_exc()
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        say(os.waitstatus_to_exitcode(status))
"""


class Work:
    """Changes that leave garbage behind, and the rows that every catalog must have."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.known: dict[str, set[int]] = {"shop": set()}
        self.next = 0

    def do(self, lake: forklake.Lake) -> None:
        for _ in range(4):
            self.step(lake)

    def step(self, lake: forklake.Lake) -> None:
        name = self.random.choice(list(self.known))
        table = lake.catalog(name).table("t")
        added = set(range(self.next, self.next + 5))
        self.next += 5
        match self.random.randrange(6):
            case 0:
                table.overwrite(rows(min(added), max(added) + 1))
                self.known[name] = added
            case 1 if self.known[name]:
                gone = min(self.known[name])
                table.delete(f"id <= {gone + 2}")
                self.known[name] = {number for number in self.known[name] if number > gone + 2}
            case 2:
                lake.catalog(name).compact()
            case 3 if len(self.known) < 4:
                lake.fork(name, f"fork {self.next}")
                self.known[f"fork {self.next}"] = set(self.known[name])
            case 4 if name != "shop":
                lake.drop_catalog(name)
                del self.known[name]
            case _:
                table.append(rows(min(added), max(added) + 1))
                self.known[name] |= added

    def check(self, lake: forklake.Lake) -> None:
        assert {name: ids(lake.catalog(name)) for name in self.known} == {
            name: sorted(numbers) for name, numbers in self.known.items()
        }


@pytest.mark.timeout(600)
def test_the_next_collection_goes_on_where_one_was_killed(
    lake_url: str,
    data_path: str,
    program: Callable[..., Any],
    sql_on: Callable[[str], Callable[[str], list[tuple[Any, ...]]]],
) -> None:
    random = Random(14)
    work = Work(random)
    rounds = ROUNDS[lake_url.partition(":")[0]] // (FEWER if data_path.startswith("s3") else 1)

    def stored() -> set[str]:
        return {file.path for file in open_storage(data_path).files()}

    with forklake.connect(lake_url, data_path=data_path, create=True) as lake:
        lake.set_option("data_inlining_row_limit", 2)
        lake.create_catalog("shop").create_table("t", "id INT, v VARCHAR")
    collector = program(COLLECT)
    assert collector.hear() == "ready"
    killed = 0
    for turn in range(rounds):
        # DuckDB lets one process in, so the handle is closed while the other one works.
        with forklake.connect(lake_url, data_path=data_path) as lake:
            work.do(lake)
        if turn % 4:
            collector.tell([lake_url, data_path, random.randint(1, 120) * random.choice((1, -1)), None])
        else:
            collector.tell([lake_url, data_path, 0, random.uniform(0.001, 0.4)])
        ended = collector.hear()
        assert ended in (0, -9), ended
        killed += ended == -9
        with forklake.connect(lake_url, data_path=data_path) as lake:
            work.check(lake)
    assert killed > rounds // 3
    with forklake.connect(lake_url, data_path=data_path) as lake:
        lake.expire(older_than=NOW)
        assert not lake.collect_garbage(older_than=NOW).kept
        work.check(lake)
        # What a killed writer leaves are orphans; a collection leaves none.
        assert stored() == named(sql_on(lake_url))
        assert lake.remove_orphans(older_than=NOW).files == 0
        lake.drop_catalogs(list(work.known))
        lake.expire(older_than=NOW)
        lake.collect_garbage(older_than=NOW)
    assert stored() == set()
    assert left_behind(sql_on(lake_url)) == {}


KILLED = """
    import signal
    lake = forklake.connect(sys.argv[1])
    lake.catalog("shop").table("t").append([{"id": 1, "v": "x"}])
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_writer_committed_can_be_removed(
    lake_url: str, tmp_path: Path, program: Callable[..., Any], sql_on: Callable[[str], Any]
) -> None:
    with forklake.connect(lake_url, data_path=tmp_path / "files", create=True) as lake:
        lake.create_catalog("shop").create_table("t", "id INT, v VARCHAR")
    assert program(KILLED, lake_url).wait() == -9
    # Somebody who touches other tables comes first: DuckDB must not forget what is in the log.
    with forklake.connect(lake_url) as lake:
        lake.set_option("target_file_size", "1MB")
    with forklake.connect(lake_url) as lake:
        assert ids(lake.catalog("shop")) == [1]
        lake.drop_catalog("shop")
        lake.expire(older_than=NOW)
        lake.collect_garbage(older_than=NOW)
    assert left_behind(sql_on(lake_url)) == {}
