"""Boxes around geometries, and the order in which neighbours lie beside each other. Pure."""

from __future__ import annotations

from typing import Any, TypeAlias

from forklake.extras import missing
from forklake.lazy.arrow import pa, pc
from forklake.lazy.numpy import np
from forklake.lazy.shapely import shapely

Boxes: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
"""A row for each: the least x and y, the greatest x and y."""

_BITS = 16
"""Into how many steps each side is divided, as a power of two."""


def require_shapely() -> None:
    """Raise `MissingDependency` unless shapely is there."""
    try:
        _ = shapely.from_wkb
    except ModuleNotFoundError:
        raise missing("indexes of places need shapely, which is not installed", "spatial") from None


def parsed(wkb: pa.Array) -> Any:
    """Geometries of WKB as an array of shapely's; None for NULL, and for bytes that are none."""
    return shapely.from_wkb(wkb.to_numpy(zero_copy_only=False), on_invalid="ignore")


def bounds_of(geometries: Any) -> Boxes:
    """Boxes around geometries; NaN for those that are empty."""
    return shapely.bounds(geometries).reshape(-1, 4)


def stored_boxes(wkb: pa.Array) -> Boxes:
    """Boxes in 32 bits, rounded outwards.

    NULL and empty geometries have NaN. What is no geometry has a box without an end, so that whoever looks
    for anything comes upon it.
    """
    geometries = parsed(wkb)
    found = bounds_of(geometries)
    torn = wkb.is_valid().to_numpy(zero_copy_only=False) & shapely.is_missing(geometries)
    found[torn] = (-np.inf, -np.inf, np.inf, np.inf)
    return outwards(found)


def outwards(boxes: Boxes) -> Boxes:
    """Boxes in 32 bits that hold those of 64."""
    with np.errstate(over="ignore"):
        near = boxes.astype(np.float32)
    low, high = near[:, :2], near[:, 2:]
    below = np.nextafter(low, np.float32(-np.inf))
    above = np.nextafter(high, np.float32(np.inf))
    return np.hstack([np.where(low > boxes[:, :2], below, low), np.where(high < boxes[:, 2:], above, high)])


def around(boxes: Boxes) -> Boxes:
    """The box around boxes of known ends; NaN if there is none."""
    known = boxes[np.isfinite(boxes).all(axis=1)].astype(np.float64)
    if not len(known):
        return np.full(4, np.nan)
    return np.concatenate([known[:, :2].min(axis=0), known[:, 2:].max(axis=0)])


def meets(boxes: Boxes, box: Boxes) -> Any:
    """Which boxes have a point in common with one."""
    return (
        (boxes[:, 0] <= box[2]) & (boxes[:, 2] >= box[0]) & (boxes[:, 1] <= box[3]) & (boxes[:, 3] >= box[1])
    )


def distances(boxes: Boxes, box: Boxes) -> Any:
    """How far boxes are from one: nothing in them is nearer."""
    wide = boxes.astype(np.float64)
    with np.errstate(invalid="ignore"):
        across = np.maximum(np.maximum(wide[:, 0] - box[2], box[0] - wide[:, 2]), 0.0)
        along = np.maximum(np.maximum(wide[:, 1] - box[3], box[1] - wide[:, 3]), 0.0)
    return np.hypot(across, along)


def hilbert(boxes: Boxes, grid: Boxes) -> Any:
    """Where the middles of boxes are on a curve that fills the grid: near each other if they are near.

    What lies outside is taken to its edge.
    """
    with np.errstate(invalid="ignore"):
        middles = (boxes[:, :2].astype(np.float64) + boxes[:, 2:]) / 2
        size = np.where(grid[2:] > grid[:2], grid[2:] - grid[:2], 1.0)
        steps = np.nan_to_num((middles - grid[:2]) / size * (2**_BITS - 1), posinf=0.0, neginf=0.0)
    x, y = np.clip(steps, 0, 2**_BITS - 1).astype(np.int64).T
    found = np.zeros(len(x), np.int64)
    for bit in range(_BITS - 1, -1, -1):
        side = 1 << bit
        right, upper = (x & side) > 0, (y & side) > 0
        found += side * side * ((3 * right) ^ upper)
        # The curve is turned within each quarter.
        flip = right & ~upper
        x, y = np.where(flip, side - 1 - (x & (side - 1)), x), np.where(flip, side - 1 - (y & (side - 1)), y)
        x, y = np.where(upper, x, y), np.where(upper, y, x)
    return found


def as_wkb(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """A column of geometries as plain bytes."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    array = array.storage if isinstance(array, pa.ExtensionArray) else array
    return array.cast(pa.binary())


def mean_bytes(wkb: pa.Array) -> float:
    """How large geometries are."""
    return float(pc.mean(pc.binary_length(wkb)).as_py() or 0.0)
