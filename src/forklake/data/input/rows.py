"""Rows as somebody handed them over: some can be read again, and a stream only once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from forklake.errors import ForklakeError
from forklake.lazy.arrow import pa

T = TypeVar("T")


class Given:
    """Data for a change that may have to be made again."""

    def __init__(self, data: Any) -> None:
        """Nothing is read yet."""
        self._data = data
        self._failure: ForklakeError | None = None

    @property
    def lasts(self) -> bool:
        """Whether the data are surely the same when they are read a second time."""
        match self._data:
            case pa.Table() | pa.RecordBatch():
                return True
            case list() | tuple():
                return not self._data or isinstance(self._data[0], Mapping)
            case Mapping():
                return all(
                    isinstance(values, list | tuple | range | pa.Array | pa.ChunkedArray)
                    for values in self._data.values()
                )
            case _:
                return False

    @property
    def count(self) -> int | None:
        """How many rows there are, if that is known without reading them."""
        match self._data:
            case pa.Table() | pa.RecordBatch():
                return self._data.num_rows
            case list() | tuple() if self.lasts:
                return len(self._data)
            case Mapping() if self._data and self.lasts:
                return len(next(iter(self._data.values())))
            case _:
                return None

    def read(self, take: Callable[[Any], T]) -> T:
        """What is made of the data. A stream that failed half-way fails again: its first rows are gone."""
        if self._failure is not None:
            raise self._failure
        try:
            return take(self._data)
        except ForklakeError as error:
            if not self.lasts:
                self._failure = error
            raise
