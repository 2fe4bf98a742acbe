"""Publishing a plan: one lock, a look at what others did, a fixed number of set-based writes, one commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Protocol

from forklake.commit.adopt import adopt
from forklake.commit.changes import Pair
from forklake.commit.commit_plan import Plan
from forklake.commit.conflicts import DROPPED, MERGE_RULES, RULES, conflict_error, conflicts
from forklake.commit.index_writes import GivenIds, end_useless_files, index_file_ids_needed, write_index_files
from forklake.commit.retry import commit_once
from forklake.commit.table_statistics import StatisticsCache
from forklake.commit.write_rows import file_ids_needed, spaces_needed, write_rows
from forklake.errors import CatalogNotFound, CommitConflict, ForklakeError, InvalidData
from forklake.model.changes import SORTED, Change, Verb, from_footprint, notation, to_footprint
from forklake.model.entities import Macro, Origin
from forklake.model.ids import CatalogId, IndexFileId, SnapshotId, TableId
from forklake.model.index import Index
from forklake.model.snapshots import Author, Head
from forklake.model.table.statistics import TableStatistics
from forklake.store.backend import Allocation, Database, LockedHead, Record, Session
from forklake.store.catalogs import dropped
from forklake.store.entity_rows import Entity, entity_rows, origins_of, renumbered, stamped
from forklake.store.entity_writes import EntityWrites, add_schema_versions, burn_columns, end_files
from forklake.store.garbage import claimed_files
from forklake.store.lineages import share_lineages
from forklake.store.retention import check_retained, is_retained
from forklake.store.snapshots import footprints_since, snapshot_exists

_TICK = timedelta(microseconds=1)
_RESHAPING = (Verb.CREATE_TABLE, Verb.ALTER_TABLE)


@dataclass(frozen=True, slots=True)
class Published:
    """A commit that stands."""

    head: Head
    pairs: tuple[Pair, ...]
    """Before and after, as they are stored now."""
    ids: Mapping[int, int]
    """What provisional ids became."""
    rebased: bool
    """Whether others had committed since the base."""
    at: SnapshotId
    """The snapshot that it follows."""
    statistics: Mapping[TableId, TableStatistics]
    """What the tables amount to whose rows changed."""

    def final_id(self, given: int) -> int:
        """The id that an object has now."""
        return self.ids.get(given, given)


class Claim(Protocol):
    """What a commit may have to take hold of, in the same database transaction."""

    def take(self, session: Session, at: SnapshotId, numbers: Allocation) -> tuple[Allocation, Author]:
        """Take it or raise. The catalog stands at `at`; gives the numbers to use, and what it says."""
        ...

    def stands(self, reader: Database | Session, snapshot: SnapshotId) -> bool:
        """Whether a commit that was in doubt has gone through, and was this one."""
        ...


class StaleBase(ForklakeError):
    """The catalog has moved on since the state that a change was based on was seen."""


def publish(
    database: Database,
    plan: Plan,
    base: Head,
    author: Author,
    *,
    statistics: StatisticsCache,
    rebase: bool = True,
    claim: Claim | None = None,
) -> Published:
    """Commit a plan on top of the catalog's head, or raise `CommitConflict` and write nothing.

    Without leave to `rebase`, anything that was committed since the base raises `StaleBase`.
    """

    def write(session: Session) -> tuple[SnapshotId, Published]:
        only_at = None if rebase else base.snapshot_id
        if _relies_on_others(plan):
            # Before the head is locked, as those do who expire snapshots and remove files.
            share_lineages(session)
        locked = session.lock_head(
            base.catalog_id,
            only_at=only_at,
            catalog_ids=len(plan.new_ids) + spaces_needed(plan.rows),
            file_ids=file_ids_needed(plan.rows) + index_file_ids_needed(plan.index_files),
        )
        if locked is None and not rebase:
            raise StaleBase(f"the catalog has moved on since snapshot {base.snapshot_id}")
        if locked is None:
            raise CatalogNotFound(f"no catalog has the id {base.catalog_id}")
        at, numbers = locked
        recorded = author
        if claim is not None:
            numbers, recorded = claim.take(session, at.snapshot_id, numbers)
        published = _write(session, plan, base, recorded, at, numbers, statistics)
        return published.head.snapshot_id, published

    published = commit_once(database, write, stands=snapshot_exists if claim is None else claim.stands)
    statistics.put(base.catalog_id, published.at, published.head.snapshot_id, published.statistics)
    return published


def _write(
    session: Session,
    plan: Plan,
    base: Head,
    author: Author,
    at: LockedHead,
    numbers: Allocation,
    known: StatisticsCache,
) -> Published:
    if at.end_snapshot is not None:
        raise dropped(session, base.catalog_id)
    _check_in_reach(session, plan, base.catalog_id)
    rebased = at.snapshot_id != base.snapshot_id
    theirs = _check_conflicts(session, plan, base) if rebased else []

    ids = dict(zip(plan.new_ids, numbers.catalog_ids, strict=False))
    head = replace(
        base,
        snapshot_id=numbers.snapshot_id,
        # Rows come and go without touching the structure, and what was read of that stays good.
        schema_version=at.schema_version + _is_restructured(plan),
        # A catalog's times rise with its snapshots, whatever the clocks of its writers say.
        snapshot_time=max(numbers.snapshot_time, at.snapshot_time + _TICK),
    )
    changes = [change.renumbered(lambda old: ids.get(old, old)) for change in plan.changes]
    writes, pairs = _writes(plan, ids, head)
    for table in plan.rows:
        writes.end(table.ended)
    if any(change.verb is Verb.COPY_CATALOG for change in theirs):
        # What was inherited when the plan was made has become the catalog's own.
        writes.own_all()
    writes.send(session)
    burn_columns(
        session, head, [(ids.get(table, table), column, name) for table, column, name in plan.burnt_columns]
    )
    if plan.dropped_tables:
        end_files(session, head, plan.dropped_tables)
    reshaped = sorted({one.object_id for one in changes if one.verb in _RESHAPING and one.detail != SORTED})
    add_schema_versions(session, head, reshaped)
    statistics: dict[TableId, TableStatistics] = {}
    files: GivenIds = {}
    if plan.rows:
        spaces = numbers.catalog_ids[len(plan.new_ids) :]
        statistics, files = write_rows(
            session, plan.rows, head, at.snapshot_id, numbers, lambda old: ids.get(old, old), spaces, known
        )
    if plan.merged is not None:
        adopt(session, plan.merged, plan.rows, head)
    if plan.index_files:
        free = numbers.file_ids[file_ids_needed(plan.rows) :]
        write_index_files(session, head, plan.index_files, free, lambda old: ids.get(old, old), files)
    end_useless_files(session, head, *_useless_index_files(plan, rebased=rebased))
    session.record(record_of(head, numbers, changes, author))
    return Published(head, tuple(pairs), ids, rebased, at.snapshot_id, statistics)


def _useless_index_files(plan: Plan, *, rebased: bool) -> tuple[set[int], set[IndexFileId]]:
    """Tables of which files of indexes may have to end, and those that are replaced."""
    tables = {table.table_id for table in plan.rows if any(key.entity == "data_file" for key in table.ended)}
    tables |= {before.table_id for before, after in plan.pairs if isinstance(before, Index) and after is None}
    # An index that files were added to may be gone by now.
    tables |= {table.table_id for table in plan.index_files if table.replaced or rebased}
    replaced = {file for table in plan.index_files for file in table.replaced}
    return {table for table in tables if table >= 0}, replaced


def _relies_on_others(plan: Plan) -> bool:
    """Whether files become part of the catalog that it did not have, or had no more."""
    return plan.merged is not None or bool(plan.past) or any(change.paths for change in plan.changes)


def _check_in_reach(session: Session, plan: Plan, catalog: CatalogId) -> None:
    """Refuse to take over what may be gone: nobody kept it for us since it was read."""
    if plan.merged is not None and not is_retained(session, plan.merged.source, plan.merged.snapshot):
        raise CommitConflict(
            f"snapshot {plan.merged.snapshot} of catalog {plan.merged.source} was expired meanwhile: "
            "merge it again"
        )
    for snapshot in plan.past:
        check_retained(session, catalog, snapshot)
    imported = {path for change in plan.changes for path in change.paths}
    claimed = claimed_files(session, imported) if imported else set()
    if claimed:
        raise InvalidData(f"{min(claimed)} is being removed as garbage: copy it to another place first")


def _is_restructured(plan: Plan) -> bool:
    """Whether what others have read of the structure is out of date, the ids that columns had included."""
    return bool(plan.pairs or plan.burnt_columns or (plan.merged and plan.merged.reshaped))


def _check_conflicts(session: Session, plan: Plan, base: Head) -> list[Change]:
    """What others did since, if none of it is in the way."""
    if not is_retained(session, base.catalog_id, base.snapshot_id):
        # What others did may be forgotten. Nobody expires snapshots while the head is locked.
        raise CommitConflict(
            f"snapshot {base.snapshot_id}, which this commit is based on, was expired meanwhile: run it again"
        )
    theirs: list[tuple[SnapshotId, Change]] = []
    for snapshot, footprint in footprints_since(session, base.catalog_id, base.snapshot_id):
        if footprint is None:
            raise CommitConflict(
                f"snapshot {snapshot} was written by another program that did not say what it changed: "
                "refresh and run the transaction again"
            )
        theirs += [(snapshot, change) for change in from_footprint(footprint)]
    rules = (*(RULES if plan.merged is None else MERGE_RULES), DROPPED)
    found = conflicts(theirs, plan.changes, rules)
    if found:
        raise conflict_error(found, base.snapshot_id)
    return [change for _, change in theirs]


def _writes(plan: Plan, ids: Mapping[int, int], head: Head) -> tuple[EntityWrites, list[Pair]]:
    """The rows that differ between before and after, and the entities as they will be stored."""
    writes = EntityWrites(head, plan.dropped_rows)
    stored: list[Pair] = []
    fresh = Origin(head.catalog_id, head.snapshot_id)
    for before, draft in plan.pairs:
        after = None if draft is None else renumbered(draft, lambda old: ids.get(old, old))
        old = {} if before is None else entity_rows(before)
        new = {} if after is None else entity_rows(after)
        origins = {} if before is None else origins_of(before)
        writes.end({key: origins[key] for key in old if new.get(key) != old[key]})
        for key, values in new.items():
            if old.get(key) != values:
                writes.begin(key, values)
        if before is None and after is not None and not _has_parts(plan, after):
            writes.add_parts(after)
        if after is not None:
            kept = {key: origin for key, origin in origins.items() if new.get(key) == old.get(key)}
            after = stamped(after, kept, fresh)
        stored.append((before, after))
    return writes, stored


def _has_parts(plan: Plan, entity: Entity) -> bool:
    """Whether the overloads of a macro are there, because the catalog had it before."""
    return isinstance(entity, Macro) and entity.id in plan.returning


def record_of(head: Head, numbers: Allocation, changes: Sequence[Change], author: Author) -> Record:
    """A commit as it is stored."""
    return Record(
        head.catalog_id,
        head.snapshot_id,
        head.snapshot_time,
        head.schema_version,
        numbers.next_catalog_id,
        numbers.next_file_id,
        notation(changes),
        to_footprint(changes),
        author.author,
        author.message,
        author.stored_extra,
    )
