"""Programs made of numbers, each a step: what fails is told with as few steps as can be found."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from random import Random

from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

SHORTEN_SECONDS = 60
_LARGEST = 2**24

Play = Callable[[Sequence[int]], None]


def tell(play: Play, *, programs: int, steps: int, share: int = 0) -> None:
    """Play so many programs of so many steps; any step can be left out of any program.

    Without chance, Hypothesis draws the same seeds in every test: each share makes other programs of them.
    """
    known: dict[int, list[int]] = {}

    @settings(
        max_examples=programs,
        suppress_health_check=[HealthCheck.too_slow],
        phases=(Phase.explicit, Phase.reuse, Phase.generate),
    )
    @given(st.integers(0, _LARGEST - 1))
    def run(seed: int) -> None:
        random = Random(seed + share * _LARGEST)
        program = [random.randrange(_LARGEST) for _ in range(steps)]
        error = _failure(play, program)
        if error is not None:
            # Hypothesis would try smaller seeds, which make other programs; steps can be left out instead.
            short = known[seed] = known.get(seed) or shortened(play, program, error)
            note(f"the program {short} does:")
            play(short)

    run()


def play_seeds(play: Callable[[Random], None], *, programs: int) -> None:
    """Play so many programs that draw their steps as they go; a soak plays twenty times as many."""
    scale = 20 if settings().max_examples > 1000 else 1

    @settings(
        max_examples=programs * scale,
        phases=(Phase.explicit, Phase.reuse, Phase.generate),
        suppress_health_check=list(HealthCheck),
    )
    @given(seed=st.integers(0, 2**32))
    def run(seed: int) -> None:
        note(f"seed {seed}")
        play(Random(seed))

    run()


def shortened(play: Play, program: list[int], error: Exception) -> list[int]:
    """As few steps as fail in the same way, as far as that can be found in a little time."""
    until, size = time.monotonic() + SHORTEN_SECONDS, len(program) // 2
    while size:
        for at in range(len(program) - size, -1, -size):
            rest = program[:at] + program[at + size :]
            if time.monotonic() > until:
                return program
            if isinstance(_failure(play, rest), type(error)):
                program = rest
        size //= 2
    return program


def _failure(play: Play, program: Sequence[int]) -> Exception | None:
    try:
        play(program)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what we look for
        return error
    return None
