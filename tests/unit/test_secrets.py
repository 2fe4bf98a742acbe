"""Passwords and keys: however they were written into an address, no text tells them."""

from __future__ import annotations

import io
import logging
import re
import socket
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

import forklake
from forklake.data.storage.storage import open_storage, split_data_path
from forklake.errors import ForklakeError, InvalidUrl, raise_alone
from forklake.store.url import parse_url
from tests.unit.command_line import run

# Letters that no message is written with, and every mark that means something in an address.
PASSWORDS = st.text("QZXJ789" * 2 + "%?@[]/#&=:+,. é\n\t\0", min_size=4, max_size=24)
calm = settings(max_examples=150, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def closed_port() -> Iterator[int]:
    """A port of this machine where nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@pytest.fixture(autouse=True)
def loopback_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """No name is looked up outside this machine."""
    real = socket.getaddrinfo

    def looked_up(host: Any, *others: Any, **options: Any) -> Any:
        if host not in ("127.0.0.1", "::1", None):
            raise socket.gaierror(socket.EAI_NONAME, "no such host")
        return real(host, *others, **options)

    monkeypatch.setattr(socket, "getaddrinfo", looked_up)


@contextmanager
def logged() -> Iterator[io.StringIO]:
    """Everything that anybody logs."""
    text = io.StringIO()
    handler, root = logging.StreamHandler(text), logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        yield text
    finally:
        root.removeHandler(handler)
        root.setLevel(before)


def told_by(error: BaseException) -> str:
    """All that an error and those it came from say."""
    seen: list[BaseException] = []

    def walk(found: BaseException | None) -> None:
        if found is not None and found not in seen:
            seen.append(found)
            walk(found.__cause__)
            walk(found.__context__)

    walk(error)
    texts = [text for found in seen for text in (str(found), repr(found), repr(found.args))]
    return "\n".join((*texts, *traceback.format_exception(error)))


def pieces(secret: str, elsewhere: str) -> set[str]:
    """Every four characters of a secret that stand nowhere else, and are more than marks."""
    found = {secret[at : at + 4] for at in range(len(secret) - 3)}
    return {piece for piece in found if len(re.findall("[A-Z0-9]", piece)) > 1 and piece not in elsewhere}


def refuse_to_tell(work: Callable[[], object], secret: str, elsewhere: str) -> ForklakeError | None:
    """Run what may fail, and look for pieces of the secret in all that is said."""
    failure: ForklakeError | None = None
    with logged() as log:
        try:
            told = repr(work())
        except ForklakeError as error:
            failure = error
            told = told_by(error)
    told += log.getvalue()
    leaked = {piece for piece in pieces(secret, elsewhere) if piece in told or repr(piece)[1:-1] in told}
    assert not leaked, told
    return failure


URLS = [
    "postgresql://user:SECRET@127.0.0.1:PORT/db",
    "postgresql://user:SECRET@127.0.0.1:PORT/db?metadata_schema=s&pool_size=3",
    "postgresql://user:SECRET@127.0.0.1:PORT/db?nonsense=1",
    "postgresql://user:SECRET@127.0.0.1:PORT",
    "postgresql://user:SECRET@127.0.0.1:noport/db",
    "postgresql://user:SECRET@127.0.0.1,[::1]:PORT/db",
    "postgresql://user:SECRET@[::1/db",
    "postgresql://user:SECRET@",
    "postgresql://user:SECRET@/db?host=127.0.0.1&port=PORT",
    "postgresql://:SECRET@127.0.0.1:PORT/db",
    "postgresql://user:SECRET",
    "postgresql://user:SECRET/db",
    "postgresql://127.0.0.1:PORT/db?user=u&password=SECRET",
    "postgresql://127.0.0.1:PORT/db?password=SECRET&connect_timeout=3",
    "postgresql://127.0.0.1:PORT/db?sslpassword=SECRET",
    "postgresql:/user:SECRET@127.0.0.1:PORT/db",
    "postgresql:user:SECRET@127.0.0.1:PORT/db",
    "postgresql//user:SECRET@127.0.0.1:PORT/db",
    "postgres://user:SECRET@127.0.0.1:PORT/db",
    "user:SECRET@127.0.0.1:PORT/db",
    "host=127.0.0.1 password=SECRET",
    "mysql://user:SECRET@127.0.0.1:PORT/db",
    "sqlite://user:SECRET@127.0.0.1:PORT/db",
    "duckdb:user:SECRET@127.0.0.1:PORT/db",
    " postgresql://user:SECRET@127.0.0.1:PORT/db",
]


def url_of(form: str, password: str, port: int) -> str:
    if "@" not in form or "/db?" in form:
        # Without an @, digits behind the name of a host are a port, and what follows is a database.
        assume(not re.match(r"\d*([/?]|$)", password))
    return form.replace("PORT", str(port)).replace("SECRET", password)


@calm
@given(st.sampled_from(URLS), PASSWORDS)
@example("sqlite://user:SECRET@127.0.0.1:PORT/db", "QQQQ?ZZZZ")
@example("duckdb:user:SECRET@127.0.0.1:PORT/db", "QQQQ?ZZZZ=JJJJ")
@example("sqlite://user:SECRET@127.0.0.1:PORT/db", "QQQQ/ZZZZ#JJJJ")
@example(URLS[0], "QQQQ%ZZZZ")
@example(URLS[0], "QQQQ?ZZZZ")
@example(URLS[0], "QQQQ@ZZZZ")
@example(URLS[0], "QQQQ[ZZZZ")
@example(URLS[0], "QQQQ]ZZZZ")
@example(URLS[0], "QQQQ/ZZZZ")
@example(URLS[0], "7777/ZZZZ")
@example(URLS[0], "7777?ZZZZ=JJJJ")
@example(URLS[0], "QQQQ#ZZZZ")
@example(URLS[0], "QQQQ ZZZZ")
@example(URLS[0], "QQQQ,ZZZZ")
@example(URLS[0], "QQQQ℀ZZZZ")
@example(URLS[0], "QQQQ\ud800ZZZZ")
@example(URLS[12], "QQQQ&ZZZZ")
@example(URLS[12], "QQQQ&ZZZZ=JJJJ")
def test_no_error_tells_a_password(closed_port: int, form: str, password: str) -> None:
    url = url_of(form, password, closed_port)
    elsewhere = form.replace("SECRET", "").replace("PORT", str(closed_port))
    failure = refuse_to_tell(lambda: forklake.connect(url), password, elsewhere)
    assert failure is not None
    refuse_to_tell(lambda: parse_url(url), password, elsewhere)


@calm
@given(PASSWORDS)
def test_a_password_that_is_written_rightly_is_used_and_not_told(closed_port: int, password: str) -> None:
    assume("\0" not in password)
    url = f"postgresql://user:{quote(password, safe='')}@127.0.0.1:{closed_port}/db"
    failure = refuse_to_tell(lambda: forklake.connect(url), password, "")
    assert not isinstance(failure, InvalidUrl)
    refuse_to_tell(lambda: parse_url(url), password, "")


@settings(calm, max_examples=30)
@given(st.sampled_from(URLS), PASSWORDS)
def test_the_command_line_tells_no_password(closed_port: int, form: str, password: str) -> None:
    url = url_of(form, password, closed_port)
    elsewhere = form.replace("SECRET", "").replace("PORT", str(closed_port))
    with logged() as log:
        result = run("--lake", url, "catalogs")
    assert result.exit_code != 0
    told = result.stdout + result.stderr + log.getvalue()
    assert not {piece for piece in pieces(password, elsewhere) if piece in told}, told


def test_an_address_that_cannot_be_read_says_how_to_write_a_password() -> None:
    for mark in "%?@/#":
        with pytest.raises(InvalidUrl, match="percent code"):
            parse_url(f"postgresql://user:a{mark}b@host/db")
    with pytest.raises(InvalidUrl, match="port is a number"):
        parse_url("postgresql://host:five/db")
    with pytest.raises(InvalidUrl, match="no option 'nonsense'"):
        forklake.connect("postgresql://user:pw@127.0.0.1/db?nonsense=1")


def test_a_lake_on_a_server_with_a_password_shows_none(postgres_schema_url: str, tmp_path: Path) -> None:
    mark = "&" if "?" in postgres_schema_url else "?"
    url = f"{postgres_schema_url}{mark}password=QQQQ%2BZZZZ"
    with forklake.connect(url, data_path=tmp_path / "files", create=True) as lake:
        for shown in (repr(lake), lake.url, str(lake), repr(lake.create_catalog("c"))):
            assert "QQQQ" not in shown
            assert "ZZZZ" not in shown


DATA_PATHS = [
    "s3://bucket/prefix?access_key=AK&secret_key=SECRET",
    "s3://bucket/prefix?access_key=AK&secret_key=SECRET&region=r",
    "s3://bucket/prefix?secret_key=SECRET",
    "s3://bucket/prefix?access_key=AK&secret=SECRET",
    "s3://bucket/prefix?access_key=AK&secret_key=SECRET&nonsense=1",
    "s3://bucket/prefix?access_key=AK&secret_key=SECRET&anonymous=perhaps",
    "s3://bucket/prefix?access_key=AK&secret_key=SECRET&endpoint_override=http://host:port",
    "s3://bucket/prefix?endpoint_override=http://AK:SECRET@host",
    "s3://AK:SECRET@bucket/prefix",
    "s3://AK:SECRET@bucket",
    "s3a://AK:SECRET@bucket/prefix",
    "AK:SECRET@s3://bucket/prefix",
    "s3:/bucket/prefix?access_key=AK&secret_key=SECRET",
    "S3://bucket/prefix?access_key=AK&secret_key=SECRET",
    "s3:bucket?secret_key=SECRET",
    "bucket?secret_key=SECRET",
    "s3://?secret_key=SECRET",
    "s3://bucket/../x?secret_key=SECRET",
]


@calm
@given(st.sampled_from(DATA_PATHS), PASSWORDS)
@example(DATA_PATHS[0], "QQQQ&ZZZZ")
@example(DATA_PATHS[0], "QQQQ&ZZZZ=JJJJ")
@example(DATA_PATHS[8], "QQQQ/ZZZZ")
@example(DATA_PATHS[8], "QQQQ?ZZZZ")
@example(DATA_PATHS[0], "QQQQ\ud800ZZZZ")
def test_no_error_tells_the_keys_of_a_bucket(form: str, key: str) -> None:
    path = form.replace("SECRET", key)
    elsewhere = form.replace("SECRET", "")
    refuse_to_tell(lambda: (split_data_path(path)[0], open_storage(path)), key, elsewhere)


def test_an_error_that_is_raised_alone_has_no_past() -> None:
    with pytest.raises(InvalidUrl) as caught:
        try:
            raise ValueError("secret")
        except ValueError:
            raise_alone(InvalidUrl("no"))
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)
