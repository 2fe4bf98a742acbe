"""What was read from files lately. Files of a lake never change, so it holds while they are there."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

from forklake.lazy.arrow import pa

_BYTES = 64 << 20


class FileCache:
    """Arrays by the address of their file, those that were used last, up to a number of bytes."""

    def __init__(self, size: int = _BYTES) -> None:
        """Start empty."""
        self._size = size
        self._bytes = 0
        self._arrays: OrderedDict[str, pa.Array] = OrderedDict()
        self._lock = Lock()

    def get(self, address: str) -> pa.Array | None:
        """What was read from a file, if it is still known."""
        with self._lock:
            found = self._arrays.get(address)
            if found is not None:
                self._arrays.move_to_end(address)
            return found

    def put(self, address: str, array: pa.Array) -> None:
        """Keep what a file has; what was used longest ago makes room for it."""
        if array.nbytes > self._size:
            return
        with self._lock:
            self._forget(address)
            self._arrays[address] = array
            self._bytes += array.nbytes
            while self._bytes > self._size:
                self._forget(next(iter(self._arrays)))

    def forget(self, address: str) -> None:
        """Drop what is known of a file that is deleted."""
        with self._lock:
            self._forget(address)

    def _forget(self, address: str) -> None:
        array = self._arrays.pop(address, None)
        if array is not None:
            self._bytes -= array.nbytes
