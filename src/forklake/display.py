"""How values are shown to people: text that no terminal obeys, and HTML that no browser obeys. Pure.

Names and values come from anywhere. Whatever is put together here is escaped here, and bounded: a value shows
so many rows, and a cell so many characters, whatever there is.
"""

from __future__ import annotations

import reprlib
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from html import escape
from itertools import islice
from typing import Any, TypeVar

MOST_ROWS = 20
"""How many rows of a list are shown."""
MOST_LISTED = 3
"""How many of the texts or numbers that stand in one cell."""
MOST_CHARACTERS = 200
"""How much of one value is shown."""
_LONGEST_MESSAGE = 2000

T = TypeVar("T")

# Marks that turn the direction of the text around them, and so could make one name look like another.
_TURNS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_CELL = "text-align:left;vertical-align:top;white-space:pre-wrap"

_short = reprlib.Repr()
_short.maxstring = _short.maxother = _short.maxlong = MOST_CHARACTERS
_short.maxlist = _short.maxtuple = _short.maxdict = _short.maxset = _short.maxfrozenset = MOST_ROWS


def literal(text: str) -> str:
    """Text as it is, except that what a terminal would obey rather than show is written as an escape."""
    return "".join(_escaped(character) if _obeyed(character) else character for character in text)


def _obeyed(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") or character in _TURNS


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def short_time(time: datetime) -> str:
    """A time to the minute, in UTC."""
    return time.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


def cell(value: object) -> str:
    """A value as a short text on one line: plain, not yet escaped for HTML."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case str():
            text = str(value)
        case datetime():
            text = value.isoformat(sep=" ", timespec="seconds")
        case set() | frozenset():
            some = ", ".join(_short.repr(one) for one in islice(value, MOST_LISTED))
            text = some + _and_more(len(value) - MOST_LISTED)
        case _:
            # Bounded inside too: a list of a million values is not written out to be cut.
            text = _short.repr(value)
    cut = text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}…"
    return literal(cut)


def html_text(value: object) -> str:
    """A value as HTML that shows it and does nothing else."""
    return escape(cell(value), quote=True)


def html_message(text: str) -> str:
    """A sentence, which may be longer than a value."""
    return f"<div>{escape(literal(text[:_LONGEST_MESSAGE]), quote=True)}</div>"


def html_title(kind: str, name: object = "") -> str:
    """The first line: what it is, and what it is called."""
    return f"<div><b>{html_text(kind)}</b> {html_text(name)}</div>"


def html_record(values: Mapping[str, object]) -> str:
    """Names and values below each other, leaving out what is not set."""
    rows = [
        f'<tr><th style="{_CELL}">{html_text(name)}</th><td style="{_CELL}">{html_text(value)}</td></tr>'
        for name, value in values.items()
        if value is not None and value != () and value != ""
    ]
    return f"<table>{''.join(rows)}</table>" if rows else ""


def html_table(names: Sequence[str], rows: Iterable[Sequence[object]], total: int) -> str:
    """Rows below the names of their columns; how many there are more of is said at the end."""
    shown = list(islice(rows, MOST_ROWS))
    if not shown:
        return ""
    head = "".join(f'<th style="{_CELL}">{html_text(name)}</th>' for name in names)
    body = "".join(
        "<tr>" + "".join(f'<td style="{_CELL}">{html_text(value)}</td>' for value in row) + "</tr>"
        for row in shown
    )
    more = total - len(shown)
    note = f"<div>… {more:,} more</div>" if more > 0 else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{note}"


def html_list(values: Sequence[Any], title: str | None = None) -> str:
    """Values of one class as a table of their fields; columns in which nothing is set are left out."""
    if not values:
        return ""
    shown = values[:MOST_ROWS]
    names = [name for name in _names(shown[0]) if any(_is_set(getattr(one, name, None)) for one in shown)]
    rows = [[_brief(getattr(one, name, None)) for name in names] for one in shown]
    heading = "" if title is None else f"<div><b>{html_text(title)}</b> ({len(values):,})</div>"
    return heading + html_table(names, rows, len(values))


def html_value(value: Any) -> str:
    """A frozen value: its plain fields below each other, then a table for each list of values in it."""
    names = _names(value)
    nested = {name: found for name in names if _is_list(found := getattr(value, name))}
    plain = {name: _brief(getattr(value, name)) for name in names if name not in nested}
    tables = [html_list(found, title=name) for name, found in nested.items()]
    return html_title(type(value).__name__) + html_record(plain) + "".join(tables)


def _names(value: Any) -> Sequence[str]:
    """What is shown of a value: what its class says, or the fields that are not its own, and not called."""
    shown: Sequence[str] | None = getattr(type(value), "_SHOWN", None)
    if shown is not None:
        return shown
    return [field.name for field in fields(value) if field.compare and not field.name.startswith("_")]


def _and_more(number: int) -> str:
    return f", … {number:,} more" if number > 0 else ""


def _is_set(value: object) -> bool:
    return value is not None and value not in ((), frozenset(), "")


def _is_list(value: object) -> bool:
    return isinstance(value, tuple) and bool(value) and is_dataclass(value[0])


def _brief(value: Any) -> object:
    """What a field shows: values that are inside say what they are in their own words."""
    if isinstance(value, tuple) and value and all(isinstance(one, str) for one in value[:MOST_LISTED]):
        return ", ".join(value[:MOST_LISTED]) + _and_more(len(value) - MOST_LISTED)
    if isinstance(value, tuple | frozenset) and not value:
        return None
    if isinstance(value, tuple | list) and len(value) > MOST_ROWS:
        return f"{len(value):,} values"
    if is_dataclass(value) and not isinstance(value, type):
        if type(value).__str__ is not object.__str__:
            return str(value)
        inner = {name: getattr(value, name) for name in _names(value)}
        return ", ".join(f"{name}: {cell(one)}" for name, one in inner.items() if _is_set(one))
    return value


class Shown:
    """A frozen value that notebooks show as tables of its fields."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        """For notebooks."""
        return html_value(self)


class Listing(list[T]):
    """A list of values that notebooks show as a table; in all else it is a list."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        """For notebooks."""
        return html_list(self) or "<div>(none)</div>"
