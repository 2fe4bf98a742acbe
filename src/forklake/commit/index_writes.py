"""Files of indexes that a transaction adds or replaces, and how a commit writes them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from forklake.errors import CommitConflict
from forklake.model.changes import Change, Verb
from forklake.model.ids import DataFileId, IndexFileId, IndexId
from forklake.model.index import GONE, Index, WrittenSegment
from forklake.model.snapshots import Head
from forklake.store.backend import Session
from forklake.store.indexes import add_index_files, end_index_files

GivenIds = Mapping[int, Mapping[int, int]]
"""What provisional ids of the data files of each table became."""


@dataclass(slots=True)
class StagedIndexFiles:
    """Files of the indexes of one table, before any of it is committed."""

    added: dict[IndexFileId, tuple[IndexId, WrittenSegment]] = field(
        default_factory=dict[IndexFileId, "tuple[IndexId, WrittenSegment]"]
    )
    """By provisional ids, models before the segments that need them."""
    replaced: set[IndexFileId] = field(default_factory=set[IndexFileId])
    """Stored files that others stand in for."""
    last_id: int = 0

    def add(self, index: IndexId, written: WrittenSegment) -> IndexFileId:
        """Keep a file that stands in storage; gives its provisional id."""
        self.last_id -= 1
        self.added[IndexFileId(self.last_id)] = (index, written)
        return IndexFileId(self.last_id)

    def drop(self, files: Iterable[IndexFileId]) -> list[str]:
        """Let files go; gives the paths of those that nobody has seen."""
        gone = [(file, self.added.pop(file, None)) for file in files]
        self.replaced |= {file for file, _ in gone if file >= 0}
        return [added[1].path for _, added in gone if added is not None]

    def drop_index(self, index: IndexId) -> list[str]:
        """Let go of what was added for an index."""
        return self.drop([file for file, (owner, _) in self.added.items() if owner == index])


@dataclass(frozen=True, slots=True)
class IndexWrites:
    """What a commit does to files of the indexes of one table. Numbers below zero are provisional."""

    table_id: int
    added: tuple[tuple[IndexFileId, IndexId, WrittenSegment], ...] = ()
    replaced: frozenset[IndexFileId] = frozenset()

    @property
    def paths(self) -> list[str]:
        """The files that it refers to."""
        return [written.path for _, _, written in self.added]


def index_writes(staged: Mapping[int, StagedIndexFiles]) -> tuple[IndexWrites, ...]:
    """What is staged, ready to be committed."""
    return tuple(
        IndexWrites(
            table,
            tuple((file, index, written) for file, (index, written) in files.added.items()),
            frozenset(files.replaced),
        )
        for table, files in staged.items()
        if files.added or files.replaced
    )


def changes_of_indexes(
    pairs: Iterable[tuple[Index | None, Index | None]],
    writes: Iterable[IndexWrites],
    names: Mapping[IndexId, str],
    about: Callable[[int], Mapping[str, Any]],
    *,
    whole: Collection[int],
    with_rows: Collection[int],
) -> Iterator[Change]:
    """What a commit did to indexes, as others have to know it.

    Those of a `whole` table come and go with it, and files of indexes belong to rows that come with them.
    """
    for before, after in pairs:
        index = after or before
        if index is not None and index.table_id not in whole:
            verb = Verb.CREATE_INDEX if before is None else Verb.DROP_INDEX
            yield Change(verb, index.table_id, detail=index.name, **about(index.table_id))
    for files in writes:
        if files.table_id not in whole and files.table_id not in with_rows:
            built: dict[IndexId, set[int]] = {}
            for _, index, written in files.added:
                if index >= 0:
                    built.setdefault(index, set()).update(file for file in written.covers if file >= 0)
            for index, found in built.items():
                known, said = frozenset(found), about(files.table_id)
                yield Change(Verb.BUILD_INDEX, files.table_id, detail=names.get(index), files=known, **said)


def index_file_ids_needed(writes: Iterable[IndexWrites]) -> int:
    """How many numbers a commit has to draw for files of indexes."""
    return sum(len(table.added) for table in writes)


def write_index_files(
    session: Session,
    head: Head,
    writes: Sequence[IndexWrites],
    free: Iterable[int],
    ids: Callable[[int], int],
    given: GivenIds,
) -> None:
    """Store files of indexes, with the ids that all they refer to has now."""
    numbers = iter(free)
    for table in writes:
        known = {file: IndexFileId(next(numbers)) for file, _, _ in table.added}
        files = given.get(table.table_id, {})

        def final(written: WrittenSegment, files: Mapping[int, int] = files) -> tuple[DataFileId, ...]:
            # A file that the transaction added, and emptied again, was never committed.
            return tuple(DataFileId(files.get(file, GONE if file < 0 else file)) for file in written.covers)

        rows = [
            (
                known[file],
                ids(index),
                replace(
                    written,
                    covers=final(written),
                    model=None if written.model is None else known.get(written.model, written.model),
                ),
            )
            for file, index, written in table.added
        ]
        if rows:
            add_index_files(session, head, ids(table.table_id), rows)


def end_useless_files(
    session: Session, head: Head, tables: Collection[int], replaced: Collection[IndexFileId]
) -> None:
    """End files of indexes that were replaced, and those that find nothing any more.

    Whoever merged segments that somebody else has merged meanwhile does it again.
    """
    if not tables:
        return
    ended = end_index_files(session, head, tables, replaced)
    if not ended.issuperset(replaced):
        raise CommitConflict(
            f"{len(set(replaced) - ended)} segments of an index were replaced meanwhile: "
            "refresh and run it again"
        )
