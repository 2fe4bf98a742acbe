"""What Tab proposes at the prompt: keywords, and the names that the catalog has now."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from prompt_toolkit.completion import Completer, Completion

from forklake.api.scoped import scope_of
from forklake.cli.backslash import COMMANDS
from forklake.errors import ForklakeError
from forklake.model.names import quoted
from forklake.sql.functions.registry import FUNCTIONS
from forklake.sql.parser.keywords import NO_NAMES

if TYPE_CHECKING:
    from prompt_toolkit.completion import CompleteEvent
    from prompt_toolkit.document import Document

    from forklake.cli.backslash import PromptState

_WORD = re.compile(r"[\w.\"\\]*\Z")
_PLAIN = re.compile(r"[a-z_][a-z0-9_]*\Z")
_MORE = re.findall(
    r"\w+",
    """
    ADD ALTER BEGIN BIGINT BOOLEAN CALL CATALOG CHECKPOINT COMMENT COMMIT COPY DATE DELETE DOUBLE DROP EXISTS
    EXPLAIN FORK IF INDEX INSERT INTEGER INTERVAL MACRO MATCHED MERGE PARTITIONED RENAME REPLACE RESET
    ROLLBACK SCHEMA SET SORTED TIMESTAMP TRUNCATE TYPE UPDATE USE UUID VALUES VARCHAR VERSION VIEW
    """,
)
_KEYWORDS = sorted({*NO_NAMES, *_MORE})
_MOST_COLUMNS = 5_000
"""A catalog with more of them is searched no further: Tab answers at once."""


class SqlCompleter(Completer):
    """Proposes what begins with the word before the cursor."""

    def __init__(self, state: PromptState) -> None:
        """The session may become another one."""
        self._state = state

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Words in the case in which one was begun, names as they are."""
        before = document.text_before_cursor
        found = _WORD.search(before)
        word = "" if found is None else found[0]
        for proposal in self._proposals(word, before):
            yield Completion(proposal, start_position=-len(word))

    def _proposals(self, word: str, before: str) -> Iterator[str]:
        if before.startswith("\\") and " " not in before:
            yield from (one for one in COMMANDS if one.startswith(before))
            return
        if not word:
            return
        known = dict.fromkeys(self._names(before))
        yield from (name for name in known if _begins(name, word))
        is_lower = word == word.lower()
        words = [*_KEYWORDS, *(name.upper() for name in FUNCTIONS)]
        yield from (one.lower() if is_lower else one for one in words if _begins(one, word))

    def _names(self, before: str) -> Iterator[str]:
        """Tables, views, schemas and columns; those of the tables that the statement names come first."""
        session = self._state.session
        try:
            if session.handle is None:
                yield from (_written(info.name) for info in session.lake.catalogs())
                return
            draft = scope_of(session.work).read()
            tables = draft.tables()
            words = {word.lower() for word in re.findall(r"\w+", before)}
            named = [table for table in tables if table.name.lower() in words]
            for table in named:
                yield from (_written(column.name) for column in draft.table(table.id).columns)
            for schema in draft.schemas():
                yield _written(schema.name)
            for item in (*tables, *session.work.views()):
                if item.schema.lower() == session.schema.lower():
                    yield _written(item.name)
                yield f"{_written(item.schema)}.{_written(item.name)}"
            left = _MOST_COLUMNS
            for table in tables:
                columns = draft.table(table.id).columns
                left -= len(columns)
                if left < 0:
                    return
                yield from (_written(column.name) for column in columns)
        except ForklakeError:
            # There is nothing to propose, and the next statement says why.
            return


def _begins(name: str, word: str) -> bool:
    return name.lower().startswith(word.lower()) and name.lower() != word.lower()


def _written(name: str) -> str:
    return name if _PLAIN.match(name) and name.upper() not in NO_NAMES else quoted(name)
