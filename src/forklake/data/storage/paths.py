"""Where data files are: the path that is stored, and the options that never are. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from urllib.parse import unquote, urlsplit

from forklake.errors import InvalidUrl, raise_alone
from forklake.model.names import in_user_folder

S3 = "s3://"
_EXAMPLES = "a folder such as /data/lake, or s3://bucket/prefix"
_OPTIONS = (
    "access_key",
    "secret_key",
    "session_token",
    "anonymous",
    "region",
    "endpoint_override",
    "scheme",
    "allow_bucket_creation",
)
_SECRETS = ("access_key", "secret_key", "session_token")
_TRUTH = {"true": True, "1": True, "false": False, "0": False}


@dataclass(frozen=True, slots=True)
class S3Options:
    """How a bucket is reached. What is None, the AWS library looks for in its usual places."""

    endpoint: str | None = None
    """A server other than Amazon's: host, port, and path if it has one."""
    secure: bool = True
    region: str | None = None
    access_key: str | None = field(default=None, repr=False)
    secret_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)
    anonymous: bool = False
    allow_bucket_creation: bool = False

    def hidden(self, text: str) -> str:
        """A text without the credentials, should it hold any."""
        for secret in (self.secret_key, self.session_token, self.access_key):
            # A very short one would be found in words of the text, and is no secret.
            if secret and len(secret) > 4:
                text = text.replace(secret, "…")
        return text

    def given(self) -> dict[str, str]:
        """The same as options of an address, for another process."""
        known = {
            "access_key": self.access_key,
            "secret_key": self.secret_key,
            "session_token": self.session_token,
            "region": self.region,
            "endpoint_override": self.endpoint,
            "scheme": None if self.endpoint is None else ("https" if self.secure else "http"),
            "anonymous": "true" if self.anonymous else None,
            "allow_bucket_creation": "true" if self.allow_bucket_creation else None,
        }
        return {name: value for name, value in known.items() if value is not None}


def split_data_path(text: str) -> tuple[str, Mapping[str, str]]:
    """A data path as it is stored, and the options that came with it, for this process alone.

    A folder becomes absolute, and leads straight down. A bucket's address loses its query: it may hold
    credentials, and the path is written to the metadata, where everybody sees it. Both end with a slash.
    """
    if not text.strip() or not is_storable(text):
        raise InvalidUrl(f"this is not a place for data files; use {_EXAMPLES}")
    if not text.startswith(S3):
        scheme, found, _ = text.partition("://")
        if found:
            # Never show the address itself: it may hold a password.
            shown = f"on {scheme}://" if scheme.isalnum() else "there"
            raise InvalidUrl(f"data files cannot be kept {shown}; use {_EXAMPLES}")
        if text[:3].lower() == "s3:" or any(f"{name}=" in text for name in _SECRETS):
            raise InvalidUrl("the address of a bucket is s3://bucket/prefix?access_key=…&secret_key=…")
        given = Path(in_user_folder(text))
        # Engines differ in where a path leads that goes up again; without that there is only one answer.
        folder = "/" + str(given.resolve() if ".." in given.parts else given.absolute()).lstrip("/")
        return (folder if folder.endswith("/") else folder + "/"), MappingProxyType({})
    path, _, query = text.partition("?")
    bucket, _, prefix = path.removeprefix(S3).partition("/")
    if "@" in bucket or ":" in bucket:
        raise InvalidUrl("write credentials as options, s3://bucket/prefix?access_key=…&secret_key=…")
    prefix = prefix.rstrip("/")
    if not bucket or not is_plain(bucket) or (prefix and not is_plain(prefix)):
        raise InvalidUrl("the address of a bucket is s3://bucket/prefix, without empty parts, . and ..")
    return f"{S3}{bucket}/{prefix}/" if prefix else f"{S3}{bucket}/", MappingProxyType(_parsed(query))


def s3_options(options: Mapping[str, str], environment: Mapping[str, str]) -> S3Options:
    """Options of an address, completed by the environment."""
    for name in options:
        if name not in _OPTIONS:
            # Where an & stands in a key for itself, a part of the key looks like an option.
            shown = (
                "one of these options" if any(given in options for given in _SECRETS) else f"option {name!r}"
            )
            raise InvalidUrl(
                f"a bucket has no {shown}; it has {', '.join(_OPTIONS)}, and & in a value is written %26"
            )
    if ("access_key" in options) != ("secret_key" in options):
        raise InvalidUrl("the options access_key and secret_key go together")
    # Credentials of two origins do not fit together.
    keys = options if "access_key" in options else _environment_keys(environment)
    anonymous = _truth(options, "anonymous")
    endpoint, secure = _endpoint(options, environment)
    return S3Options(
        endpoint=endpoint,
        secure=secure,
        region=options.get("region")
        or environment.get("AWS_REGION")
        or environment.get("AWS_DEFAULT_REGION")
        or ("us-east-1" if endpoint else None),
        access_key=None if anonymous else keys.get("access_key"),
        secret_key=None if anonymous else keys.get("secret_key"),
        session_token=None if anonymous else keys.get("session_token"),
        anonymous=anonymous,
        allow_bucket_creation=_truth(options, "allow_bucket_creation"),
    )


def is_plain(path: str) -> bool:
    """Whether a path leads down from where it starts, whoever reads it."""
    return not {"", ".", ".."} & set(path.split("/"))


def is_storable(text: str) -> bool:
    """Whether every file system and metadata database can keep this text."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text


def _parsed(query: str) -> dict[str, str]:
    options: dict[str, str] = {}
    for part in filter(None, query.split("&")):
        name, _, value = part.partition("=")
        # A plus stays a plus: secret keys have them, and no value has spaces.
        options[unquote(name)] = unquote(value)
    # Checked here, so that a mistake shows before anything is created.
    s3_options(options, {})
    return options


def _environment_keys(environment: Mapping[str, str]) -> dict[str, str]:
    names = {
        "access_key": "AWS_ACCESS_KEY_ID",
        "secret_key": "AWS_SECRET_ACCESS_KEY",
        "session_token": "AWS_SESSION_TOKEN",
    }
    found = {name: environment[variable] for name, variable in names.items() if environment.get(variable)}
    return found if "access_key" in found and "secret_key" in found else {}


def _endpoint(options: Mapping[str, str], environment: Mapping[str, str]) -> tuple[str | None, bool]:
    text = (
        options.get("endpoint_override")
        or environment.get("AWS_ENDPOINT_URL_S3")
        or environment.get("AWS_ENDPOINT_URL")
    )
    scheme = options.get("scheme", "https")
    if not text:
        return None, scheme != "http"
    try:
        parts = urlsplit(text if "://" in text else f"{scheme}://{text}")
        _ = parts.port
    except ValueError:
        raise_alone(InvalidUrl("an endpoint is written http://host:port"))
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc or parts.query:
        raise InvalidUrl("an endpoint is written http://host:port or https://host, without credentials")
    return parts.netloc + parts.path.rstrip("/"), parts.scheme == "https"


def _truth(options: Mapping[str, str], name: str) -> bool:
    text = options.get(name, "false").lower()
    if text not in _TRUTH:
        raise InvalidUrl(f"the option {name} is true or false")
    return _TRUTH[text]
