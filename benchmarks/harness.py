"""Worker processes that write as fast as they can for a fixed time, released together."""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
import statistics
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, Protocol, Self

Change = Callable[[], None]
"""Makes one commit, or raises."""

_OPEN_SECONDS = 120.0
_OVERRUN_SECONDS = 90.0
_LEAD_SECONDS = 0.2
_WARM_UP_COMMITS = 20
_WARM_UP_SECONDS = 2.0


class Writer(Protocol):
    """What one process does. It travels to the process, so it holds plain values and connects there."""

    def open(self) -> AbstractContextManager[Change]:
        """Connect, and say how to commit once."""
        ...


@dataclass(frozen=True, slots=True)
class Window:
    """When to write: from `start`, counting what finishes between `counted` and `end`. Monotonic seconds."""

    start: float
    counted: float
    end: float


@dataclass(frozen=True, slots=True)
class Tally:
    """What one writer achieved."""

    done: int
    """Commits that finished inside the counted part."""
    total: int
    """All commits, also those before and after it."""
    errors: Counter[str]
    """Failed commits by what they said, those of the warm-up included."""
    latency: float
    """Median seconds of a commit."""
    cpu: float
    """Seconds of CPU that this process used for each commit."""


class WorkerFailed(Exception):
    """A worker could not do its part, or took too long."""


class Crew:
    """Processes of their own (spawned, not forked) that stay for many measurements.

    They end with the block, and on their own when this process is gone: their pipe closes then.
    """

    def __init__(self, size: int) -> None:
        """Describe the crew; entering the block starts it."""
        self._size = size
        self._processes: list[BaseProcess] = []
        self._pipes: list[Connection[Any, Any]] = []

    def __enter__(self) -> Self:
        """Start the processes."""
        context = multiprocessing.get_context("spawn")
        try:
            for place in range(self._size):
                ours, theirs = context.Pipe()
                process = context.Process(target=_serve, args=(theirs,), name=f"writer-{place}", daemon=True)
                process.start()
                theirs.close()
                self._processes.append(process)
                self._pipes.append(ours)
            # Those that still import would disturb those that are measured.
            for place in range(self._size):
                self._answer(place, time.monotonic() + _OPEN_SECONDS)
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """End the processes, at first gently."""
        self._stop()

    def prepare(self, writers: Sequence[Writer]) -> None:
        """Let each writer connect and warm up in a process of its own; returns when all stand at the line."""
        for pipe, writer in zip(self._pipes, writers, strict=False):
            pipe.send(writer)
        for place in range(len(writers)):
            self._answer(place, time.monotonic() + _OPEN_SECONDS)

    def go(self, writers: int, *, ramp: float, seconds: float) -> list[Tally]:
        """Release the writers at one time. The first `ramp` seconds do not count: all are busy by then."""
        start = time.monotonic() + _LEAD_SECONDS
        window = Window(start, start + ramp, start + ramp + seconds)
        for pipe in self._pipes[:writers]:
            pipe.send(window)
        return [self._answer(place, window.end + _OVERRUN_SECONDS) for place in range(writers)]

    def _answer(self, place: int, deadline: float) -> Any:
        if not self._pipes[place].poll(max(0.0, deadline - time.monotonic())):
            raise WorkerFailed(f"writer {place} did not answer in time")
        try:
            answer = self._pipes[place].recv()
        except EOFError as error:
            raise WorkerFailed(f"writer {place} ended unexpectedly") from error
        if isinstance(answer, str):
            raise WorkerFailed(f"writer {place} failed:\n{answer}")
        return answer

    def _stop(self) -> None:
        for pipe in self._pipes:
            pipe.close()
        gentle = time.monotonic() + 2
        for process in self._processes:
            process.join(max(0.0, gentle - time.monotonic()))
        for process in self._processes:
            for end in (process.terminate, process.kill):
                if process.is_alive():
                    end()
                    process.join(5)


def _serve(pipe: Connection[Any, Any]) -> None:
    """What a worker process runs: one measurement after the other, until the pipe closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which closes the pipe.
    with contextlib.suppress(EOFError, BrokenPipeError):
        pipe.send(True)
        while True:
            writer: Writer = pipe.recv()
            try:
                with writer.open() as change:
                    run = _Run(change)
                    run.warm_up()
                    pipe.send(True)
                    tally = run.write(pipe.recv())
                pipe.send(tally)
            except (EOFError, BrokenPipeError):
                raise
            except Exception:  # noqa: BLE001 - whatever it was, the parent shows it
                pipe.send(traceback.format_exc())


class _Run:
    """One writer's commits, counted."""

    def __init__(self, change: Change) -> None:
        self._change = change
        self._errors: Counter[str] = Counter()

    def warm_up(self) -> None:
        """Fill caches and prepare statements."""
        end = time.monotonic() + _WARM_UP_SECONDS
        for _ in range(_WARM_UP_COMMITS):
            if time.monotonic() < end:
                self._commit()

    def write(self, window: Window) -> Tally:
        """Commit one after the other until the window closes."""
        time.sleep(max(0.0, window.start - time.monotonic()))
        total = 0
        latencies: list[float] = []
        cpu = time.process_time()
        began = time.monotonic()
        while began < window.end:
            stands = self._commit()
            now = time.monotonic()
            total += stands
            if stands and window.counted <= now < window.end:
                latencies.append(now - began)
            began = now
        used = time.process_time() - cpu
        median = statistics.median(latencies) if latencies else 0.0
        return Tally(len(latencies), total, self._errors, median, used / max(total, 1))

    def _commit(self) -> bool:
        try:
            self._change()
        except Exception as error:  # noqa: BLE001 - a failed commit is a result
            self._errors[f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0][:160]}"] += 1
            return False
        return True
