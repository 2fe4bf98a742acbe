"""IN with very many values: the same as with few, without a parser that looks at each of them."""

from __future__ import annotations

from datetime import date, timedelta
from uuid import UUID

import pyarrow as pa
import pytest
import sqlglot

import forklake
from forklake.errors import InvalidPredicate
from forklake.model.sql import long_lists as longlists
from tests.contract.rows.shown import MANY

FIRST = date(2024, 1, 1)
COLUMNS = {
    "i": ("INTEGER", lambda at: at, str),
    "b": ("HUGEINT", lambda at: at, str),
    "u": ("UTINYINT", lambda at: at % 250, str),
    "d": ("DECIMAL(8, 2)", lambda at: at, lambda at: f"{at}.50" if at % 2 else str(at)),
    "f": ("DOUBLE", lambda at: at / 2, lambda at: str(at / 2)),
    "t": ("VARCHAR", lambda at: f"it's, {at}|,", lambda at: f"'it''s, {at}|,'"),
    "day": ("DATE", lambda at: FIRST + timedelta(at), lambda at: f"'{FIRST + timedelta(at)}'"),
    "id": ("UUID", lambda at: UUID(int=at), lambda at: f"'{UUID(int=at)}'"),
    "q": ("INTEGER", lambda at: at, lambda at: f"'{at}'"),
    "s": ("STRUCT(x BIGINT)", lambda at: {"x": at}, str),
}  # fmt: skip


@pytest.fixture
def table(catalog: forklake.Catalog) -> forklake.Table:
    """Rows in files, inlined ones, and one of NULLs."""
    table = catalog.create_table("t", ", ".join(f"{name} {type}" for name, (type, _, _) in COLUMNS.items()))
    rows = [{name: value(at) for name, (_, value, _) in COLUMNS.items()} for at in range(MANY + 2)]
    table.append(rows[:MANY])
    table.append([*rows[MANY:], {}])
    return table


@pytest.mark.parametrize("name", list(COLUMNS))
def test_a_long_list_means_what_a_short_one_does(
    table: forklake.Table, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    literals = [COLUMNS[name][2](3 * at) for at in range(400)]
    place = "s.x" if name == "s" else name
    listed = f"{place} IN ({', '.join(literals)})"
    conditions = (
        listed, f"NOT {listed}", f"{place} NOT IN ({','.join(literals)})", f"{listed} AND i > 40",
        f"{listed} OR i = 1", f"CASE WHEN {listed} THEN i > 30 ELSE i < 10 END", f"({listed}) IS TRUE",
        f"{listed} IS NULL",
    )  # fmt: skip
    found = [table.scan(where, columns=["i"]).to_arrow() for where in conditions]
    pruned = [len(table.scan(where).plan().pruned) for where in conditions]
    monkeypatch.setattr(longlists, "MANY", 10**9)
    for where, rows, files in zip(conditions, found, pruned, strict=True):
        assert rows.sort_by("i") == table.scan(where, columns=["i"]).to_arrow().sort_by("i"), where[-60:]
        assert files == len(table.scan(where).plan().pruned)


def test_odd_texts_around_a_long_list_are_left_to_the_parser(table: forklake.Table) -> None:
    numbers = ", ".join(str(3 * at) for at in range(400))
    texts = ", ".join(f"'{at}'" for at in range(400))
    assert table.scan(f"t <> 'i IN ({numbers})' AND i IN ({numbers})").count() == 51
    assert table.scan(f"""t <> 'long list 0' AND i IN ({numbers}) AND i IN ({numbers})""").count() == 51
    assert table.scan(f"t <> $$ IN ($$ AND i IN ({numbers})").count() == 51
    assert table.scan(f"i IN ({numbers}, NULL)").count() == 51
    assert table.scan(f"i IN ({numbers}, 10 - 6)").count() == 52
    assert table.scan(f"i IN ({numbers}, 99999999999)").count() == 51
    assert table.scan(f"u IN ({numbers}, -1)").count() == 51
    assert table.scan(f"len(list_filter([i], lambda x: x IN ({numbers}))) = 1").count() == 51
    assert table.update({"t": f"CASE WHEN i IN ({numbers}) THEN 'in' END"}) == MANY + 3
    assert table.scan("t = 'in'").count() == 51
    assert table.delete(f"i IN ({numbers})") == 51
    for bad in (
        f"i IN ({numbers}", f"i IN ({numbers}))", f"nope IN ({numbers})", f"i IN ({texts}, 'x)",
        f"i IN ({numbers}) -- more", f"sum(i) IN ({numbers})", f"i IN ({numbers}); DROP TABLE t",
    ):  # fmt: skip
        with pytest.raises(InvalidPredicate):
            table.scan(bad).count()


def test_no_parser_sees_the_values(catalog: forklake.Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    table = catalog.create_table("large", pa.table({"id": range(1000)}), append=True)
    seen: list[int] = []
    for name in ("parse", "tokenize"):
        plain = getattr(sqlglot, name)

        def watched(sql: str, *args: object, plain=plain, **options: object) -> object:
            seen.append(len(sql))
            return plain(sql, *args, **options)

        monkeypatch.setattr(sqlglot, name, watched)
    where = f"id IN ({', '.join(str(at) for at in range(0, 1_000_000, 10))})"
    assert table.scan(where).count() == 100
    assert seen
    assert max(seen) < 100
