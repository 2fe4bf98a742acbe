"""The jars of other table formats, fetched by Maven's own client, which knows where from."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

JARS = {
    "Iceberg 1.12.0": ("org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",),
    "Delta 4.4.0": ("io.delta:delta-spark_4.1_2.13:4.4.0", "io.delta:delta-storage:4.4.0"),
}
"""Both have builds for Spark 4.1, and none for a newer one."""
FOLDER = Path(os.environ.get("FORKLAKE_JARS") or Path(__file__).parent.parent / ".venvs" / "jars")


def jars(progress: Callable[[str], None]) -> dict[str, list[Path]]:
    """Where they are; those that are missing are fetched."""
    return {name: [_jar(each, progress) for each in needed] for name, needed in JARS.items()}


def _jar(coordinates: str, progress: Callable[[str], None]) -> Path:
    _, artifact, version = coordinates.split(":")
    path = FOLDER / f"{artifact}-{version}.jar"
    if not path.is_file():
        client = shutil.which("mvn")
        if client is None:
            raise SystemExit(f"{path} is missing: put it there, or install Maven (mvn), which fetches it")
        progress(f"{path.name} is fetched")
        subprocess.run(
            [
                client,
                "-q",
                "-B",
                "dependency:copy",
                f"-Dartifact={coordinates}",
                f"-DoutputDirectory={FOLDER}",
            ],
            check=True,
        )
    return path
