"""What catalogs hold, in memory: versions of rows by key, and which commits each catalog knows.

No key is used twice, and every commit is an event with a number of its own. Of two versions of a row, the
later one was written by somebody who knew the other; where neither knew the other, they are in conflict.
A row that was restored to what the other side knows was not changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

Live = dict[str, dict[int, int]]
"""Tables by name, and their values by key."""


class Event(NamedTuple):
    """What a commit did to one table."""

    number: int
    table: str
    is_special: bool = False
    """Whether it defined the table, or was decided upon all of its rows."""


class Version(NamedTuple):
    """What an event made of a row or a table; None if it is gone."""

    event: Event
    value: int | None
    before: Version | None = None
    """What it was until then."""
    again: tuple[Version | None] | None = None
    """The version that was restored; None in it for a row that was not there."""

    @property
    def origin(self) -> Event | None:
        """The event that first made it so."""
        if self.again is None:
            return self.event
        return None if self.again[0] is None else self.again[0].origin

    def follows(self, other: Version | None) -> bool:
        """Whether it was made of another version, or of none."""
        before: Version | None = self
        while before is not None and (other is None or before.event != other.event):
            before = before.before
        return before is not self and (before is None) == (other is None)

    def is_news(self, events: frozenset[Event]) -> bool:
        """Whether it differs from what those know who know some events; undone changes do not."""
        known: Version | None = self
        while known is not None and known.event not in events:
            known = known.before
        return known is not self and self.origin != (None if known is None else known.origin)


@dataclass(slots=True)
class State:
    """What a catalog knows at a snapshot. It is never changed: a commit makes another one."""

    events: frozenset[Event] = frozenset()
    tables: dict[str, Version] = field(default_factory=dict[str, Version])
    rows: dict[str, dict[int, Version]] = field(default_factory=dict[str, dict[int, Version]])
    _live: Live | None = None

    def live(self) -> Live:
        """What can be read."""
        if self._live is None:
            self._live = {
                name: {key: row.value for key, row in self.rows[name].items() if row.value is not None}
                for name, table in self.tables.items()
                if table.value is not None
            }
        return self._live

    def written(self, event: Event, values: Mapping[int, int | None]) -> State:
        """With other values of some rows, or without them."""
        before = self.rows.get(event.table, {})
        return self._with(
            event, {key: Version(event, value, before.get(key)) for key, value in values.items()}
        )

    def _with(self, event: Event, versions: Mapping[int, Version]) -> State:
        rows = {**self.rows.get(event.table, {}), **versions}
        return State(self.events | {event}, self.tables, {**self.rows, event.table: rows})

    def defined(self, event: Event, *, exists: bool) -> State:
        """With a table, or without it."""
        table = event.table
        tables = {**self.tables, table: Version(event, 1 if exists else None)}
        return State(self.events | {event}, tables, {table: {}, **self.rows})

    def updated(self, event: Event, values: Mapping[int, int | None]) -> State:
        """With other values of those of some rows that are there."""
        there = self.live().get(event.table, {})
        return self.written(event, {key: value for key, value in values.items() if key in there})

    def touched(self, event: Event) -> State:
        """With something done to a table that leaves its rows as they are."""
        return State(self.events | {event}, self.tables, self.rows)

    def restored(self, event: Event, past: State) -> State:
        """With a table as it was before."""
        now, then = self.live().get(event.table, {}), past.live().get(event.table, {})
        before, past_rows = self.rows.get(event.table, {}), past.rows.get(event.table, {})
        versions = {
            key: Version(event, then.get(key), before.get(key), (past_rows.get(key),))
            for key in now.keys() | then.keys()
            if now.get(key) != then.get(key)
        }
        return self._with(event, versions)

    def only_since(self, before: State) -> Event | None:
        """The event that came since, if it was one and changed rows alone."""
        events = self.events - before.events
        (event,) = events if len(events) == 1 else (None,)
        return None if event is None or event.is_special or self.tables != before.tables else event

    def is_as_left_by(self, event: Event, then: State) -> bool:
        """Whether there are rows that an event changed, and they are as they were then."""
        table = event.table
        rows, now = then.rows.get(table, {}), self.rows.get(table, {})
        keys = [key for key, version in rows.items() if version.event == event]
        is_there = table in self.live() and self.tables[table] == then.tables[table]
        return is_there and bool(keys) and all(now[key] is rows[key] for key in keys)

    def undone(self, event: Event, done: Event) -> State:
        """With the rows that an event changed as they were before."""
        versions = {
            key: Version(event, before and before.value, version, (before,))
            for key, version in self.rows[done.table].items()
            if version.event == done
            for before in [version.before]
        }
        return self._with(event, versions)

    def contested(self, source: State) -> Iterator[tuple[Version, Version]]:
        """Versions of rows and tables that both changed, neither knowing of the other."""
        for mine, yours in ((self.tables, source.tables), *self._common(source)):
            for key, theirs in yours.items():
                ours = mine.get(key)
                if ours and theirs.is_news(self.events) and ours.is_news(source.events):
                    yield ours, theirs

    def may_refuse(self, source: State) -> bool:
        """Whether what is done in a table here may be in the way of what was done there."""
        theirs, ours = source.events - self.events, self.events - source.events
        met = {event.table for event in theirs} & {event.table for event in ours}
        special = {event.table for event in theirs | ours if event.is_special}
        return bool(met & special) or any(self.contested(source))

    def differs(self, source: State) -> bool:
        """Whether they made different things of any: nobody may pass over these."""
        return any(ours.value != theirs.value for ours, theirs in self.contested(source))

    def _common(self, source: State) -> list[tuple[dict[int, Version], dict[int, Version]]]:
        return [(self.rows[name], rows) for name, rows in source.rows.items() if name in self.rows]

    def merged(self, source: State) -> State:
        """With all that another one knows."""
        news = {name: table for name, table in source.tables.items() if table.event not in self.events}
        tables, rows = {**self.tables, **news}, dict(self.rows)
        for name, versions in source.rows.items():
            mine = self.rows.get(name, {})
            # Where nothing was done here, what was undone there is known from now on, and told to others.
            found = {
                key: row
                for key, row in versions.items()
                if row.is_news(self.events) or row.follows(mine.get(key))
            }
            rows[name] = {**mine, **found}
        return State(self.events | source.events, tables, rows)


@dataclass(slots=True)
class CatalogModel:
    """A catalog with its history, as far as it is retained."""

    id: int
    name: str
    state: State
    history: dict[int, State]
    times: dict[int, datetime]
    root: int
    """The catalog that all of its relatives descend from."""
    expires: datetime | None = None
    dropped: datetime | None = None
    may_be_forgotten: bool = False
    """Whether it was dropped, and what was dropped then has been expired."""

    @property
    def head(self) -> int:
        return max(self.history)

    def commit(self, snapshot: int, time: datetime, state: State) -> None:
        """Go on to another state."""
        self.state = self.history[snapshot] = state
        self.times[snapshot] = time

    def forked(self, id: int, name: str, at: int, own: int, time: datetime) -> CatalogModel:
        """A fork that begins at one of the snapshots."""
        history = {snapshot: state for snapshot, state in self.history.items() if snapshot <= at}
        times = {snapshot: self.times[snapshot] for snapshot in history}
        made = CatalogModel(id, name, history[at], history, times, self.root)
        made.commit(own, time, history[at])
        return made

    def keep(self, snapshots: Iterable[int]) -> None:
        """Expire all but some snapshots."""
        kept = set(snapshots)
        self.history = {snapshot: state for snapshot, state in self.history.items() if snapshot in kept}

    def expirable(self, before: datetime, keep_last: int, floor: int | None) -> set[int]:
        """The snapshots before a time, but for the last ones and those that something was begun from."""
        candidates = sorted(self.history)[:-keep_last]
        return {
            snapshot
            for snapshot in candidates
            if self.times[snapshot] < before and (floor is None or snapshot < floor)
        }
