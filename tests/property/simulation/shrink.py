"""Making a program that fails shorter, as long as it still fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.property.simulation.program import Program, Round

Fails = Callable[[Program], bool]


def shrunk(program: Program, fails: Fails, most: int = 400) -> Program:
    """A shorter program that fails too. Steps keep their seeds, so what is left does nearly the same."""
    for _ in range(most):
        for shorter in _shorter(program):
            most -= 1
            if fails(shorter):
                program = shorter
                break
            if most <= 0:
                return program
        else:
            return program
    return program


def _shorter(program: Program) -> Iterator[Program]:
    """Without some rounds, many at first; without a client; without a step."""
    size = len(program) // 2
    while size:
        for start in range(0, len(program), size):
            yield program[:start] + program[start + size :]
        size //= 2
    for place, made in enumerate(program):
        for smaller in _smaller(made):
            yield (*program[:place], smaller, *program[place + 1 :])


def _smaller(made: Round) -> Iterator[Round]:
    lanes = made.lanes
    if len(lanes) > 1:
        for place in range(len(lanes)):
            yield replace(made, lanes=lanes[:place] + lanes[place + 1 :])
    for place, lane in enumerate(lanes):
        if len(lane) > 1:
            for step in range(len(lane)):
                left = lane[:step] + lane[step + 1 :]
                yield replace(made, lanes=(*lanes[:place], left, *lanes[place + 1 :]))
