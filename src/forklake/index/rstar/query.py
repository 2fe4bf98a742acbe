"""What an index of places is asked: nearest to a geometry, or those that lie to it in some way."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal, cast, get_args

from forklake.errors import InvalidQuery
from forklake.lazy.shapely import shapely

Relation = Literal["near", "intersects", "within", "contains"]
RELATIONS: tuple[Relation, ...] = get_args(Relation)
_WORD = re.compile(r"\s*(near|intersects|within|contains)\b[\s:]*", re.IGNORECASE)
_FORMS = (
    "(x, y), WKT such as 'POINT (13.4 52.5)', WKB, a box (x, y, x, y), "
    "or one of them by its relation: {'intersects': …}, 'within POLYGON (…)'"
)


@dataclass(frozen=True, slots=True)
class Query:
    """A geometry, and what rows have to do with it."""

    relation: Relation
    geometry: Any
    """Of shapely, and prepared."""

    @classmethod
    def of(cls, given: object) -> Query:
        """What somebody asked, or `InvalidQuery`."""
        relation: Relation = "near"
        if isinstance(given, Mapping):
            asked = cast("Mapping[object, object]", given)
            if len(asked) != 1 or next(iter(asked)) not in RELATIONS:
                shown = ", ".join(map(str, asked))[:80]
                raise InvalidQuery(
                    f"a query of places has one of {', '.join(RELATIONS)}, not {shown or 'nothing'}"
                )
            ((name, given),) = asked.items()
            relation = cast("Relation", name)
        start = 0
        if isinstance(given, str):
            word = _WORD.match(given)
            if word is not None:
                relation, start = cast("Relation", word[1].lower()), word.end()
        return cls(relation, _geometry(given, start))

    def holds(self, geometries: Any) -> Any:
        """For which geometries the relation holds."""
        match self.relation:
            case "within":
                return shapely.contains(self.geometry, geometries)
            case "contains":
                return shapely.within(self.geometry, geometries)
            case _:
                return shapely.intersects(self.geometry, geometries)


def _geometry(given: object, start: int) -> Any:
    try:
        found = _read(given, start)
    except shapely.errors.GEOSException as problem:
        reason = str(problem).partition("\n")[0][:200]
        shown = (
            f" {given[start : start + 80]!r}, from character {start + 1}," if isinstance(given, str) else ""
        )
        raise InvalidQuery(
            f"the geometry{shown} cannot be read ({reason}): a query of places is {_FORMS}"
        ) from None
    if found.is_empty:
        raise InvalidQuery("the geometry of a query is not empty")
    if not shapely.is_valid(found):
        raise InvalidQuery(f"the geometry of a query is not valid: {shapely.is_valid_reason(found)}")
    shapely.prepare(found)
    return found


def _read(given: object, start: int) -> Any:
    if isinstance(given, str):
        return shapely.from_wkt(given[start:])
    if isinstance(given, bytes | bytearray):
        return shapely.from_wkb(bytes(given))
    if isinstance(given, shapely.Geometry):
        return given
    if isinstance(given, Sequence):
        numbers = [
            float(each) for each in cast("Sequence[object]", given) if isinstance(each, Real | float | int)
        ]
        if len(numbers) == len(cast("Sequence[object]", given)):
            if len(numbers) == 2:
                return shapely.Point(*numbers)
            if len(numbers) == 4 and numbers[0] <= numbers[2] and numbers[1] <= numbers[3]:
                return shapely.box(*numbers)
    raise InvalidQuery(f"a query of places is {_FORMS}, not {str(given)[:80]!r}")
