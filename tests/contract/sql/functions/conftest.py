"""What tests of functions share.

`call`     calls a function for the catalog, as SQL does, and returns rows: `call("list_files", "t")`
`refused`  what a call says when it is refused
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import forklake
from forklake.sql.functions.function import Arguments, Caller
from forklake.sql.functions.registry import FUNCTIONS

Call = Callable[..., list[dict[str, Any]]]
Refused = Callable[..., str]


@pytest.fixture
def call(lake: forklake.Lake, catalog: forklake.Catalog) -> Call:
    def run(
        name: str, *given: Any, on: Any = None, work: Any = None, inside: str = "main", **named: Any
    ) -> list[dict[str, Any]]:
        handle = catalog if on is None else on
        caller = Caller(lake, handle, handle if work is None else work, inside)
        function = FUNCTIONS[name]
        found = function.run(caller, Arguments(given, named))
        if function.columns is not None:
            assert found.column_names == list(function.columns)
        return found.to_pylist(maps_as_pydicts="strict")

    return run


@pytest.fixture
def refused(call: Call) -> Refused:
    def run(name: str, *given: Any, **named: Any) -> str:
        with pytest.raises(forklake.ForklakeError) as caught:
            call(name, *given, **named)
        return str(caught.value)

    return run
