"""`forklake demo`: a lake of its own, the story told on it, and everything put away again."""

from __future__ import annotations

import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import typer
from rich.text import Text

from forklake.api.connect import init
from forklake.api.lake import Lake
from forklake.cli.history import SnapshotListed, write_history
from forklake.cli.options import Settings
from forklake.cli.render import Output, is_terminal, render, terminal
from forklake.demo.catalogs import STEPS
from forklake.demo.cleaning import STEPS as LAST_STEPS
from forklake.demo.spark import LOCAL, SparkStory, check_master
from forklake.demo.steps import Step
from forklake.display import literal
from forklake.errors import InvalidArgument, MissingDependency
from forklake.localpg import LocalPostgres


@dataclass(frozen=True, slots=True)
class StepResult:
    """What a step found to be true, and how long it took."""

    title: str
    milliseconds: float
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DemoResult:
    """The whole run."""

    lake: str
    steps: tuple[StepResult, ...]
    snapshots: tuple[SnapshotListed, ...]
    kept: str | None


def demo(
    settings: Settings,
    postgres: Annotated[
        bool, typer.Option("--postgres", help="Use a real PostgreSQL server, started for the demo only.")
    ] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the lake afterwards.")] = False,
    folder: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Where to make the lake: an empty folder, or one to be made."),
    ] = None,
    master: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Where Spark runs: local[*] is this machine and the default, spark://host:7077 a cluster, "
            "sc://host a server of Spark Connect. A cluster needs --folder on storage that all its machines "
            "share, and forklake installed where its executors run.",
        ),
    ] = None,
    no_spark: Annotated[bool, typer.Option("--no-spark", help="Leave out Spark.")] = False,
) -> None:
    """Run the demo on a lake of its own. Every step checks what it prints."""
    if master is not None:
        if no_spark:
            raise InvalidArgument("--master says where Spark runs, and --no-spark that it does not: give one")
        check_master(master, folder)
    with _place(folder, keep=keep) as place, ExitStack() as stack:
        steps: list[StepResult] = []
        begun = time.perf_counter()
        if postgres:
            # A server that is to be looked at later keeps its data in the folder; otherwise it finds its own.
            server = stack.enter_context(LocalPostgres(place / "postgres" if keep else None))
            url, kind = server.url, "a real PostgreSQL server"
        else:
            url, kind = f"sqlite:///{quote(str(place / 'lake.db'))}", "SQLite"
        lake = stack.enter_context(init(url, data_path=place / "files"))
        steps.append(StepResult(f"A lake on {kind}", _milliseconds_since(begun), (url,)))
        _print(steps[0], 1, settings.output)
        for step in STEPS:
            steps.append(_run(step, lake, len(steps) + 1, settings.output))
        if not no_spark:
            steps += _run_spark(master, place, lake, len(steps) + 1, settings.output)
        # The last chapter removes the past, which is shown at the end.
        history = tuple(map(SnapshotListed.of, lake.snapshots()))
        for step in LAST_STEPS:
            steps.append(_run(step, lake, len(steps) + 1, settings.output))
        story = DemoResult(url, tuple(steps), history, str(place) if keep else None)
        _tell_end(story, _milliseconds_since(begun), postgres=postgres, output=settings.output)


@contextmanager
def _place(folder: Path | None, *, keep: bool) -> Generator[Path]:
    """A folder for the demo, as empty afterwards as it was before."""
    made = folder is None or not folder.exists()
    if folder is None:
        place = Path(tempfile.mkdtemp(prefix="forklake-demo-"))
        # Root cannot run PostgreSQL, and whoever runs it has to get in.
        place.chmod(0o755)
    else:
        place = folder.absolute()
        if place.exists() and (not place.is_dir() or any(place.iterdir())):
            raise InvalidArgument(f"{place} is not an empty folder: name another, or one that does not exist")
        place.mkdir(parents=True, exist_ok=True)
    try:
        yield place
    finally:
        if not keep:
            _clear(place, folder_too=made)


def _clear(place: Path, *, folder_too: bool) -> None:
    if folder_too:
        shutil.rmtree(place)
        return
    for entry in place.iterdir():
        if entry.is_dir():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def _run(step: Step, lake: Lake, number: int, output: Output) -> StepResult:
    begun = time.perf_counter()
    with _waiting(step, number, output):
        lines = tuple(step.run(lake))
    step_result = StepResult(step.title, _milliseconds_since(begun), lines)
    _print(step_result, number, output)
    return step_result


def _run_spark(
    master: str | None, place: Path, lake: Lake, number: int, output: Output
) -> Generator[StepResult]:
    story = SparkStory(master or LOCAL, place)
    try:
        for at, step in enumerate(story.steps(), start=number):
            yield _run(step, lake, at, output)
    except MissingDependency as missing:
        # Who has named a place for Spark wants it; others see the rest without it.
        if master is not None:
            raise
        step_result = StepResult("Spark is passed over", 0, (str(missing),))
        _print(step_result, number, output)
        yield step_result
    finally:
        story.stop()


def _waiting(step: Step, number: int, output: Output) -> AbstractContextManager[object]:
    """Show what goes on until it can be told."""
    if output is Output.JSON:
        return nullcontext()
    if is_terminal(sys.stdout):
        return terminal().status(Text(f"{number}. {step.notice or step.title}"), spinner="line")
    if step.notice:
        terminal().print(Text(step.notice), soft_wrap=True)
    return nullcontext()


def _milliseconds_since(begun: float) -> float:
    return round(1000 * (time.perf_counter() - begun), 1)


def _print(step: StepResult, number: int, output: Output) -> None:
    if output is Output.JSON:
        return
    console = terminal()
    title = Text(f"{number}. {step.title}", style="bold").append(
        f"  {step.milliseconds:.0f} ms", style="not bold dim"
    )
    console.print(title, soft_wrap=True)
    for line in step.lines:
        console.print(Text(f"   {literal(line)}"), soft_wrap=True)
    console.print()


def _tell_end(story: DemoResult, milliseconds: float, *, postgres: bool, output: Output) -> None:
    if output is Output.JSON:
        render(story, output)
        return
    console = terminal()
    # What Spark and merges add to a commit is for programs, and as wide as several screens.
    write_history([replace(snapshot, extra=None) for snapshot in story.snapshots])
    console.print()
    console.print(f"All of it was checked, in {milliseconds / 1000:.1f} seconds.", soft_wrap=True)
    if story.kept is None:
        console.print("The demo's lake is removed now; forklake demo --keep keeps it.", soft_wrap=True)
        return
    if postgres:
        data = Path(story.kept) / "postgres"
        hint = f"start a server on it with forklake.localpg.LocalPostgres(Path({str(data)!r}))"
    else:
        hint = f"look around with forklake --lake {shlex.quote(story.lake)} catalogs"
    console.print(Text(f"Kept in {story.kept}: {literal(hint)}"), soft_wrap=True)
