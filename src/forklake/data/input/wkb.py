"""Whether bytes are a geometry: well-known binary that DuckDB reads, and shows as it was given. Pure."""

from __future__ import annotations

import struct
from collections.abc import Callable

from forklake.lazy.arrow import pa

_POINT, _LINE, _POLYGON, _COLLECTION = 1, 2, 3, 7
# What the parts of a collection are; the last takes any.
_PARTS = {4: _POINT, 5: _LINE, 6: _POLYGON, _COLLECTION: None}
_Z, _M, _SRID = 0x80000000, 0x40000000, 0x20000000
_MOST_DEEP = 16
_HEADS = (struct.Struct(">I"), struct.Struct("<I"))


def first_invalid(values: pa.Array) -> tuple[int, str] | None:
    """The index of the first value that is no geometry, and why; NULL is not looked at."""
    for at, value in enumerate(values.to_pylist()):
        if value is None:
            continue
        try:
            end, _ = _end(value, 0, None, 0)
            if end != len(value):
                raise ValueError(f"{len(value) - end} bytes follow it")
        except struct.error:
            return at, "the bytes end too early"
        except ValueError as problem:
            return at, str(problem)
    return None


def _end(value: bytes, at: int, wanted: int | None, depth: int) -> tuple[int, int]:
    """Where a geometry ends, and bits for the Z and M that its points have."""
    if depth > _MOST_DEEP:
        raise ValueError("it is nested too deep")
    read = _number(value, at)
    shape, dimensions = _kind(read(value, at + 1)[0])
    if wanted is not None and shape != wanted:
        raise ValueError("its parts are of different kinds")
    at += 5
    size = 8 * (2 + dimensions.bit_count())
    if shape == _POINT:
        at += size
    elif shape == _LINE:
        at += 4 + size * read(value, at)[0]
    else:
        (parts,) = read(value, at)
        at += 4
        # Each part needs four bytes at least, whatever the count claims.
        if parts * 4 > len(value) - at:
            raise struct.error
        for _ in range(parts):
            if shape == _POLYGON:
                at += 4 + size * read(value, at)[0]
            else:
                at, inner = _end(value, at, _PARTS[shape], depth + 1)
                if inner != dimensions:
                    raise ValueError("its parts differ in Z or M")
    if at > len(value):
        raise struct.error
    return at, dimensions


def _number(value: bytes, at: int) -> Callable[[bytes, int], tuple[int]]:
    """How a geometry writes numbers."""
    order = value[at] if at < len(value) else 0
    if order > 1:
        raise ValueError(f"it begins with {order}, and the order of bytes is 0 or 1")
    return _HEADS[order].unpack_from


def _kind(code: int) -> tuple[int, int]:
    """The kind of a geometry, and bits for Z and M; both are written in two ways."""
    if code & _SRID:
        raise ValueError("it carries an SRID, which is not kept: hand over plain WKB")
    flags, shape = divmod(code & 0x1FFFFFFF, 1000)
    if not _POINT <= shape <= _COLLECTION or flags > 3:
        raise ValueError(f"{code} is not the number of a kind of geometry")
    return shape, flags | bool(code & _Z) | 2 * bool(code & _M)
