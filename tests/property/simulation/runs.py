"""Running programs by their seeds, and telling what failed so that it can be run again."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

from tests.property.simulation.program import Program, program, run
from tests.property.simulation.shrink import shrunk
from tests.property.simulation.world import Prepare, World


class Lakes(Protocol):
    """Where worlds come from."""

    @property
    def backend(self) -> str: ...

    def world(self, prepare: Prepare = ...) -> AbstractContextManager[World]: ...


@dataclass(slots=True)
class Total:
    """What was run."""

    steps: int = 0
    faults: int = 0
    violations: list[str] = field(default_factory=list[str])

    def __str__(self) -> str:
        return f"{self.steps} steps, {self.faults} faults injected, {len(self.violations)} violations"


@dataclass(frozen=True, slots=True)
class Runs:
    """How programs are run."""

    lakes: Lakes
    steps: int = 60
    clients: int = 3
    faults: float = 0.2
    prepare: Prepare = lambda _: None
    tell: Callable[[str], None] = lambda _: None
    """Hears of a failure at once: to find a shorter program may take long."""

    def failure(self, seed: int, rounds: Program, total: Total | None = None) -> Exception | None:
        """What goes wrong with a program, if anything does."""
        with self.lakes.world(self.prepare) as world:
            try:
                run(world, rounds, seed=seed, faults=self.faults)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is told
                return error
            finally:
                if total is not None:
                    total.steps += sum(made.steps for made in rounds)
                    total.faults += world.faults
        return None

    def one(self, seed: int, total: Total) -> None:
        """Run the program of a seed; if it fails, find a shorter one that does."""
        rounds = program(seed, self.steps, clients=self.clients)
        error = self.failure(seed, rounds, total)
        if error is None:
            return
        self.tell(f"seed {seed}: {_shown(error)}")
        short = shrunk(rounds, lambda rounds: self.failure(seed, rounds) is not None)
        total.violations.append(self._told(seed, error, short, self.failure(seed, short) or error))

    def _told(self, seed: int, error: Exception, short: Program, shorter: Exception) -> str:
        again = (
            f"python -m tests.property.simulation --seed {seed} --backend {self.lakes.backend} "
            f"--steps {self.steps} --clients {self.clients} --faults {self.faults}"
        )
        return "\n".join(
            (
                f"seed {seed}: {_shown(error)}",
                f"again: {again}",
                f"shrunk to {sum(made.steps for made in short)} steps: {_shown(shorter)}",
                *(f"  {made}" for made in short),
            )
        )


def _shown(error: Exception) -> str:
    notes = "; ".join(getattr(error, "__notes__", ()))
    return f"{type(error).__name__}: {str(error)[:2000]} ({notes})"
