"""A PgBouncer of our own on loopback, before a PostgreSQL server. Nobody needs a password for it."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Self
from urllib.parse import unquote, urlsplit

from forklake.localpg import _free_port, _Launcher, _unprivileged_account, _Watched

_SECONDS = 30
_PORT_ATTEMPTS = 3


class PgBouncer:
    """A pooler in transaction mode that lives at most as long as this process.

    `prepared` is how many prepared statements it tracks for each server connection, 0 for none. Others of
    its settings have the names that it gives them.
    """

    def __init__(self, server: str, *, pool_size: int = 4, prepared: int = 0, **settings: str) -> None:
        self._server = server
        self._settings = {
            "listen_addr": "127.0.0.1",
            "unix_socket_dir": "",
            # Whoever comes is the one user that the line of the databases names.
            "auth_type": "any",
            "pool_mode": "transaction",
            "default_pool_size": str(pool_size),
            "max_client_conn": "500",
            "query_wait_timeout": "60",
        }
        if tracks_statements():
            self._settings["max_prepared_statements"] = str(prepared)
        self._settings |= settings
        self._scratch: Path | None = None
        self._running: _Watched | None = None
        self._port = 0

    def through(self, url: str) -> str:
        """An address of the server, through the pooler."""
        address = urlsplit(url)
        netloc = f"{address.username}@127.0.0.1:{self._port}"
        _behind[netloc] = address.netloc
        return address._replace(netloc=netloc).geturl()

    def start(self) -> Self:
        program = find_program()
        assert program is not None
        account = _unprivileged_account() if os.geteuid() == 0 else None
        self._scratch = Path(tempfile.mkdtemp(prefix="forklake-pgbouncer-"))
        config = self._scratch / "pgbouncer.ini"
        launcher = _Launcher(program.parent, self._scratch, account)
        log = ""
        # Between the choice of a port and its use, somebody else may have taken it.
        for _ in range(_PORT_ATTEMPTS):
            self._port = _free_port()
            config.write_text(self._config())
            if account is not None:
                for path in (self._scratch, config):
                    os.chown(path, account.pw_uid, account.pw_gid)
            self._running = launcher.run(program.name, str(config))
            if self._comes_up(self._running):
                return self
            log = self._running.log_tail()
            self._running.end()
            self._running = None
        self.stop()
        raise AssertionError(f"{program} did not start; the end of its log:\n{log}")

    def _comes_up(self, running: _Watched) -> bool:
        deadline = time.monotonic() + _SECONDS
        while running.process.poll() is None and time.monotonic() < deadline:
            if self._listens():
                return True
            time.sleep(0.02)
        return False

    def stop(self) -> None:
        if self._running is not None:
            self._running.end()
            self._running = None
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _config(self) -> str:
        address = urlsplit(self._server)
        target = {
            "host": address.hostname,
            "port": address.port or 5432,
            "user": unquote(address.username or ""),
        }
        if address.password:
            target["password"] = unquote(address.password)
        # PgBouncer doubles quotes where others would escape them.
        quoted = {name: str(value).replace("'", "''") for name, value in target.items()}
        settings = {**self._settings, "listen_port": str(self._port)}
        lines = [
            "[databases]",
            "* = " + " ".join(f"{name}='{value}'" for name, value in quoted.items()),
            "[pgbouncer]",
            *(f"{name} = {value}" for name, value in settings.items()),
        ]
        return "\n".join([*lines, ""])

    def _listens(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self._port), timeout=1).close()
        except OSError:
            return False
        return True


def find_program() -> Path | None:
    """That of FORKLAKE_TEST_PGBOUNCER, or the one on the path or where systems have theirs."""
    given = os.environ.get("FORKLAKE_TEST_PGBOUNCER")
    found = given or shutil.which(
        "pgbouncer", path=os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin"))
    )
    return Path(found) if found else None


def tracks_statements() -> bool:
    """Whether this PgBouncer can track prepared statements: from 1.21 on."""
    program = find_program()
    assert program is not None
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"PgBouncer (\d+)\.(\d+)", said)
    assert found is not None, said
    return (int(found[1]), int(found[2])) >= (1, 21)


_behind: dict[str, str] = {}
"""Where the server is that a pooler stands before, by their places."""


def direct(url: str) -> str:
    """The same address without a pooler of ours."""
    address = urlsplit(url)
    return address._replace(netloc=_behind.get(address.netloc, address.netloc)).geturl()
