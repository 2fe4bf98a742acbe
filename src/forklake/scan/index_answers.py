"""What indexes say of a condition: which data files have no row for it, and where the rows of others are.

An index is advice. The whole condition stays, what no segment covers is scanned, and so is what a segment
covers that cannot be read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, cast

from forklake.data.storage.storage import Storage
from forklake.errors import MissingDependency, StorageError
from forklake.index.kind import Found, KeyedKind, Segment
from forklake.lazy.arrow import pa, pc
from forklake.lazy.numpy import np
from forklake.model.entities import Column
from forklake.model.ids import ColumnId, DataFileId
from forklake.model.index import Support
from forklake.model.sql.predicate_tree import Always, Node, Or, conjuncts
from forklake.model.table.files import DataFile
from forklake.model.types.data_types import Decimal, Scalar
from forklake.model.types.sort_keys import FLOATS, INTEGERS
from forklake.scan.table_indexes import ChosenSegments, TableIndexes, Unusable, UsableIndex, usable_indexes

_FEW_ROWS = 10_000
"""An index may always find so many rows."""
_SHARE = 8
"""Beyond, at most one of so many: reading all of them is not slower then."""
_FEW_PLACES, _ROWS_PER_PLACE = 8, 16_384
"""Up to so many rows of a file are read by their positions, and more in proportion to its rows."""
MOST_FILES = 64
"""In how many files rows are read by their positions: each is a query of its own."""

_HELD = frozenset(
    {*INTEGERS, *FLOATS, "boolean", "varchar", "uuid", "blob", "date", "timestamp", "timestamptz"}
)
"""Types of columns of which rows are read from indexes."""

Positions: TypeAlias = "pa.Array"
Answers: TypeAlias = "dict[DataFileId, Positions]"
"""For each data file that could be asked about, all rows that may match."""
Ask = Callable[[Sequence[Segment]], Found]


@dataclass(frozen=True, slots=True)
class IndexUse:
    """What a scan had of an index."""

    index: str
    kind: str
    files: int = 0
    """How many data files it was asked about."""
    pruned: int = 0
    """How many of them have no row that matches, and are not read."""
    rows: int = 0
    """How many rows need not be read."""
    problem: str | None = None
    """Why it could not be asked about all that it covers; what it was not asked about is scanned."""

    def __str__(self) -> str:
        """What it saved, for people."""
        found = f"{self.index} pruned {self.pruned:,} of {self.files:,} files, {self.rows:,} rows"
        return found if self.problem is None else f"{found} ({self.problem})"


@dataclass(frozen=True, slots=True)
class Narrowed:
    """The data files that are left to read, and what indexes had to do with it."""

    pruned: Mapping[DataFileId, str] = field(default_factory=dict[DataFileId, str])
    """Files without a row that matches, and why this is known."""
    wanted: Mapping[DataFileId, Positions] = field(default_factory=dict[DataFileId, "Positions"])
    """Of files with few rows that may match, where these are."""
    held: Mapping[DataFileId, pa.Table] = field(default_factory=dict[DataFileId, "pa.Table"])
    """Of some files the rows that may match, as an index holds them: `position`, and columns by column id."""
    found: Mapping[DataFileId, Positions] = field(default_factory=dict[DataFileId, "Positions"])
    """Of all files that indexes were asked about and that have such rows, where these are, few or many."""
    uses: tuple[IndexUse, ...] = ()


def narrow(
    found: TableIndexes,
    columns: Sequence[Column],
    files: Sequence[DataFile],
    storage: Storage,
    tree: Node | None = None,
    keys: pa.Table | None = None,
    needed: Collection[ColumnId] | None = None,
) -> Narrowed:
    """Ask the indexes of a table where rows are that match a condition.

    Or those that have one of some keys, in columns named by column id; nothing else is looked for then.
    Where an index holds all columns that are `needed`, it is asked for the rows too.
    """
    asking = _Asking({file.id: file for file in files}, _covered(columns, needed))
    usable: list[UsableIndex] = []
    for each in usable_indexes(found, columns, storage):
        if isinstance(each, UsableIndex):
            usable.append(each)
        else:
            asking.note(each)
    if keys is not None:
        answers = asking.having(usable, keys)
    else:
        answers = {} if tree is None else asking.matching(usable, tree, asking.files.keys())
    return asking.narrowed(answers)


@dataclass(slots=True)
class _Asking:
    files: Mapping[DataFileId, DataFile]
    needed: frozenset[ColumnId] | None = None
    """The columns that are read, if rows of indexes can stand for those of files."""
    held: dict[DataFileId, pa.Table] = field(default_factory=dict[DataFileId, "pa.Table"])
    asked: dict[str, set[DataFileId]] = field(default_factory=dict[str, set[DataFileId]])
    """By the names of indexes."""
    kinds: dict[str, str] = field(default_factory=dict[str, str])
    problems: dict[str, str] = field(default_factory=dict[str, str])

    def note(self, unusable: Unusable) -> None:
        self._problem(unusable.index.name, unusable.index.kind, unusable.problem)

    def matching(
        self,
        usable: Sequence[UsableIndex],
        node: Node,
        files: Collection[DataFileId],
        *,
        is_part: bool = False,
    ) -> Answers:
        if isinstance(node, Always) and not node.value:
            return dict.fromkeys(files, _nothing())
        answers: Answers = {}
        for each, part, chosen in self._options(usable, node, files):
            left = {file: place for file, place in chosen.by_file.items() if file not in answers}
            if not left:
                continue

            # Of an OR, no index finds all rows.
            with_rows = not is_part and self.needed is not None and self.needed <= each.held

            def ask(
                segments: Sequence[Segment],
                each: UsableIndex = each,
                part: Node = part,
                with_rows: bool = with_rows,
            ) -> Found:
                return each.kind.filter(each.spec, segments, part, with_rows=with_rows)

            answers |= self._ask(each, ChosenSegments(chosen.segments, left), ask)
        for part in conjuncts(node):
            left = [file for file in files if file not in answers]
            if isinstance(part, Or) and left:
                answers |= self._any_of(usable, part, left)
        return answers

    def _any_of(self, usable: Sequence[UsableIndex], node: Or, files: Collection[DataFileId]) -> Answers:
        """Rows for which one of several conditions holds, in the files for which all can be answered."""
        answers: Answers = {}
        for number, part in enumerate(node.nodes):
            of_part = self.matching(usable, part, files, is_part=True)
            files = of_part.keys()
            answers = {
                file: found if number == 0 else _united(answers[file], found)
                for file, found in of_part.items()
            }
        return answers

    def having(self, usable: Sequence[UsableIndex], keys: pa.Table) -> Answers:
        """Rows that have one of some keys, or the part of it that an index is of."""
        given = {ColumnId(int(name)) for name in keys.column_names}
        answers: Answers = {}
        for each in sorted(usable, key=lambda each: -len(each.spec.keys)):
            probe = getattr(each.kind, "probe", None)
            left = [file for file in self.files if file not in answers]
            if probe is None or not left or not given.issuperset(each.index.keys):
                continue
            if not _is_few(keys.num_rows, self._rows(left)):
                continue
            wanted = keys.select([str(column) for column in each.index.keys])

            def ask(
                segments: Sequence[Segment], each: UsableIndex = each, wanted: pa.Table = wanted
            ) -> Found:
                return cast("KeyedKind", each.kind).probe(each.spec, segments, wanted)

            answers |= self._ask(each, each.chosen(left), ask)
        return answers

    def narrowed(self, answers: Answers) -> Narrowed:
        """What the answers are worth."""
        pruned: dict[DataFileId, str] = {}
        wanted: dict[DataFileId, Positions] = {}
        said = self._said()
        for file, found in answers.items():
            if len(found) == 0:
                pruned[file] = said(file)
            elif len(found) <= max(_FEW_PLACES, self.files[file].record_count // _ROWS_PER_PLACE):
                wanted[file] = found
        if len(wanted) > MOST_FILES:
            wanted = {}
        held = {file: rows for file, rows in self.held.items() if file not in pruned}
        found = {file: positions for file, positions in answers.items() if file not in pruned}
        return Narrowed(pruned, wanted, held, found, tuple(self._uses(pruned, wanted)))

    def _said(self) -> Callable[[DataFileId], str]:
        """Which indexes have no row of a file, in words; mostly the same for all files."""
        words: dict[tuple[str, ...], str] = {}

        def said(file: DataFileId) -> str:
            names = tuple(name for name, asked in self.asked.items() if file in asked)
            if names not in words:
                words[names] = f"no row is in index {', '.join(sorted(names))}"
            return words[names]

        return said

    def _uses(
        self, pruned: Mapping[DataFileId, str], wanted: Mapping[DataFileId, Positions]
    ) -> list[IndexUse]:
        uses: list[IndexUse] = []
        for name in sorted(self.kinds):
            asked = self.asked.get(name, set[DataFileId]())
            gone = asked & pruned.keys()
            saved = self._rows(asked & (pruned.keys() | wanted.keys()))
            saved -= sum(len(found) for file, found in wanted.items() if file in asked)
            problem = self.problems.get(name)
            uses.append(IndexUse(name, self.kinds[name], len(asked), len(gone), saved, problem))
        return uses

    def _rows(self, files: Collection[DataFileId]) -> int:
        return sum(self.files[file].record_count for file in files)

    def _options(
        self, usable: Sequence[UsableIndex], node: Node, files: Collection[DataFileId]
    ) -> list[tuple[UsableIndex, Node, ChosenSegments]]:
        """Indexes that can answer the whole or a part, those that find the fewest rows first."""
        options: list[tuple[int, int, UsableIndex, Node, ChosenSegments]] = []
        for each in usable:
            for part in dict.fromkeys((node, *conjuncts(node))):
                if each.kind.supports(each.spec, part) is Support.NO:
                    continue
                chosen = each.chosen(files)
                rows = self._estimate(each, chosen, part)
                if rows is not None and _is_few(rows, self._rows(chosen.by_file.keys())):
                    options.append((rows, len(options), each, part, chosen))
                if part is node:
                    break
        return [option[2:] for option in sorted(options, key=lambda option: option[:2])]

    def _estimate(self, each: UsableIndex, chosen: ChosenSegments, node: Node) -> int | None:
        """About how many rows will be found; None if no segment can be read. Some kinds have no idea."""
        estimate = getattr(each.kind, "estimate", None)
        if estimate is None:
            return 0
        counts: list[int] = []
        for segment in chosen.segments:
            try:
                counts.append(cast("KeyedKind", each.kind).estimate(each.spec, segment, node))
            except (StorageError, MissingDependency) as problem:
                self._problem(each.index.name, each.index.kind, str(problem))
        return sum(counts) if counts else None

    def _ask(self, each: UsableIndex, chosen: ChosenSegments, ask: Ask) -> Answers:
        """What segments find, all at once; one by one if one of them cannot be read."""
        numbers = sorted({number for number, _ in chosen.by_file.values()})
        readable: list[tuple[list[int], Found]] = []
        try:
            readable.append((numbers, ask([chosen.segments[number] for number in numbers])))
        except (StorageError, MissingDependency) as problem:
            self._problem(each.index.name, each.index.kind, str(problem))
            for number in numbers if len(numbers) > 1 else ():
                try:
                    readable.append(([number], ask([chosen.segments[number]])))
                except (StorageError, MissingDependency) as problem:
                    self._problem(each.index.name, each.index.kind, str(problem))
        positions = {
            (order[place], ordinal): found
            for order, answer in readable
            for (place, ordinal), found in answer.positions.items()
        }
        for order, answer in readable:
            if answer.rows is not None:
                self.held |= _by_file(answer.rows, order, chosen)
        answered = {number for order, _ in readable for number in order}
        nothing = _nothing()
        answers = {
            file: positions.get(place, nothing)
            for file, place in chosen.by_file.items()
            if place[0] in answered
        }
        self.kinds[each.index.name] = each.index.kind
        self.asked.setdefault(each.index.name, set()).update(answers)
        return answers

    def _problem(self, name: str, kind: str, problem: str) -> None:
        self.kinds[name] = kind
        self.problems.setdefault(name, problem)


def _covered(columns: Sequence[Column], needed: Collection[ColumnId] | None) -> frozenset[ColumnId] | None:
    known = {column.id: column for column in columns}
    if not needed or not all(is_whole(known[number]) for number in needed if number in known):
        return None
    return frozenset(needed)


def is_whole(column: Column) -> bool:
    """Whether values in Arrow tables are those that files have, whoever reads them."""
    return isinstance(column.data_type, Decimal) or (
        isinstance(column.data_type, Scalar) and column.data_type.name in _HELD
    )


def _by_file(rows: pa.Table, order: Sequence[int], chosen: ChosenSegments) -> dict[DataFileId, pa.Table]:
    """Rows that segments hold, by the file that they are of."""
    numbers, ordinals = (rows.column(name).to_numpy() for name in ("segment", "ordinal"))
    found: dict[DataFileId, pa.Table] = {}
    of_file = {place: file for file, place in chosen.by_file.items()}
    for number, ordinal in np.unique(np.column_stack([numbers, ordinals]), axis=0).tolist():
        file = of_file.get((order[number], ordinal))
        if file is not None:
            mask = pa.array((numbers == number) & (ordinals == ordinal))
            found[file] = rows.filter(mask).drop_columns(["segment", "ordinal"]).sort_by("position")
    return found


def _nothing() -> Positions:
    return pa.array([], pa.int64())


def _united(one: Positions, other: Positions) -> Positions:
    return pc.unique(pa.concat_arrays([one, other])).sort()


def _is_few(found: int, rows: int) -> bool:
    return found <= max(_FEW_ROWS, rows // _SHARE)
