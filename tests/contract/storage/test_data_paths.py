"""Data paths and their credentials: stored in one form, read from options or the environment, never shown."""

from __future__ import annotations

import traceback
from pathlib import Path
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

import forklake
from forklake import InvalidUrl, StorageError
from forklake.data.storage.paths import s3_options
from forklake.data.storage.storage import Storage, open_storage, split_data_path
from tests.contract.storage.files import paths, write
from tests.moto_server import ACCESS_KEY, SECRET_KEY, S3Server


def test_a_missing_bucket_is_told_or_made(s3_server: S3Server) -> None:
    url = s3_server.url("not-there", "lake")
    with pytest.raises(StorageError, match="there is no such bucket: create it"):
        write(open_storage(url), "a")
    with pytest.raises(StorageError, match="there is no such bucket"):
        paths(open_storage(url))
    made = open_storage(url, {"allow_bucket_creation": "true"})
    write(made, "a")
    assert paths(made) == ["a"]


def test_the_environment_tells_how_to_reach_a_bucket(
    s3_server: S3Server, monkeypatch: pytest.MonkeyPatch, no_credentials: None
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3_server.endpoint)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
    monkeypatch.setenv("AWS_SESSION_TOKEN", "a-token-for-tests")
    storage = open_storage(f"s3://{s3_server.new_bucket()}")
    write(storage, "a")
    assert paths(storage) == ["a"]
    assert storage.s3.options.session_token == "a-token-for-tests"
    assert storage.s3.region == "us-east-1"


def test_options_win_over_the_environment() -> None:
    environment = {
        "AWS_ENDPOINT_URL": "http://env:1",
        "AWS_REGION": "env-1",
        "AWS_ACCESS_KEY_ID": "env",
        "AWS_SECRET_ACCESS_KEY": "env",
        "AWS_SESSION_TOKEN": "env",
    }
    found = s3_options(
        {"endpoint_override": "https://ours/s3/", "region": "r", "access_key": "k", "secret_key": "s"},
        environment,
    )
    assert (found.endpoint, found.secure, found.region) == ("ours/s3", True, "r")
    assert (found.access_key, found.secret_key, found.session_token) == ("k", "s", None)
    assert s3_options({"anonymous": "true"}, environment).access_key is None
    assert s3_options({"endpoint_override": "ours:9", "scheme": "http"}, {}).secure is False
    half = {"AWS_ACCESS_KEY_ID": "env", "AWS_SESSION_TOKEN": "env"}
    assert s3_options({}, half).session_token is None


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("/data/lake", "/data/lake/"),
        ("/data/lake/", "/data/lake/"),
        ("/data/what?x=1", "/data/what?x=1/"),
        ("/", "/"),
        ("//data/./lake//", "/data/lake/"),
        ("/nowhere/../data/lake", "/data/lake/"),
        ("lake/..", f"{Path.cwd().resolve()}/"),
        ("lake", f"{Path.cwd()}/lake/"),
        ("s3://bucket", "s3://bucket/"),
        ("s3://bucket/", "s3://bucket/"),
        ("s3://bucket/a/b", "s3://bucket/a/b/"),
        ("s3://bucket/a/b//", "s3://bucket/a/b/"),
        ("s3://bucket/a b/ü%20?region=x", "s3://bucket/a b/ü%20/"),
    ],
)
def test_a_data_path_is_stored_in_one_form(text: str, stored: str) -> None:
    assert split_data_path(text)[0] == stored
    assert split_data_path(stored) == (stored, {})
    assert open_storage(text).data_path == stored
    assert open_storage(text).address("a/b") == f"{stored}a/b"


_keys = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=5)


@given(_keys, _keys)
def test_options_are_read_as_they_were_written_and_never_stored(access_key: str, secret_key: str) -> None:
    given_options = {"access_key": access_key, "secret_key": secret_key, "region": "eu-west-1"}
    encoded = urlencode(
        given_options, quote_via=lambda text, *_: "".join(f"%{byte:02x}" for byte in text.encode())
    )
    stored, options = split_data_path(f"s3://bucket/lake?{encoded}")
    assert (stored, dict(options)) == ("s3://bucket/lake/", given_options)


