"""A real server each time; nothing here is faked but the places where programs are looked for."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from forklake import localpg
from forklake.errors import ForklakeError, MissingDependency, StoreUnavailable
from forklake.localpg import LocalPostgres

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has to change the user")


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that the server's user may enter, unlike `tmp_path` when root runs the tests."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def value(url: str, query: str) -> object:
    with psycopg.connect(url) as connection:
        row = connection.execute(query).fetchone()
    assert row is not None
    return row[0]


def server_pid(url: str) -> int:
    data = Path(str(value(url, "SHOW data_directory")))
    return int((data / "postmaster.pid").read_text().splitlines()[0])


def answers(url: str) -> bool:
    try:
        psycopg.connect(url, connect_timeout=60).close()
    except psycopg.OperationalError:
        return False
    return True


def eventually(condition: Callable[[], bool], seconds: float = 240) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def run_elsewhere(program: str, folder: Path) -> subprocess.Popen[str]:
    """Run Python code in a process of its own, with its temporary files in `folder`."""
    return subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(folder)},
        text=True,
    )


START_AND_TELL = """
from forklake.localpg import LocalPostgres
server = LocalPostgres(fsync=False).start()
print(server.url, flush=True)
"""


def test_server_answers_with_its_settings():
    with LocalPostgres(max_connections=123) as server:
        assert server.url.startswith("postgresql://postgres@127.0.0.1:")
        assert value(server.url, "SHOW max_connections") == "123"
        assert value(server.url, "SHOW fsync") == "on"
        assert value(server.url, "SHOW server_encoding") == "UTF8"
        assert value(server.url, "SHOW listen_addresses") == "127.0.0.1"


def test_stop_ends_the_process_and_removes_its_folder():
    server = LocalPostgres(fsync=False).start()
    url = server.url
    data = Path(str(value(url, "SHOW data_directory")))
    pid = server_pid(url)
    server.stop()
    server.stop()
    assert not answers(url)
    assert not data.parent.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    with pytest.raises(StoreUnavailable, match="not running"):
        _ = server.url


def test_stop_does_not_wait_for_clients():
    with LocalPostgres(fsync=False) as server, psycopg.connect(server.url) as client:
        server.stop()
        with pytest.raises(psycopg.OperationalError):
            client.execute("SELECT 1")


def test_start_again_after_stop():
    server = LocalPostgres(fsync=False)
    for _ in range(2):
        with server:
            assert value(server.url, "SELECT 1") == 1


def test_ctrl_c_in_the_terminal_is_left_to_us():
    with LocalPostgres(fsync=False) as server:
        assert os.getsid(server_pid(server.url)) != os.getsid(0)


def test_two_servers_at_once():
    with LocalPostgres(fsync=False) as one, LocalPostgres(fsync=False) as two:
        assert one.url != two.url
        with psycopg.connect(one.url) as connection:
            connection.execute("CREATE TABLE only_here ()")
        assert value(two.url, "SELECT to_regclass('only_here')") is None


def test_data_in_a_given_folder_stays(open_folder: Path):
    data = open_folder / "some data"
    with LocalPostgres(data) as server, psycopg.connect(server.url) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 7 AS n")
    with LocalPostgres(data) as server:
        assert value(server.url, "SELECT n FROM kept") == 7


def test_killed_process_takes_its_server_along(open_folder: Path):
    open_folder.chmod(0o1777)
    with run_elsewhere(START_AND_TELL + "import time; time.sleep(600)", open_folder) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert answers(url)
        process.kill()
    assert eventually(lambda: not answers(url))
    assert eventually(lambda: not list(open_folder.iterdir()))


def test_process_that_forgets_to_stop_takes_its_server_along(open_folder: Path):
    open_folder.chmod(0o1777)
    with run_elsewhere(START_AND_TELL, open_folder) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
    assert process.returncode == 0
    assert eventually(lambda: not answers(url))
    assert eventually(lambda: not list(open_folder.iterdir()))


def test_server_outlives_the_thread_that_started_it():
    server = LocalPostgres(fsync=False)
    starter = threading.Thread(target=server.start)
    starter.start()
    starter.join()
    with server:
        time.sleep(0.2)
        assert answers(server.url)


def test_forked_copy_does_not_stop_the_server(open_folder: Path):
    program = """
import os, psycopg
child = os.fork()
if child == 0:
    server.stop()
    os._exit(0)
