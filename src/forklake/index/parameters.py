"""Parameters of an index or of a search, checked against what there is. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from forklake.errors import InvalidArgument, InvalidIndex
from forklake.model.alike import nearest
from forklake.model.index import Parameter, Parameters

Check = Callable[[Parameter], bool]


class Known:
    """The parameters that a kind knows: what each may be, in words and as a check, and its default."""

    def __init__(
        self,
        kind: str,
        rules: Mapping[str, tuple[Parameter, str, Check]],
        error: type[InvalidArgument] = InvalidIndex,
    ) -> None:
        """`rules` has default, words and check by name."""
        self._kind = kind
        self._rules = rules
        self._error = error

    def complete(self, given: Parameters) -> dict[str, Parameter]:
        """What was given with the defaults of the others; the error for one that is unknown or cannot be."""
        for name, value in given.items():
            if name not in self._rules:
                close = nearest(name, tuple(self._rules))
                meant = "" if close is None else f'did you mean "{close}"? '
                known = ", ".join(self._rules)
                raise self._error(f'{self._kind} has no parameter "{name[:80]}": {meant}there are {known}')
            _, words, check = self._rules[name]
            if not check(value):
                raise self._error(f"{name} of {self._kind} is {words}, not {str(value)[:80]!r}")
        return {name: given.get(name, default) for name, (default, _, _) in self._rules.items()}


def whole(least: int, most: int) -> Check:
    """A whole number in a range."""
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def number(above: float, most: float) -> Check:
    """A number above one and up to another."""
    return lambda value: (
        isinstance(value, int | float) and not isinstance(value, bool) and above < value <= most
    )


def one_of(names: Sequence[str]) -> Check:
    """One of some names."""
    return lambda value: isinstance(value, str) and value in names


def flag(value: Parameter) -> bool:
    """True or false."""
    return isinstance(value, bool)


def optional(check: Check) -> Check:
    """What the check says, or None."""
    return lambda value: value is None or check(value)
