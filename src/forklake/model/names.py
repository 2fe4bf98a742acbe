"""Names of things: what may be one, and how a dotted name is read."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from forklake.errors import InvalidArgument, InvalidName, InvalidUrl

MAX_NAME_LENGTH = 255

_PLAIN = re.compile(r"[^\W\d]\w*\Z", re.ASCII)
_QUOTED = re.compile(r'"((?:[^"]|"")*)"')
_FOLDER_OF_FORK = re.compile(r"[^/:]+\.\d+/")
_FOLDER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}\Z")


def check_name(name: object, what: str) -> str:
    """Return a name as it is, or refuse it: nothing may be called that."""
    if not isinstance(name, str):
        raise InvalidName(f"the name of a {what} must be a string, not {type(name).__name__}")
    if not name.strip():
        raise InvalidName(f"a {what} needs a name: {name!r} is empty")
    if len(name) > MAX_NAME_LENGTH:
        raise InvalidName(
            f"the name of a {what} may have {MAX_NAME_LENGTH} characters; {name[:20]!r}… has {len(name)}"
        )
    # Control characters and lone surrogates cannot be stored, or not be typed, on every backend.
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in name):
        raise InvalidName(f"the name of a {what} may not hold control characters: {name!r}")
    return name


def check_text(text: object, what: str) -> str:
    """Return a text as it is, or refuse it: not every backend could store it."""
    if not isinstance(text, str):
        raise InvalidArgument(f"the {what} must be a string, not {type(text).__name__}")
    if any(character == "\0" or "\ud800" <= character <= "\udfff" for character in text):
        raise InvalidArgument(f"the {what} may not hold NUL characters or lone surrogates")
    return text


def quoted(name: str) -> str:
    """A name as SQL and DuckLake's change notation write it: always in double quotes."""
    return '"' + name.replace('"', '""') + '"'


def folder_for(name: str, unique: str) -> str:
    """A folder for a thing of this name; a name that no file system takes safely gets its uuid instead."""
    return f"{name}/" if _FOLDER.match(name) else f"{unique}/"


def folder_of_fork(name: str, unique: str, catalog: int) -> str:
    """The folder of a fork. No other catalog ever has it, whatever its name: tables are told apart by it."""
    return f"{folder_for(name, unique)[:-1]}.{catalog}/"


def folders_of_forks(paths: Iterable[str]) -> set[str]:
    """The folders of forks in which some files below the data path are; those of others have no dot."""
    return {found[0] for path in paths if (found := _FOLDER_OF_FORK.match(path)) is not None}


def own_folder(data_path: str, folder: str) -> str:
    """Where a catalog writes files of a table: below its own folder, also if it inherited the table's."""
    return folder if folder.startswith(data_path) else data_path + "/".join(folder.split("/")[-3:])


def is_absolute(path: str) -> bool:
    """Whether a stored path leads out of the data path of the lake, as those of a fork with its own do."""
    return path.startswith("/") or "://" in path


@dataclass(frozen=True, slots=True, order=True)
class QualifiedName:
    """The name of a table, view or macro inside a catalog."""

    schema: str
    name: str

    @classmethod
    def parse(
        cls, name: str | tuple[str, str] | QualifiedName, what: str = "table", *, schema: str = "main"
    ) -> Self:
        """Read `orders`, `sales.orders`, `"odd.schema"."t"` or a pair; a bare name is in `schema`."""
        if isinstance(name, QualifiedName):
            parts = (name.schema, name.name)
        elif isinstance(name, tuple):
            parts = name
        else:
            parts = split_name(name, what)
        if len(parts) == 1:
            parts = (schema, parts[0])
        if len(parts) != 2:
            raise InvalidName(
                f'{name!r} has too many parts: a {what} is named "schema.{what}"; '
                "put double quotes around a part that holds a dot, as in 'sales.\"a.b\"'"
            )
        return cls(check_name(parts[0], "schema"), check_name(parts[1], what))

    def __str__(self) -> str:
        """The name as `parse` reads it back."""
        return ".".join(part if _PLAIN.match(part) else quoted(part) for part in (self.schema, self.name))


def split_name(text: object, what: str) -> tuple[str, ...]:
    """Split at dots outside double quotes; a part that starts with a quote is read as SQL would."""
    if not isinstance(text, str):
        raise InvalidName(
            f"the name of a {what} must be a string or a sequence of parts, not {type(text).__name__}"
        )
    parts: list[str] = []
    position = 0
    while True:
        if text.startswith('"', position):
            match = _QUOTED.match(text, position)
            if match is None or (match.end() < len(text) and text[match.end()] != "."):
                raise InvalidName(f"the quotes in the {what} name {text[:80]!r} do not match")
            parts.append(match.group(1).replace('""', '"'))
            position = match.end()
        else:
            end = text.find(".", position)
            end = len(text) if end < 0 else end
            parts.append(text[position:end])
            position = end
        if position >= len(text):
            return tuple(parts)
        position += 1


def in_user_folder(path: str) -> str:
    """A local path with `~` or `~name` at its beginning replaced by the folder of that user."""
    if not path.startswith("~"):
        return path
    expanded = os.path.expanduser(path)  # noqa: PTH111 - a Path would drop what makes ./~ another name
    if expanded == path:
        user = path.partition("/")[0]
        raise InvalidUrl(f"there is no folder of a user {user}: write ./{user} for a folder of that name")
    return expanded