os.waitpid(child, 0)
psycopg.connect(server.url).close()
server.stop()
"""
    open_folder.chmod(0o1777)
    with run_elsewhere(START_AND_TELL + program, open_folder) as process:
        process.communicate()
    assert process.returncode == 0


def test_port_taken_in_between_is_replaced(monkeypatch: pytest.MonkeyPatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ports = [localpg._free_port(), taken.getsockname()[1]]
        monkeypatch.setattr(localpg, "_free_port", ports.pop)
        with LocalPostgres(fsync=False) as server:
            assert answers(server.url)
    assert ports == []


def test_failed_start_shows_the_log_and_leaves_nothing(open_folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tempfile, "tempdir", str(open_folder))
    with pytest.raises(StoreUnavailable, match="max_connections"):
        LocalPostgres(max_connections=-1).start()
    assert list(open_folder.iterdir()) == []


def test_server_that_is_too_slow_is_given_up(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(localpg, "_START_SECONDS", 0)
    with pytest.raises(StoreUnavailable, match="did not start"):
        LocalPostgres(fsync=False).start()


def test_folder_with_other_files_is_refused(open_folder: Path):
    (open_folder / "letter.txt").write_text("dear")
    with pytest.raises(StoreUnavailable, match="not empty"):
        LocalPostgres(open_folder).start()
    assert (open_folder / "letter.txt").read_text() == "dear"


def test_file_in_place_of_the_folder_is_refused(open_folder: Path):
    place = open_folder / "file"
    place.touch()
    with pytest.raises(ForklakeError, match="exists"):
        LocalPostgres(place).start()


def test_missing_programs_say_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(localpg, "_WHEELS", ())
    monkeypatch.setattr(localpg, "_SYSTEM_FOLDER", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("FORKLAKE_POSTGRES", raising=False)
    with pytest.raises(MissingDependency, match=r"pip install '.*\[postgres-server\]'"):
        LocalPostgres().start()


def test_programs_come_from_wheel_then_path_then_newest_of_the_system(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    def programs(name: str) -> Path:
        folder = tmp_path / name / "bin"
        folder.mkdir(parents=True)
        for program in ("postgres", "initdb"):
            (folder / program).touch(mode=0o755)
        return folder

    system = [programs(f"system/{version}") for version in ("9", "15", "18")]
    wheel = [programs(f"packages/some_wheel/{name}") for name in ("pginstall", "pginstall18")]
    (tmp_path / "packages/some_wheel/__init__.py").touch()
    path = programs("path")
    monkeypatch.setattr(localpg, "_WHEELS", ("some_wheel", "no_such_wheel"))
    monkeypatch.setattr(localpg, "_SYSTEM_FOLDER", tmp_path / "system")
    monkeypatch.syspath_prepend(tmp_path / "packages")
    monkeypatch.setenv("PATH", str(path))
    monkeypatch.delenv("FORKLAKE_POSTGRES", raising=False)
    assert list(localpg._program_folders()) == [*reversed(wheel), path, *reversed(system)]
    assert localpg.find_programs() == wheel[-1]
    monkeypatch.setenv("FORKLAKE_POSTGRES", str(system[0]))
    assert localpg.find_programs() == system[0]
    monkeypatch.setenv("FORKLAKE_POSTGRES", "/nowhere")
    with pytest.raises(MissingDependency, match=r"FORKLAKE_POSTGRES names /nowhere, .* or unset it"):
        localpg.find_programs()


@as_root
def test_root_copies_programs_that_others_cannot_read(open_folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("FORKLAKE_POSTGRES", raising=False)
    package = localpg.find_programs().parents[1]
    closed = open_folder / "closed"
    closed.mkdir(mode=0o700)
    for part in package.parent.glob(f"{package.name}*"):
        if part.suffix != ".dist-info":
            shutil.copytree(part, closed / part.name, symlinks=True)
    programs = closed / localpg.find_programs().relative_to(package.parent)
    monkeypatch.setattr(localpg, "find_programs", lambda: programs)
    with LocalPostgres(fsync=False) as server:
        assert value(server.url, "SELECT 1") == 1


@as_root
def test_root_is_told_about_a_folder_that_others_cannot_enter(open_folder: Path):
    open_folder.chmod(0o700)
    with pytest.raises(StoreUnavailable, match="cannot enter"):
        LocalPostgres(open_folder / "data").start()
