"""Who goes on: clients run in threads of their own, one at a time, and a seed decides at every operation.

A client that waits for a lock of a database server lets others go first, and stops as soon as it has it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random

from tests.property.simulation.faults import Crash, Violation

Condition = Callable[[], bool]
_LOOK_EVERY = 0.005
_LONGEST_WAIT = 30.0
"""Seconds after which clients that wait for locks do so for ever: servers end deadlocks before."""


class Lane:
    """What one client does, one thing after the other."""

    def __init__(self, work: Callable[[], None]) -> None:
        self.work = work
        self.turn = threading.Semaphore(0)
        self.ready: Condition | None = None
        """What it waits for, if anything."""
        self.runs = False
        """Whether it has its turn, or waits for a lock that it met in it."""
        self.lost_turn = False
        """Whether others went on, as it waited for a lock."""
        self.error: BaseException | None = None
        self.done = False


class Scheduler:
    """Lets lanes run in turns. Without lanes, whoever runs goes on."""

    def __init__(self, waiting: Callable[[], int] = lambda: 0) -> None:
        """`waiting` counts who waits for locks of a database server."""
        self._waiting = waiting
        self._own = threading.local()
        """Threads that clients start themselves have no lane: whoever waits for them has its turn."""
        self._lanes: list[Lane] = []
        self._freeing: list[Lane] = []
        """Those that wait until others have what they gave back, in the order in which they came."""
        self._back = threading.Condition()
        self._random = Random()
        self._share = 1.0
        self._stopped = False

    @property
    def is_shared(self) -> bool:
        """Whether several clients run."""
        return len(self._lanes) > 1

    def run(self, works: list[Callable[[], None]], random: Random) -> None:
        """Run all of them to their ends, interleaved."""
        if len(works) == 1:
            works[0]()
            return
        self._random, self._share, self._stopped = random, random.choice((0.1, 0.4, 1.0)), False
        lanes = self._lanes = [Lane(work) for work in works]
        threads = [threading.Thread(target=self._live, args=(lane,), daemon=True) for lane in lanes]
        for thread in threads:
            thread.start()
        try:
            while not all(lane.done for lane in lanes):
                if self._others_can_go() or not any(lane.runs for lane in lanes):
                    self._resume(self._choose())
                self._settle(lanes, self._others_can_go)
                if any(lane.error is not None for lane in lanes):
                    break
        finally:
            self._stopped = True
            for lane in lanes:
                if not lane.done and not lane.runs:
                    self._resume(lane)
            self._settle(lanes, lambda: False)
            for thread in threads:
                thread.join()
            self._lanes = []
        for lane in lanes:
            if lane.error is not None:
                raise lane.error

    def _choosable(self) -> Iterator[Lane]:
        for lane in self._lanes:
            if not lane.done and not lane.runs and (lane.ready is None or lane.ready()):
                yield lane

    def _choose(self) -> Lane:
        ready = list(self._choosable())
        if not ready:
            raise Violation("all clients wait for each other")
        return self._random.choice(ready)

    def _resume(self, lane: Lane) -> None:
        lane.runs = True
        lane.turn.release()

    def _others_can_go(self) -> bool:
        return any(self._choosable())

    def _settle(self, lanes: list[Lane], others_can_go: Condition, freeing: Lane | None = None) -> None:
        """Wait until none of some lanes runs, but for those that wait for locks that others hold.

        Or, for one that gave locks back, for those that wait for it in turn.
        """
        end = time.monotonic() + _LONGEST_WAIT
        with self._back:
            while running := [lane for lane in lanes if lane.runs and not self._waits_for(lane, freeing)]:
                if self._back.wait(_LOOK_EVERY) or self._waiting() < len(running):
                    continue
                for lane in running:
                    lane.lost_turn = True
                if others_can_go():
                    return
                # Nobody is left who could give these locks back: a server ends deadlocks.
                if time.monotonic() > end:
                    raise Violation("all clients wait for each other, or for locks")

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
            with self._back:
                lane.done, lane.runs = True, False
                self._back.notify_all()

    def _lane(self) -> Lane | None:
        return getattr(self._own, "lane", None)

    def pause(self, before: Callable[[], None] = lambda: None) -> None:
        """Another client may go first; then something has to be done before."""
        lane = self._lane()
        if lane is not None and (self._stopped or self._random.random() < self._share):
            if not self._stopped:
                before()
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

    @contextmanager
    def locking(self) -> Iterator[None]:
        """Around what may wait for a lock: whoever has waited goes on when it is its turn."""
        try:
            yield
        finally:
            lane = self._lane()
            if lane is not None and lane.lost_turn:
                lane.lost_turn = False
                self._give_way(lane)

    def freed(self) -> None:
        """Locks were given back: those who waited for them get to where they stop."""
        lane = self._lane()
        if lane is None or self._stopped:
            return
        with self._back:
            self._freeing.append(lane)
            self._back.notify_all()
        try:
            others = [other for other in self._lanes if other is not lane]
            self._settle(others, lambda: True, lane)
        finally:
            with self._back:
                self._freeing.remove(lane)

    def _waits_for(self, lane: Lane, freeing: Lane | None) -> bool:
        """Whether a lane gave locks back later than another one did, and waits for that one too."""
        return freeing is not None and lane in self._freeing[self._freeing.index(freeing) + 1 :]

    def _give_way(self, lane: Lane) -> None:
        if not self._stopped:
            with self._back:
                lane.runs = False
                following = self._following()
                if following is None:
                    self._back.notify_all()
                elif following is lane:
                    lane.runs = True
                else:
                    self._resume(following)
            if following is not lane:
                lane.turn.acquire()
        if self._stopped:
            raise Crash

    def _following(self) -> Lane | None:
        """Who goes on, where that is plain: threads that wake each other wait for half of the time.

        None if `run` has to look: others run too, or cannot go on, or have failed.
        """
        if any(lane.runs or lane.error is not None for lane in self._lanes):
            return None
        ready = list(self._choosable())
        return self._random.choice(ready) if ready else None
