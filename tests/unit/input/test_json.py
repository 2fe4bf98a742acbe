"""Text for a column of JSON has to be JSON."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forklake.data.input.json_strings import first_invalid

_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


def is_json(text: str) -> bool:
    try:
        json.loads(text, parse_constant=lambda constant: constant.missing)
    except (ValueError, AttributeError):
        return False
    return True


@given(st.lists(_json.map(json.dumps) | st.text('{}[]",:\\ \n01ae', max_size=12) | st.none(), max_size=6))
def test_json_is_what_python_takes_for_json(texts: list[str | None]) -> None:
    expected = next((at for at, text in enumerate(texts) if text is not None and not is_json(text)), None)
    assert first_invalid(pa.array(texts, pa.string())) == expected


@pytest.mark.parametrize(
    "text",
    [
        "NaN",
        "[Infinity]",
        '{"a":-Inf }',
        '1} {"o":2',
        '1,"a":[2],"b":3',
        "1],[2",
        '1}\n{"o":1,"a":[1',
        "",
        " ",
    ],
)
def test_json_cannot_break_out_of_the_line_it_is_checked_in(text: str) -> None:
    assert first_invalid(pa.array(["1", text, "2"])) == 1


def test_deep_json_is_no_danger() -> None:
    deep = "[" * 200_000 + "]" * 200_000
    assert first_invalid(pa.array([deep])) is None
    assert first_invalid(pa.array([deep[:-1]])) == 0
