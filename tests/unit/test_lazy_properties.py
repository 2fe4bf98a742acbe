"""Attributes that are worked out when they are first asked for."""

from __future__ import annotations

import threading

from forklake.lazy.properties import lazy_property


class Slow:
    """Its value takes as long as somebody says."""

    def __init__(self, *, waits: bool) -> None:
        self.waits = waits
        self.asked, self.may_go_on = threading.Event(), threading.Event()
        self.times = 0

    @lazy_property
    def value(self) -> int:
        """How often it was worked out."""
        self.times += 1
        self.asked.set()
        if self.waits:
            assert self.may_go_on.wait(60)
        return self.times


def test_it_is_worked_out_once() -> None:
    one = Slow(waits=False)
    assert (one.value, one.value, one.times) == (1, 1, 1)
    assert Slow.value.__doc__ == "How often it was worked out."


def test_no_other_object_waits_for_it() -> None:
    slow, found = Slow(waits=True), list[int]()
    waiting = threading.Thread(target=lambda: found.append(slow.value), daemon=True)
    waiting.start()
    assert slow.asked.wait(60)
    other = threading.Thread(target=lambda: found.append(Slow(waits=False).value), daemon=True)
    other.start()
    other.join(60)
    assert found == [1] and not other.is_alive()
    slow.may_go_on.set()
    waiting.join(60)
    assert found == [1, 1]
