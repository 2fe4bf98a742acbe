"""The tree of forks: what it shows, how it is drawn, and that it stays small whatever there is."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

import forklake
from forklake.store.backend import Database
from forklake.store.row_sets import CATALOGS, HEADS, LINEAGES


def parsed(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)  # noqa: S314 - our own drawing


Queries = Callable[[Callable[[], Any]], list[str]]


@pytest.fixture
def queries(database: Database, monkeypatch: pytest.MonkeyPatch) -> Queries:
    """The names of the statements that a call runs."""

    def during(call: Callable[[], Any]) -> list[str]:
        ran: list[str] = []
        rows = type(database).rows

        def counted(self: Database, statement: str, /, **params: object) -> Any:
            ran.append(statement)
            return rows(self, statement, **params)

        with monkeypatch.context() as patch:
            patch.setattr(type(database), "rows", counted)
            call()
        return ran

    return during


def test_a_tree_has_each_catalog_before_its_forks(lake: forklake.Lake) -> None:
    main = lake.create_catalog("main")
    main.create_table("t", "id INT").append([{"id": 1}])
    agent = lake.fork("main", "agent_1", ttl=timedelta(days=1))
    lake.fork("agent_1", "inner")
    lake.fork("main", "agent_2", mode="copy")
    lake.create_catalog("apart")
    agent.table("t").append([{"id": 2}])
    merged = lake.merge("agent_1", into="main")

    tree = lake.tree()
    assert [(node.name, node.parent, node.level, node.fork_snapshot, node.commits) for node in tree] == [
        ("main", None, 0, None, 3),
        ("agent_1", "main", 1, 3, 1),
        ("inner", "agent_1", 2, 4, 0),
        ("agent_2", "main", 1, 3, 0),
        ("apart", None, 0, None, 0),
    ]
    infos = {info.name: info for info in lake.catalogs()}
    for node in tree:
        info = infos[node.name]
        assert (node.id, node.created_at, node.expires_at) == (info.id, info.created_at, info.expires_at)
        assert node.snapshot == lake.catalog(node.name).snapshot
    assert [node.merged_at for node in tree] == [None, merged.snapshot, None, None, None]
    lines = str(tree).splitlines()
    assert [line[: line.index("  ", 10)] for line in lines[1:4]] == [
        "├─ agent_1",
        "│  └─ inner",
        "└─ agent_2",
    ]
    assert f"merged into main at {merged.snapshot}" in lines[1]
    assert "expires" in lines[1]
    assert repr(tree) == "<ForkTree of 5 catalogs>"


def test_a_tree_begins_where_it_is_told_and_ends_there_too(lake: forklake.Lake) -> None:
    lake.create_catalog("main")
    for parent, name in (("main", "a"), ("a", "b"), ("b", "c"), ("main", "d")):
        lake.fork(parent, name)
    below = lake.tree("a")
    assert [(node.name, node.level, node.parent) for node in below] == [
        ("a", 0, "main"),
        ("b", 1, "a"),
        ("c", 2, "b"),
    ]
    assert below.more == 0
    assert [node.name for node in lake.tree(lake.catalog("a"))] == ["a", "b", "c"]
    shallow = lake.tree(depth=1)
    assert [(node.name, node.more) for node in shallow] == [("main", 0), ("a", 1), ("d", 0)]
    assert str(shallow).splitlines()[2] == "│  └─ … 1 more"
    assert [(node.name, node.more) for node in lake.tree("a", depth=0)] == [("a", 1)]


def test_dropped_catalogs_are_shown_on_request_or_if_forks_of_them_live(lake: forklake.Lake) -> None:
    lake.create_catalog("main")
    lake.fork("main", "gone")
    lake.fork("main", "between")
    lake.fork("between", "alive")
    lake.drop_catalogs(["gone", "between"])
    assert [(node.name, node.dropped_at is not None) for node in lake.tree()] == [
        ("main", False),
        ("between", True),
        ("alive", False),
    ]
    whole = lake.tree(dropped=True)
    assert [node.name for node in whole] == ["main", "gone", "between", "alive"]
    assert [node.commits for node in whole] == [0, 0, 0, 0]
    assert f"dropped at {whole.nodes[1].dropped_at}" in str(whole)


def test_many_siblings_are_counted_and_few_are_shown(lake: forklake.Lake, queries: Queries) -> None:
    lake.create_catalog("main")
    lake.fork_many("main", [f"f{number}" for number in range(3000)])
    lake.fork("f2999", "below a hidden one")
    lake.fork("f1", "below a shown one")
    few = lake.tree(limit=3)
    assert [node.name for node in few] == ["main", "f0", "f1", "below a shown one", "f2"]
    assert [node.more for node in few] == [2997, 0, 0, 0, 0]
    assert str(few).splitlines()[-1] == "└─ … 2,997 more"
    assert repr(few) == "<ForkTree of 5 catalogs and 2997 more>"
    assert len(lake.tree()) == 22
    everything = lake.tree(limit=10**9)
    assert (len(everything), everything.nodes[0].more) == (2000, 3000 - 1999)
    assert queries(lake.tree) == queries(lambda: lake.tree(limit=10**9)) == ["fork_tree", "fork_tree_nodes"]


def test_many_roots_are_counted_too(lake: forklake.Lake) -> None:
    for number in range(5):
        lake.create_catalog(f"c{number}")
    tree = lake.tree(limit=2)
    assert ([node.name for node in tree], tree.more) == (["c0", "c1"], 3)
    assert str(tree).splitlines()[-1] == "… 3 more"
    assert "… 3 more" in tree.svg()


def test_a_chain_of_a_thousand_forks_is_drawn(lake: forklake.Lake, database: Database) -> None:
    lake.create_catalog("main")
    _chain(database, 1000)
    tree = lake.tree()
    assert [node.level for node in tree] == list(range(1001))
    text = str(tree).splitlines()
    assert len(text) == 1001
    assert text[-1].startswith("   " * 999 + "└─ link 1000  forked at")
    assert len(parsed(tree.svg()).findall("{*}circle")) == 1001
    assert [node.name for node in lake.tree("link 998")] == ["link 998", "link 999", "link 1000"]


def _chain(database: Database, length: int) -> None:
    """Write what a chain of forks writes, all at once: by one call each it would take minutes."""
    (root,) = [row[0] for row in database.rows("catalog_by_name", name="main")]
    first = 10_000
    ids = [root, *range(first, first + length)]
    at = database.rows("latest_snapshot")[0][0]
    now = database.now()
    with database.transaction() as session:
        session.insert(
            CATALOGS,
            [
                (number, f"00000000-0000-0000-0000-{number:012}", f"link {place}", at)
                for place, number in enumerate(ids)
                if place
            ],
        )
        session.insert(
            HEADS,
            [(number, at, now, 0, f"link{number}/", now, None, None) for number in ids[1:]],
        )
        session.insert(
            LINEAGES,
            [
                (number, ids[above], 2**63 - 1 if above == place else at, above, None)
                for place, number in enumerate(ids)
                for above in range(place + 1)
                if place
            ],
        )
        session.commit()


def test_names_do_no_harm_in_drawings(lake: forklake.Lake) -> None:
    name = "<script>alert(1)</script>\u202e&\"'"
    lake.create_catalog(name)
    lake.fork(name, "]]></text><image href='x' onerror='y'>")
    tree = lake.tree()
    assert "<script" not in tree.svg()
    assert "<image" not in tree.svg()
    drawn = parsed(tree.svg())
    assert [text.text for text in drawn.findall("{*}text")] == [
        name.replace("\u202e", "\\u202e"),
        "]]></text><image href='x' onerror='y'>",
    ]
    assert "\u202e" not in str(tree)
    assert tree._repr_svg_() == tree.svg()
    assert tree.svg() in tree._repr_html_()


def test_an_empty_lake_has_an_empty_tree(lake: forklake.Lake) -> None:
    assert str(lake.tree()) == "(no catalogs)"
    assert len(lake.tree()) == 0
    parsed(lake.tree().svg())


def test_what_is_no_tree_is_refused(lake: forklake.Lake) -> None:
    lake.create_catalog("main")
    for options in ({"depth": -1}, {"depth": True}, {"limit": 0}, {"limit": None}, {"limit": 1.5}):
        with pytest.raises(forklake.InvalidArgument, match=f"the {next(iter(options))} of a tree"):
            lake.tree(**options)
    with pytest.raises(forklake.CatalogNotFound):
        lake.tree("nobody")
