"""What functions of SQL take: numbers, names and types of arguments, and what is said of others."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from forklake.errors import InvalidArgument
from forklake.sql.functions import values as v
from forklake.sql.functions.function import Arguments, Parameter, SqlFunction
from forklake.sql.functions.registry import FUNCTIONS

NOON = datetime(2024, 1, 31, 12, tzinfo=UTC)


def function(*parameters: Parameter, forms: tuple[tuple[str, ...], ...] = ((),)) -> SqlFunction:
    return SqlFunction("call_me", "For tests.", lambda caller, values: None, parameters, forms)  # type: ignore[return-value]


ONE = Parameter("one", v.TEXT, is_required=True)
TWO = Parameter("two", v.WHOLE)


@pytest.mark.parametrize(
    ("given", "named", "checked"),
    [
        (("a",), {}, {"one": "a"}),
        (("a", 2), {}, {"one": "a", "two": 2}),
        (("a",), {"two": 2}, {"one": "a", "two": 2}),
        ((), {"one": "a"}, {"one": "a"}),
    ],
)
def test_arguments_come_by_place_or_by_name(given: Any, named: Any, checked: Any) -> None:
    call = function(ONE, TWO, forms=(("one", "two"),))
    assert call.checked(Arguments(given, named)) == checked


@pytest.mark.parametrize(
    ("given", "named", "message"),
    [
        ((), {}, "call_me needs one: it is called as call_me(one, [two])"),
        (("a", 1, 2), {}, "call_me is given too many arguments, 3: it is called as call_me(one, [two])"),
        (("a",), {"three": 1}, "call_me has no parameter three: it is called as call_me(one, [two])"),
        (("a",), {"one": "b"}, "call_me: one is given twice"),
        ((1,), {}, "call_me: one is a string, not 1"),
        ((None,), {}, "call_me: one is a string, not NULL"),
        (("a", "b" * 200), {}, f"call_me: two is a whole number, not '{'b' * 79}"),
    ],
)
def test_arguments_that_do_not_fit_are_named(given: Any, named: Any, message: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        function(ONE, TWO, forms=(("one", "two"),)).checked(Arguments(given, named))
    assert str(caught.value) == message


def test_the_number_of_arguments_tells_what_they_mean() -> None:
    call = function(ONE, TWO, Parameter("three", v.FLAG), forms=(("one",), ("two", "one")))
    assert call.checked(Arguments(("a",))) == {"one": "a"}
    assert call.checked(Arguments((1, "a"))) == {"two": 1, "one": "a"}
    assert call.signatures() == ("call_me(one, three => BOOLEAN)", "call_me([two], one, three => BOOLEAN)")


FITTING: list[tuple[v.Value, Any, Any]] = [
    (v.TEXT, "", ""),
    (v.TEXTS, "a", ["a"]),
    (v.TEXTS, ["a", "b"], ["a", "b"]),
    (v.FLAG, True, True),
    (v.FLAG, "False", False),
    (v.WHOLE, 7, 7),
    (v.WHOLE, Decimal(7), 7),
    (v.VERSIONS, [1, 2], [1, 2]),
    (v.VERSIONS, 1, [1]),
    (v.SHARE, 0, 0.0),
    (v.SHARE, Decimal("0.5"), 0.5),
    (v.TIME, NOON, NOON),
    (v.TIME, date(2024, 1, 31), datetime(2024, 1, 31)),
    (v.TIME, " 2024-01-31 12:00:00+00 ", NOON),
    (v.SNAPSHOT_OR_TIME, 7, 7),
    (v.SNAPSHOT_OR_TIME, "2024-01-31", datetime(2024, 1, 31)),
    (v.AGE, timedelta(1), timedelta(1)),
    (v.AGE, "12h", timedelta(hours=12)),
    (v.TIME_OR_AGE, timedelta(1), timedelta(1)),
    (v.TIME_OR_AGE, NOON, NOON),
    (v.one_of("source", "target"), "Source", "source"),
    (v.at_least(1), 1, 1),
    (v.or_null(v.TEXT), None, None),
]
WRONG: list[tuple[v.Value, list[Any]]] = [
    (v.TEXT, [1, b"a", ["a"]]),
    (v.TEXTS, [[], [1], 1]),
    (v.FLAG, [1, "yes", "", Decimal(1)]),
    (v.WHOLE, [True, 1.0, "1", Decimal("1.5")]),
    (v.VERSIONS, [["a"], True, 1.5]),
    (v.SHARE, [True, -0.1, 1.1, float("nan"), "0.5"]),
    (v.TIME, [7, "noon", "", timedelta(1)]),
    (v.SNAPSHOT_OR_TIME, [True, 1.5, "7 days"]),
    (v.AGE, [timedelta(-1), "soon", 7, None]),
    (v.TIME_OR_AGE, [timedelta(-1), 7]),
    (v.one_of("source", "target"), ["mine", 1, ""]),
    (v.at_least(1), [0, -1, True]),
]


@pytest.mark.parametrize(("value", "given", "read"), FITTING)
def test_values_are_read(value: v.Value, given: Any, read: Any) -> None:
    assert value.checked(given, "call_me", "one") == read


@pytest.mark.parametrize(("value", "given"), WRONG)
def test_other_values_are_refused_with_what_is_allowed(value: v.Value, given: list[Any]) -> None:
    for one in [*given, *(() if value.allows_null else (None,))]:
        with pytest.raises(InvalidArgument) as caught:
            value.checked(one, "call_me", "one")
        assert str(caught.value).startswith(f"call_me: one is {value.what}, not ")


def test_functions_are_known_by_their_names() -> None:
    assert {name: function.name for name, function in FUNCTIONS.items()} == {name: name for name in FUNCTIONS}
    for called in FUNCTIONS.values():
        known = {parameter.name for parameter in called.parameters}
        assert len(known) == len(called.parameters)
        assert {name for form in called.forms for name in form} <= known
        assert called.name == called.name.lower()
        assert called.summary.endswith(".")
        assert called.is_change or called.in_transaction, called.name
        for form in called.forms:
            # What is needed can be given by place, or else by name.
            assert len(set(form)) == len(form)
