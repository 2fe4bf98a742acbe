"""What programs of merges take back: tables and catalogs become what they were, or a commit is undone.

Both are done where nobody has changed the same rows meanwhile, so that every row has one version that counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tests.property.merge_model import Event

if TYPE_CHECKING:
    from tests.property.merge_programs import Program


NOBODY = -1
"""The last event of a row that two have changed, or that was undone: no more of that."""


class Written(NamedTuple):
    """A commit that changed rows, and what they were before; None is no row."""

    event: int
    table: str
    before: dict[int, int | None]


def restore(run: Program, name: str) -> None:
    """Let a table, or all, be what they were; if nobody has done anything that this catalog missed."""
    known, catalog = run.known[name], run.lake.catalog(name)
    at = run.random.choice(sorted(run.past[name])[-8:])
    then = run.past[name][at]
    tables = sorted(known.rows) if run.random.random() < 0.5 else [run.table_of(name)]
    if not all(knows_all(run, name, table) for table in tables):
        return
    run.say(f"restore {tables} of {name} at {at}")
    if len(tables) > 1:
        catalog.restore(at)
    else:
        catalog.table(tables[0]).restore(at)
    for table in tables:
        old, now = then.live(table), known.live(table)
        values = {key: old.get(key) for key in old.keys() | now.keys() if old.get(key) != now.get(key)}
        # Rows are in the files of then, too.
        event = Event(next(run.numbers), table, "move", frozenset(old.keys() | now.keys()))
        known.write(event, values)
        run.latest |= {(table, key): event.number for key in values}
        if then.columns[table].names != known.columns[table].names:
            run.defined[table] = next(run.numbers)
            event = Event(run.defined[table], table, "definition")
            known.define(event, then.columns[table].names)
    run.committed(name, tables)


def undo(run: Program, name: str) -> None:
    """Take back one of the last commits whose rows nobody has changed since, here or anywhere.

    Who has not seen that commit may go on as if nothing had been, which versions of rows do not tell.
    """
    known = run.known[name]
    found = [
        (snapshot, done)
        for snapshot, done in sorted(run.written[name].items())[-8:]
        if all(known.rows[done.table][key].event == done.event for key in done.before)
        and all(run.latest[done.table, key] == done.event for key in done.before)
    ]
    if not found:
        return
    snapshot, done = run.random.choice(found)
    run.say(f"undo {snapshot} in {done.table} of {name}")
    run.lake.catalog(name).undo(snapshot)
    event = Event(next(run.numbers), done.table, "move", frozenset(done.before))
    known.write(event, dict(done.before))
    run.latest |= dict.fromkeys(((done.table, key) for key in done.before), NOBODY)
    run.committed(name, [done.table])


def knows_all(run: Program, name: str, table: str) -> bool:
    """Whether a catalog knows all that was done to a table anywhere."""
    known = run.known[name]
    return all(not other.unknown_to(known, [table]) for other in run.known.values()) and all(
        key in known.rows[table] and known.rows[table][key].event == event
        for (where, key), event in run.latest.items()
        if where == table
    )


TAKEN_BACK = {"restore": restore, "undo": undo}
