"""Numbers that only 64 bits without a sign, or 128, can hold."""

from __future__ import annotations

import pytest

import forklake

MOST = 2**64 - 1


@pytest.mark.parametrize("rows", [3, 300], ids=["inlined", "in a file"])
def test_conditions_and_merges_find_the_largest_numbers(catalog: forklake.Catalog, rows: int) -> None:
    table = catalog.create_table("t", "u UBIGINT, h HUGEINT, n INTEGER")
    table.append([{"u": MOST - number, "h": 10**37 - number, "n": number} for number in range(rows)])
    assert table.scan(where=f"u = {MOST}").to_arrow()["n"].to_pylist() == [0]
    assert table.scan(where=f"u IN ({MOST}, {MOST - 1})").count() == 2
    assert table.scan(where=f"h >= {10**37}").to_arrow()["n"].to_pylist() == [0]
    result = table.merge([{"u": MOST, "n": -1}, {"u": 5, "n": -2}], on="u")
    assert (result.updated, result.inserted) == (1, 1)
    assert sorted(table.scan(where=f"u = {MOST} OR u = 5").to_arrow()["n"].to_pylist()) == [-2, -1]
