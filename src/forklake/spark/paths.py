"""Files as Spark takes and shows them. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from posixpath import normpath
from urllib.parse import quote

from forklake.data.storage.storage import Storage
from forklake.scan.scan_plan import ScanFile

_GLOB = frozenset("{}[]*?\\")
# What Java leaves as it is in the path of a URI, beside letters and digits.
_PLAIN = "/_-!.~'()*,;:$&+=@"


def given(address: str) -> str:
    """A file as `spark.read` takes it: nothing in its name is a pattern."""
    return "".join(f"\\{sign}" if sign in _GLOB else sign for sign in located(address))


def shown(address: str) -> str:
    """A file as `_metadata.file_path` shows it."""
    scheme, _, rest = located(address).partition(":")
    return f"{scheme}:{_encoded(rest.removeprefix('//') if scheme == 'file' else rest)}"


def of_files(storage: Storage, files: Sequence[ScanFile]) -> list[str]:
    """Files of a plan, each as `_metadata.file_path` shows it."""
    return [shown(storage.address(file.path, file.file.path_is_relative)) for file in files]


def located(address: str) -> str:
    """A place as Spark writes it, and writes to it."""
    if address.startswith("s3://"):
        return f"s3a://{address.removeprefix('s3://')}"
    # Java leaves out what leads up again; one slash is enough at the beginning.
    return f"file:///{normpath(address).lstrip('/')}{'/' if address.endswith('/') else ''}"


def _encoded(path: str) -> str:
    return "".join(sign if _stays(sign) else quote(sign, safe=_PLAIN) for sign in path)


def _stays(sign: str) -> bool:
    """Java encodes ASCII, and beyond it only spaces and control characters."""
    return ord(sign) > 0x9F and unicodedata.category(sign) not in ("Zs", "Zl", "Zp")
