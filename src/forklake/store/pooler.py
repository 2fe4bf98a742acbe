"""What stands between a client and the processes of a PostgreSQL server.

A pooler such as PgBouncer in transaction mode gives a connection any server process for each transaction:
what it has set or prepared before is lost, and other clients meet it. Two things are found out when a
connection is opened, unless its URL says them: whether it has a server process of its own
(`pool_mode=session` or `transaction`), and whether it may run what it has prepared in later transactions
(`prepared_statements=on` or `off`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from forklake.errors import InvalidUrl
from forklake.store.libpq import PreparedQuery, Wire

_MODES = {"session": True, "transaction": False}
_SWITCH = {"on": True, "off": False}


@dataclass(frozen=True, slots=True)
class Pooler:
    """What a URL says of a pooler; None is found out."""

    own_process: bool | None = None
    """Whether each connection has a server process of its own."""
    tracks_statements: bool | None = None
    """Whether the pooler prepares a connection's statements wherever they run."""

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Pooler:
        """Read the options of a URL."""
        return cls(_choice(options, "pool_mode", _MODES), _choice(options, "prepared_statements", _SWITCH))

    def set_up(
        self, wire: Wire, settings: Mapping[str, str], statements: Mapping[str, PreparedQuery]
    ) -> None:
        """Give a new connection its settings: for its life, or if it shares, in each transaction."""
        given = {"names": list(settings), "values": list(settings.values())}
        own = self.own_process is not False and self._set_for_session(wire, given, statements)
        if not own:
            wire.settings = statements["set_for_transaction"], given
        if self.tracks_statements is not None:
            wire.prepares = self.tracks_statements
        else:
            wire.prepares = own or not wire.keeps_names(statements["prepared_under"])

    def _set_for_session(
        self, wire: Wire, given: Mapping[str, object], statements: Mapping[str, PreparedQuery]
    ) -> bool:
        """Set what is for life, if the connection has a server process of its own."""
        known = {"own": self.own_process is True, "pid": wire.process}
        return bool(wire.read(statements["set_for_session"], {**given, **known}))


def _choice(options: Mapping[str, str], name: str, choices: Mapping[str, bool]) -> bool | None:
    text = options.get(name)
    if text is None:
        return None
    if text not in choices:
        raise InvalidUrl(f"{name} must be {' or '.join(choices)}, or be left out to find it out")
    return choices[text]
