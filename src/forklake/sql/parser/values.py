"""Options and single values in statements."""

from __future__ import annotations

import re

from forklake.sql.parser.reader import Reader
from forklake.sql.statements import Fragment, Options

_COMMENT = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|(--[^\r\n]*|/\*.*?\*/)", re.DOTALL)


def options(reader: Reader) -> Options:
    """`(name = value, name)` in brackets: what has no value is true."""
    return reader.list(lambda: _option(reader))


def option_names(reader: Reader) -> tuple[str, ...]:
    """`(name, name)` in brackets."""
    return reader.list(lambda: _option_name(reader))


def _option(reader: Reader) -> tuple[str, object]:
    name = _option_name(reader)
    return name, value(reader) if reader.take("=") else True


def _option_name(reader: Reader) -> str:
    name = reader.label("the name of an option")
    while reader.take("."):
        name += "." + reader.label()
    return name


def value(reader: Reader) -> object:
    """A number, a string, a word that stands for one, TRUE, FALSE, NULL, or a parameter."""
    if reader.kind in ("string", "escaped", "dollar"):
        return reader.string()
    if reader.kind == "parameter":
        return reader.single()
    if reader.kind == "number" or reader.word in ("-", "+"):
        return _number(reader)
    if reader.kind not in ("word", "quoted"):
        raise reader.expected("a value")
    word = reader.label()
    return {"true": True, "false": False, "null": None}.get(word.lower(), word)


def _number(reader: Reader) -> int | float:
    negative = reader.take("-")
    if not negative:
        reader.take("+")
    if reader.kind != "number":
        raise reader.expected("a number")
    digits = reader.token.replace("_", "").lower()
    reader.next()
    number = float(digits) if set(digits) & set(".e") else int(digits)
    return -number if negative else number


def plain(part: Fragment) -> str:
    """The text of a part without comments."""
    if "--" not in part.text and "/*" not in part.text:
        return part.text
    return _COMMENT.sub(lambda found: " " if found[1] else found[0], part.text).strip()
