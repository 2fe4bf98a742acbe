"""Indexes are created, listed and dropped, in tables and in transactions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import forklake
from forklake.errors import (
    ColumnNotFound,
    CommitConflict,
    IndexExists,
    IndexNotFound,
    InvalidArgument,
    InvalidIndex,
    InvalidName,
)


def names(table: forklake.Table) -> list[str]:
    return [index.name for index in table.indexes()]


def test_an_index_is_created_listed_and_dropped(catalog: forklake.Catalog, table: forklake.Table) -> None:
    before = catalog.snapshot
    table.create_index("By_Id", kind="shelf", columns=["ID"], include=["name"], height=5, message="why")
    made = catalog.snapshot
    (index,) = table.indexes()
    assert (index.schema, index.table, index.name, index.kind) == ("main", "t", "By_Id", "shelf")
    assert (index.columns, index.include, index.maintain) == (("id",), ("name",), "later")
    assert index.params == {"height": 5}
    table.create_index("other", kind="shelf", columns=["name", "id"], maintain="commit")
    table.create_index("OTHER", kind="shelf", columns=["id"], if_not_exists=True)
    assert [(one.name, one.columns, one.params) for one in table.indexes()][1:] == [
        ("other", ("name", "id"), {"height": 3})
    ]
    table.rename_column("id", "number")
    assert table.indexes()[0].columns == ("number",)
    table.drop_index("by_id")
    table.drop_index("by_id", if_exists=True)
    assert names(table) == ["other"]
    assert catalog.table("t", at=before).indexes() == []
    assert [one.columns for one in catalog.table("t", at=made).indexes()] == [("id",)]
    assert [snapshot.summary for snapshot in table.history()][-4:] == [
        "created index By_Id of main.t",
        "created index other of main.t",
        "altered table main.t",
        "dropped index By_Id of main.t",
    ]


BAD: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "kind": ({"kind": "shelve"}, InvalidIndex, "no kind of index"),
    "no columns": ({"columns": []}, InvalidIndex, "at least one column"),
    "unknown column": ({"columns": ["idd"]}, ColumnNotFound, '"id"'),
    "a column twice": ({"columns": ["id", "ID"]}, InvalidIndex, "twice"),
    "included too": ({"include": ["id"]}, InvalidIndex, "need not be included"),
    "inside": ({"columns": ["place.x"]}, InvalidIndex, "as a whole"),
    "text": ({"columns": "id"}, InvalidArgument, "list"),
    "what the kind refuses": ({"columns": ["place"]}, InvalidIndex, "cannot hold"),
    "parameter": ({"width": 3}, InvalidIndex, "no width"),
    "value": ({"height": [3]}, InvalidArgument, "height is list"),
    "infinite": ({"height": float("inf")}, InvalidArgument, "height is float"),
    "maintain": ({"maintain": "never"}, InvalidArgument, "never"),
    "name": ({"name": " "}, InvalidName, "index"),
}


@pytest.mark.parametrize("given", BAD)
def test_what_cannot_be_an_index_is_refused(
    catalog: forklake.Catalog, table: forklake.Table, given: str
) -> None:
    more, error, message = BAD[given]
    before = catalog.snapshot
    with pytest.raises(error, match=message):
        table.create_index(**{"name": "i", "kind": "shelf", "columns": ["id"], **more})
    assert catalog.snapshot == before


def test_names_are_of_one_table(catalog: forklake.Catalog, table: forklake.Table) -> None:
    other = catalog.create_table("other", "id BIGINT")
    for each in (table, other):
        each.create_index("i", kind="shelf", columns=["id"])
    with pytest.raises(IndexExists, match="case makes no difference"):
        table.create_index("I", kind="shelf", columns=["id"])
    with pytest.raises(IndexNotFound, match='did you mean "i"'):
        table.drop_index("ii")
    table.drop_index("i")
    with pytest.raises(IndexNotFound, match="it has none"):
        table.drop_index("i")
    assert (names(table), names(other)) == ([], ["i"])


def test_an_index_goes_with_its_columns_and_its_table(
    catalog: forklake.Catalog, table: forklake.Table
) -> None:
    table.create_index("of_name", kind="shelf", columns=["name"])
    table.create_index("with_name", kind="shelf", columns=["id"], include=["name"])
    table.create_index("of_id", kind="shelf", columns=["id"])
    table.drop_column("name")
    assert names(table) == ["of_id"]
    past = catalog.snapshot
    table.drop()
    catalog.create_table("t", "id BIGINT")
    assert names(catalog.table("t")) == []
    assert names(catalog.table("t", at=past)) == ["of_id"]
    catalog.create_schema("s")
    inside = catalog.create_table("s.t", "id BIGINT")
    inside.create_index("i", kind="shelf", columns=["id"])
    catalog.drop_schema("s", cascade=True)
    assert catalog._scope.read().all_indexes() == []


def test_a_transaction_shows_its_own_indexes(catalog: forklake.Catalog, table: forklake.Table) -> None:
    table.create_index("old", kind="shelf", columns=["id"])
    with catalog.transaction() as tx:
        made = tx.create_table("u", "id BIGINT")
        made.create_index("new", kind="shelf", columns=["id"])
        tx.table("t").drop_index("old")
        tx.table("t").create_index("old", kind="shelf", columns=["name"])
        made.create_index("never", kind="shelf", columns=["id"])
        made.drop_index("never")
        assert (names(tx.table("t")), names(made)) == (["old"], ["new"])
        assert names(table) == ["old"]
    assert table.indexes()[0].columns == ("name",)
    assert names(catalog.table("u")) == ["new"]
    with catalog.transaction() as tx:
        tx.create_table("v", "id BIGINT").create_index("i", kind="shelf", columns=["id"])
        tx.table("v").drop()
        tx.table("t").create_index("gone", kind="shelf", columns=["id"])
        tx.drop_table("u")
        tx.rollback()
    assert names(catalog.table("u")) == ["new"]


Step = Callable[[forklake.Table], None]


def make(table: forklake.Table) -> None:
    table.create_index("i", kind="shelf", columns=["id"])


def drop(table: forklake.Table) -> None:
    table.drop_index("there")


MEET: dict[str, tuple[Step, Step, bool]] = {
    "two of one name": (make, make, True),
    "two drops": (drop, drop, True),
    "a drop and another": (drop, make, False),
    "a dropped table": (lambda table: table.drop(), make, True),
    "drop of the table": (make, lambda table: table.drop(), True),
    "a dropped column": (lambda table: table.drop_column("id"), make, True),
    "drop of the column": (make, lambda table: table.drop_column("id"), True),
    "rows": (lambda table: table.append([{"id": 9}]), make, False),
    "rows after": (make, lambda table: table.delete("id = 1"), False),
    "another name": (make, lambda table: table.rename("elsewhere"), False),
}


@pytest.mark.parametrize("what", MEET)
def test_transactions_conflict_where_one_would_undo_the_other(
    catalog: forklake.Catalog, table: forklake.Table, what: str
) -> None:
    theirs, ours, collides = MEET[what]
    table.create_index("there", kind="shelf", columns=["name"])
    tx = catalog.transaction()
    ours(tx.table("t"))
    theirs(table)
    if not collides:
        tx.commit()
        assert "i" in names(table)
        return
    with pytest.raises(CommitConflict):
        tx.commit()
