"""Who goes on: clients run in threads of their own, one at a time, and a seed decides at every operation."""

from __future__ import annotations

import threading
from collections.abc import Callable
from random import Random

from tests.property.simulation.faults import Crash, Violation

Condition = Callable[[], bool]


class Lane:
    """What one client does, one thing after the other."""

    def __init__(self, work: Callable[[], None]) -> None:
        self.work = work
        self.turn = threading.Semaphore(0)
        self.ready: Condition | None = None
        """What it waits for, if anything."""
        self.error: BaseException | None = None
        self.done = False


class Scheduler:
    """Lets lanes run in turns. Without lanes, whoever runs goes on."""

    def __init__(self) -> None:
        self._own = threading.local()
        """Threads that clients start themselves have no lane: whoever waits for them has its turn."""
        self._running = 0
        self._back = threading.Semaphore(0)
        self._random = Random()
        self._share = 1.0
        self._stopped = False

    @property
    def is_shared(self) -> bool:
        """Whether several clients run."""
        return self._running > 1

    def run(self, works: list[Callable[[], None]], random: Random) -> None:
        """Run all of them to their ends, interleaved."""
        if len(works) == 1:
            works[0]()
            return
        self._random, self._share, self._stopped = random, random.choice((0.1, 0.4, 1.0)), False
        lanes = [Lane(work) for work in works]
        threads = [threading.Thread(target=self._live, args=(lane,), daemon=True) for lane in lanes]
        for thread in threads:
            thread.start()
        self._running = len(lanes)
        try:
            while running := [lane for lane in lanes if not lane.done]:
                self._resume(self._choose(running))
                if any(lane.error is not None for lane in lanes):
                    break
        finally:
            self._stopped = True
            for lane in lanes:
                while not lane.done:
                    self._resume(lane)
            for thread in threads:
                thread.join()
            self._running = 0
        for lane in lanes:
            if lane.error is not None:
                raise lane.error

    def _choose(self, running: list[Lane]) -> Lane:
        ready = [lane for lane in running if lane.ready is None or lane.ready()]
        if not ready:
            raise Violation("all clients wait for each other")
        return self._random.choice(ready)

    def _resume(self, lane: Lane) -> None:
        lane.turn.release()
        self._back.acquire()

    def _live(self, lane: Lane) -> None:
        self._own.lane = lane
        lane.turn.acquire()
        try:
            if not self._stopped:
                lane.work()
        except Crash:
            pass
        except BaseException as error:  # noqa: BLE001 - it is raised where lanes were started
            lane.error = error
        finally:
            lane.done = True
            self._back.release()

    def _lane(self) -> Lane | None:
        return getattr(self._own, "lane", None)

    def pause(self) -> None:
        """Another client may go first."""
        lane = self._lane()
        if lane is not None and (self._stopped or self._random.random() < self._share):
            self._give_way(lane)

    def wait(self, ready: Condition) -> None:
        """Others go first until a condition holds."""
        lane = self._lane()
        if lane is None:
            if not ready():
                raise Violation("a client waits for what it holds itself")
            return
        while not ready():
            lane.ready = ready
            self._give_way(lane)
            lane.ready = None

    def _give_way(self, lane: Lane) -> None:
        if not self._stopped:
            self._back.release()
            lane.turn.acquire()
        if self._stopped:
            raise Crash