def test_a_plus_in_a_key_stays_a_plus() -> None:
    _, options = split_data_path("s3://bucket?access_key=A&secret_key=a+b/c==")
    assert options == {"access_key": "A", "secret_key": "a+b/c=="}


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "a\0b",
        "gs://bucket/hunter2",
        "http://user:hunter2@host/x",
        "file:///hunter2",
        "s3a://bucket/hunter2",
        "s3://",
        "s3:///hunter2",
        "s3://key:hunter2@bucket/x",
        "s3://bucket/a//hunter2",
        "s3://bucket/../hunter2",
        "s3://bucket?password=hunter2",
        "s3://bucket?access_key=hunter2",
        "s3://bucket?secret_key=hunter2",
        "s3://bucket?anonymous=maybe",
        "s3://bucket?endpoint_override=http://user:hunter2@host",
        "s3://bucket?endpoint_override=ftp://hunter2",
        "s3://bucket?endpoint_override=http://host:hunter2",
    ],
)
def test_a_data_path_that_cannot_be_used_is_refused_without_showing_it(text: str) -> None:
    for attempt in (split_data_path, open_storage):
        with pytest.raises(InvalidUrl) as caught:
            attempt(text)
        assert "hunter2" not in str(caught.value)


def test_credentials_do_not_show(bucket: Storage, s3_server: S3Server) -> None:
    shown = [repr(bucket), repr(bucket.s3.options), bucket.address("a"), bucket.data_path]
    wrong = open_storage(s3_server.url("never-made"))
    for attempt in (lambda: wrong.read_bytes("a"), lambda: list(wrong.files()), lambda: write(wrong, "a")):
        with pytest.raises(StorageError) as caught:
            attempt()
        shown.append(f"{caught.value!r} {caught.value.__cause__!r}")
    assert not [text for text in shown if SECRET_KEY in text or ACCESS_KEY in text]


def test_credentials_in_the_words_of_others_are_hidden(bucket: Storage) -> None:
    with pytest.raises(StorageError) as caught, bucket.open_output("a"):
        raise OSError(f"the signature of {ACCESS_KEY} by {SECRET_KEY} is wrong")
    shown = "".join(traceback.format_exception(caught.value))
    assert "the signature of … by … is wrong" in shown
    assert f"by {SECRET_KEY}" not in shown


def test_data_paths_in_the_folder_of_a_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path)
    with forklake.connect("sqlite:///~/lake.db", data_path="~/files", create=True) as lake:
        assert lake.data_path == f"{tmp_path}/home/files/"
        lake.create_catalog("c").create_table("t", "n BIGINT").append([{"n": at} for at in range(1000)])
        fork = lake.fork("c", "f", data_path="~/forks/f")
        fork.table("t").append([{"n": at} for at in range(1000)])
    with forklake.connect(f"sqlite:///{tmp_path}/home/lake.db", data_path=Path("~/files")) as lake:
        assert lake.catalog("f").table("t").count() == 2000
        with pytest.raises(InvalidUrl, match="no folder of a user"):
            lake.fork("c", "g", data_path="~nobody_is_called_so/f")
        # A folder that is called so is meant if it does not begin with it.
        lake.fork("c", "h", data_path="./~")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home"]
    assert sorted(path.name for path in (tmp_path / "home").iterdir()) == ["files", "forks", "lake.db"]


def test_the_folder_of_a_new_lake_is_there_for_files_of_others(tmp_path: Path) -> None:
    folder = tmp_path / "far" / "data"
    with forklake.connect(f"sqlite:///{tmp_path}/a.db", data_path=folder, create=True):
        assert folder.is_dir()


def test_a_lake_is_not_begun_where_its_files_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    url = f"sqlite:///{tmp_path}/a.db"
    with pytest.raises(StorageError, match="taken"):
        forklake.connect(url, data_path=tmp_path / "taken" / "data", create=True)
    with forklake.connect(url, data_path=tmp_path / "data", create=True) as lake:
        assert lake.data_path == f"{tmp_path}/data/"
