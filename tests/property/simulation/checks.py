"""What must hold after every step, and what must be left in the end."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.property.simulation.faults import Violation
from tests.property.simulation.model import CatalogModel
from tests.property.simulation.picture import ENTITIES, Picture, Row
from tests.property.simulation.reading_verbs import Values, read_values

if TYPE_CHECKING:
    from tests.property.simulation.world import World

EMPTY = {"ducklake_metadata", "ducklake_snapshot", "ducklake_counter"}
"""What a lake without catalogs has: settings, its last snapshot, and where its counters stand."""
PARTS = (
    ("ducklake_inlined_file", "ducklake_data_file", "data_file_id"),
    ("ducklake_file_column_stats", "ducklake_data_file", "data_file_id"),
    ("ducklake_index_coverage", "ducklake_index_file", "index_file_id"),
    ("ducklake_index_column", "ducklake_index", "index_id"),
)
"""Tables of what belongs to rows of others, and goes with them: of which, and by which number."""
FILES = ("data_file", "delete_file", "index_file")
Seen = list[tuple[Row, int]]
Key = frozenset[tuple[Any, ...]]
"""Everything that the rows of a table at a snapshot follow from."""


class Checker:
    """Compares a lake with the model. What follows from the same rows and files is read once."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._contents: dict[Key, Values] = {}
        self._checked: dict[int, int] = {}
        self._indexes: dict[tuple[int, int], Key] = {}

    def check(self) -> Picture:
        """All that must hold at any time."""
        picture = Picture(self.world.query)
        self._check_retained(picture)
        self._check_files(picture)
        for viewer in picture.viewers:
            self._check_contents(picture, self.world.catalogs[viewer])
        self._check_indexes(picture)
        return picture

    def _check_retained(self, picture: Picture) -> None:
        catalogs = self.world.catalogs
        for catalog in list(catalogs.values()):
            if catalog.id not in picture.retained:
                if not catalog.may_be_forgotten:
                    raise Violation(f"{catalog.name} is gone")
                del catalogs[catalog.id]
        for viewer, retained in picture.retained.items():
            if viewer not in catalogs:
                raise Violation(f"there is a catalog {viewer} that nobody made")
            if retained != sorted(catalogs[viewer].history):
                raise Violation(
                    f"{catalogs[viewer].name} retains {retained}, not {sorted(catalogs[viewer].history)}"
                )

    def _check_files(self, picture: Picture) -> None:
        for path in self.world.imports:
            if not Path(path).exists():
                raise Violation(f"{path} was imported, and is gone")
        for entity in FILES:
            for row in picture.reached(entity).values():
                if row["path"] and not Path(self.world.address(row)).exists():
                    raise Violation(f"{row['path']} is gone, which catalog {row['catalog_id']} names: {row}")

    def _check_indexes(self, picture: Picture) -> None:
        """Every retained snapshot has the indexes that it had when it was committed, and their files."""
        if not picture.rows["ducklake_index"]:
            return
        for viewer, retained in picture.retained.items():
            found = [
                (entity, row[f"{entity}_id"], row["begin_snapshot"], end)
                for entity in ("index", "index_file")
                for row, end in picture.seen(entity, viewer)
            ]
            for snapshot in retained:
                there = frozenset(key[:2] for key in found if key[2] <= snapshot < key[3])
                before = self._indexes.setdefault((viewer, snapshot), there)
                if there != before:
                    told = f"{sorted(there)}, not {sorted(before)}"
                    raise Violation(f"catalog {viewer} at {snapshot} has {told}")

    # ---- Rows ---

    def _check_contents(self, picture: Picture, catalog: CatalogModel) -> None:
        """Every retained snapshot shows what was committed."""
        tables, files, deletes = (
            list(picture.seen(entity, catalog.id)) for entity in ("table", "data_file", "delete_file")
        )
        bounds = {source.catalog: source.bound for source in picture.sources[catalog.id]}
        inlined = [
            row
            for row in picture.rows["ducklake_inlined_delete"]
            if row["begin_snapshot"] <= bounds.get(row["catalog_id"], -1)
        ]
        contents = {
            (row["catalog_id"], row["data_file_id"]): row["content"]
            for row in picture.rows["ducklake_inlined_file"]
        }
        signature = hash(
            (
                tuple(catalog.history),
                tuple((row["table_id"], row["table_name"], end) for row, end in tables),
                tuple((row["data_file_id"], row["path"], end) for row, end in files),
                tuple((row["delete_file_id"], end) for row, end in deletes),
                tuple((row["data_file_id"], row["position"]) for row in inlined),
                tuple(contents),
            )
        )
        if self._checked.get(catalog.id) == signature:
            return
        for snapshot, state in catalog.history.items():
            expected = state.live()
            names = {row["table_id"]: row["table_name"] for row in _at(tables, snapshot)}
            if sorted(names.values()) != sorted(expected):
                raise Violation(f"{catalog.name} at {snapshot} has {names}, not {sorted(expected)}")
            keys = _keys(snapshot, names, files, deletes, inlined, contents)
            for number, name in names.items():
                self._check_table(catalog, snapshot, name, keys[number], expected[name])
        self._checked[catalog.id] = signature

    def _check_table(
        self, catalog: CatalogModel, snapshot: int, name: str, key: Key, expected: Values
    ) -> None:
        found = self._contents.get(key)
        if found is None:
            if catalog.dropped is not None:
                return
            table = self.world.reader.catalog(catalog.name).at(snapshot).table(name)
            found = self._contents[key] = read_values(table)
        if found != expected:
            raise Violation(f"{name} of {catalog.name} at {snapshot} has {found}, not {expected}")

    # ---- The end ---

    def check_exact(self) -> None:
        """After cleaning without any retention, nothing is left that nobody can reach."""
        picture = self.check()
        for entity, (table, _) in ENTITIES.items():
            rows = {id(row): row for row in picture.rows[table]}
            reached = picture.reached(entity)
            extra = rows.keys() - reached.keys() - picture.needed_to_merge(entity).keys()
            if extra:
                raise Violation(f"nobody reaches {[rows[place] for place in extra]} in {table}")
        self._check_inlined_deletes(picture)
        self._check_disk(picture)
        if picture.rows["ducklake_files_scheduled_for_deletion"]:
            raise Violation(f"files are scheduled: {picture.rows['ducklake_files_scheduled_for_deletion']}")
        for part, whole, key in PARTS:
            there, told = (
                {(row["catalog_id"], row[key]) for row in picture.rows[table]} for table in (whole, part)
            )
            if told - there:
                raise Violation(f"{part} tells of {told - there}, which are gone from {whole}")

    def _check_inlined_deletes(self, picture: Picture) -> None:
        """Whoever deleted rows of a file inline sees the file."""
        seen = {
            (viewer, row["data_file_id"])
            for viewer in picture.sources
            for row, _ in picture.seen("data_file", viewer)
        }
        deleted = {
            (row["catalog_id"], row["data_file_id"]) for row in picture.rows["ducklake_inlined_delete"]
        }
        if deleted - seen:
            raise Violation(f"rows are deleted in files that are not seen there: {deleted - seen}")

    def _check_disk(self, picture: Picture) -> None:
        named = {
            self.world.address(row)
            for entity in FILES
            for row in picture.rows[ENTITIES[entity][0]]
            if row["path"]
        }
        there = set(self.world.files())
        if there - self.world.imports - named:
            raise Violation(f"nobody names {there - self.world.imports - named}")
        if named - there:
            raise Violation(f"{named - there} are missing")

    def check_nothing(self) -> None:
        """Without catalogs, nothing is left."""
        picture = Picture(self.world.query)
        left = {name: rows for name, rows in picture.rows.items() if rows and name not in EMPTY}
        if left:
            raise Violation(f"rows are left: {left}")
        if len(picture.rows["ducklake_snapshot"]) > 2:
            raise Violation(f"snapshots are left: {picture.rows['ducklake_snapshot']}")
        files = set(self.world.files()) - self.world.imports
        if files:
            raise Violation(f"files are left: {files}")


