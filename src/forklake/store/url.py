"""The URL of a lake's metadata. Pure.

A URL may hold a password, and one that was written wrongly may hold it anywhere. So errors never quote
what was given, except where it is certain that the password stands elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from forklake.errors import InvalidUrl
from forklake.model.names import in_user_folder

EXAMPLES = "sqlite:///lake.db, duckdb:///lake.duckdb or postgresql://user@host:5432/db"
SECRET_OPTIONS = frozenset(
    {"password", "sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key"}
)
"""Options of PostgreSQL's client that nobody may see."""
POOLER_OPTIONS = ("pool_mode", "prepared_statements")
"""What a URL may say of a pooler in front of PostgreSQL."""

_ESCAPE = (
    "write each of %:/?#[]@ and spaces in a user name or a password as a percent code, such as %40 for @; "
    "urllib.parse.quote(password, safe='') does it"
)
_OPTIONS = {
    "sqlite": frozenset[str](),
    "duckdb": frozenset({"metadata_schema"}),
    "postgresql": frozenset({"metadata_schema", "pool_size", *POOLER_OPTIONS}),
}
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")
_NO_CODE = re.compile(r"%(?![0-9A-Fa-f]{2})|%00")
_HOST = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]*)(:(?P<port>[0-9]{0,9}))?")


@dataclass(frozen=True, slots=True)
class LakeUrl:
    """Where a lake's metadata is."""

    kind: str
    path: Path | None
    """The file of an embedded database."""
    conninfo: str | None = field(repr=False)
    """What PostgreSQL's client needs to connect."""
    options: Mapping[str, str]


def parse_url(url: str) -> LakeUrl:
    """Read a URL; the error for one that cannot be read shows how they look."""
    problem = _problem(url)
    if problem is not None:
        raise InvalidUrl(f"this is not the URL of a lake{problem}; use {EXAMPLES}")
    scheme = url.partition("://")[0].lower()
    kind = "postgresql" if scheme == "postgres" else scheme
    if kind not in _OPTIONS:
        raise InvalidUrl(f"{scheme}: is no kind of lake; use {EXAMPLES}")
    if kind == "postgresql":
        return _server(url.partition("://")[2])
    return _file(kind, url)


def _problem(url: object) -> str | None:
    """What is wrong with a URL of any kind, or None."""
    if not isinstance(url, str):
        return f" (it is {type(url).__name__}, not a string)"
    if any(character.isspace() and character != " " for character in url):
        return " (it holds a line break or tab)"
    if not _is_storable(url):
        return " (it holds a NUL character or half of a surrogate pair)"
    scheme, slashes, _ = url.partition("://")
    if slashes and _SCHEME.fullmatch(scheme):
        return None
    known = url.partition(":")[0].lower()
    return f" (two slashes follow {known}:)" if known in (*_OPTIONS, "postgres") else ""


def _file(kind: str, url: str) -> LakeUrl:
    try:
        parts = urlsplit(url)
        query = parse_qsl(parts.query, keep_blank_values=True)
    except ValueError:
        parts, query = None, []
    if parts is None:
        raise InvalidUrl(f"this is not the URL of a lake; use {EXAMPLES}")
    ours = {name: value for name, value in query if name in _OPTIONS[kind]}
    others = [name for name, _ in query if name not in ours]
    if others:
        hint = ": SQLite has no schemas, use one file for each lake" if others[0] == "metadata_schema" else ""
        # What follows a ? in a password is no option: somebody took this for the URL of a server.
        named = "@" not in parts.query and ":" not in (parts.netloc or parts.path)
        option = f"option {others[0]!r}" if named else "such option"
        raise InvalidUrl(f"{kind} URLs have no {option}{hint}")
    name = unquote(parts.path).removeprefix("/")
    if parts.fragment and not parts.netloc and ":" not in parts.path:
        raise InvalidUrl(f"write %23 for the # in a file name: {kind}:///{quote(name)}%23…")
    is_file = bool(name) and not name.endswith("/") and ":memory:" not in name and _is_storable(name)
    if parts.netloc or parts.fragment or not is_file:
        raise InvalidUrl(
            f"this does not name a file: write {kind}:///relative/path or {kind}:////absolute/path"
        )
    return LakeUrl(kind, Path(in_user_folder(name)).absolute(), None, ours)


def _server(rest: str) -> LakeUrl:
    """What follows `postgresql://`: user, password, hosts, database and options.

    A password ends at the one @, before any slash or question mark: otherwise a part of it would be taken for
    a host, a database or an option, and be shown.
    """
    before, at, after = rest.partition("@")
    if "@" in after or "#" in rest or (at and any(mark in before for mark in "/?")) or _NO_CODE.search(rest):
        raise InvalidUrl(f"PostgreSQL's URL cannot be read: {_ESCAPE}")
    hosts = re.split("[/?]", after if at else before, maxsplit=1)[0]
    if not all(map(_is_host, hosts.split(","))):
        raise InvalidUrl(
            "PostgreSQL's URL cannot be read: it is postgresql://user:password@host:port/database, "
            f"where the port is a number; {_ESCAPE}"
        )
    place, _, query = rest.partition("?")
    given = parse_qsl(query, keep_blank_values=True)
    ours = {name: value for name, value in given if name in _OPTIONS["postgresql"]}
    others = [(name, value) for name, value in given if name not in ours]
    query_left = f"?{urlencode(others, quote_via=quote)}" if others else ""
    return LakeUrl("postgresql", None, f"postgresql://{place}{query_left}", ours)


def _is_host(text: str) -> bool:
    found = _HOST.fullmatch(text)
    return found is not None and int(found["port"] or 0) < 65536


def unreadable(conninfo: str, known: Set[str]) -> InvalidUrl:
    """The error for a URL that PostgreSQL's client does not understand; it `known`s some options."""
    place, _, query = conninfo.partition("?")
    names = [name for name, _ in parse_qsl(query, keep_blank_values=True)]
    unknown = [name for name in names if name not in known]
    # Where an & stands in a password for itself, or the host was left out, a part of it looks like an option.
    certain = "@" in place or ":" not in place.partition("://")[2]
    if unknown and certain and not set(names) & SECRET_OPTIONS:
        return InvalidUrl(f"PostgreSQL URLs have no option {unknown[0]!r}")
    return InvalidUrl(f"PostgreSQL's URL cannot be read, or it has an unknown option: {_ESCAPE}")


def file_url(kind: str, path: Path) -> str:
    """The URL of an embedded database, as `parse_url` reads it back."""
    return f"{kind}:///{quote(str(path))}"


def _is_storable(name: str) -> bool:
    return "\0" not in name and not any("\ud800" <= character <= "\udfff" for character in name)