def _at(seen: Seen, snapshot: int) -> Iterable[Row]:
    return (row for row, end in seen if row["begin_snapshot"] <= snapshot < end)


def _keys(
    snapshot: int,
    tables: Iterable[int],
    files: Seen,
    deletes: Seen,
    inlined: list[Row],
    contents: dict[tuple[int, int], str],
) -> dict[int, Key]:
    """By table: what its rows follow from."""
    found: dict[int, set[tuple[Any, ...]]] = {table: {("table", table)} for table in tables}
    there: set[int] = set()
    for row in _at(files, snapshot):
        if row["table_id"] not in found:
            # A fork that drops a table that it inherited leaves the files alone.
            continue
        number = row["data_file_id"]
        there.add(number)
        newest = row["partial_max"]
        up_to = snapshot if newest is not None and newest > snapshot else None
        content = None if row["path"] else contents.get((row["catalog_id"], number))
        found[row["table_id"]].add(("file", number, row["path"], up_to, content))
    for row in _at(deletes, snapshot):
        newest = row["partial_max"]
        up_to = snapshot if newest is not None and newest > snapshot else None
        if row["data_file_id"] in there:
            found[row["table_id"]].add(("deletes", row["delete_file_id"], row["path"], up_to))
    for row in inlined:
        if row["begin_snapshot"] <= snapshot and row["data_file_id"] in there:
            found[row["table_id"]].add(("deleted", row["data_file_id"], row["position"]))
    return {table: frozenset(parts) for table, parts in found.items()}
