"""Several files as one segment: a plain tar, whose first member says what the others are.

A tar is read with any tool, and each member lies in it as it is: its bytes can be mapped into memory.
"""

from __future__ import annotations

import io
import json
import re
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forklake.errors import UnreadableIndex
from forklake.index.kind import SegmentFile
from forklake.lazy.numpy import np

_MANIFEST = "manifest.json"
_NAME = re.compile(r"[\w-]+(\.[\w-]+)*")

Content = bytes | Path
"""What a member holds: bytes, or those of a file."""


@dataclass(frozen=True, slots=True)
class Format:
    """How segments of a kind are laid out; a version is read by code of that version and newer."""

    name: str
    version: int


@dataclass(frozen=True, slots=True)
class Archive:
    """A segment on the local disk, and where in it everything is."""

    key: str
    path: Path
    manifest: Mapping[str, Any]
    members: Mapping[str, tuple[int, int]]
    """Offset and size by name."""

    def array(self, name: str, dtype: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
        """A member as an array that is mapped into memory; `UnreadableIndex` if it has another size."""
        offset, size = self.members.get(name, (0, -1))
        if size != np.dtype(dtype).itemsize * int(np.prod(shape, dtype=np.int64)):
            raise torn(self.key, f"{name} is not as large as it should be")
        if size == 0:
            return np.empty(shape, dtype)
        return np.memmap(self.path, dtype, "r", offset, shape)


def torn(key: str, why: str) -> UnreadableIndex:
    """The error for a segment that is not what was written."""
    return UnreadableIndex(f"the index file {key} is damaged ({why}): drop and create the index again")


def write_archive(
    out: Path, format: Format, manifest: Mapping[str, object], members: Mapping[str, Content]
) -> None:
    """Write a segment. The same content makes the same bytes."""
    sizes = {
        name: len(content) if isinstance(content, bytes) else content.stat().st_size
        for name, content in members.items()
    }
    head = {"format": format.name, "format_version": format.version, **manifest, "members": sizes}
    with tarfile.open(out, "w", format=tarfile.GNU_FORMAT) as tar:
        _add(tar, _MANIFEST, json.dumps(head).encode())
        for name, content in members.items():
            _add(tar, name, content)


def _add(tar: tarfile.TarFile, name: str, content: Content) -> None:
    info = tarfile.TarInfo(name)
    info.mode = 0o644
    if isinstance(content, bytes):
        info.size = len(content)
        tar.addfile(info, io.BytesIO(content))
        return
    info.size = content.stat().st_size
    with content.open("rb") as stream:
        tar.addfile(info, stream)


def open_archive(file: SegmentFile, format: Format) -> Archive:
    """A segment of this format; `UnreadableIndex` if it is torn, newer, or something else."""
    if file.facts.format == format.name and file.facts.format_version > format.version:
        # Before its bytes are fetched: of a newer format, even what they are may have changed.
        raise _newer(file.key, format, file.facts.format_version)
    path = file.local()
    try:
        with tarfile.open(path, "r:") as tar:
            members = {info.name: (info.offset_data, info.size) for info in tar if info.isfile()}
        offset, size = members.pop(_MANIFEST)
        with path.open("rb") as stream:
            stream.seek(offset)
            manifest = json.loads(stream.read(size))
        whole = path.stat().st_size
    except FileNotFoundError as error:
        raise UnreadableIndex(f"the index file {file.key} is not there any more") from error
    except (tarfile.TarError, KeyError, ValueError) as error:
        raise torn(file.key, str(error)) from error
    if not isinstance(manifest, dict) or manifest.get("format") != format.name:
        raise torn(file.key, f"it is not of the format {format.name}")
    if manifest.get("format_version") != format.version:
        raise _newer(file.key, format, manifest.get("format_version"))
    sizes = manifest.get("members")
    if sizes != {name: size for name, (_, size) in members.items()} or any(
        offset + size > whole for offset, size in members.values()
    ):
        raise torn(file.key, "its end is missing")
    if not all(_NAME.fullmatch(name) for name in members):
        raise torn(file.key, "it has a member with a strange name")
    return Archive(file.key, path, manifest, members)


def _newer(key: str, format: Format, version: object) -> UnreadableIndex:
    return UnreadableIndex(
        f"the index file {key} has version {version} of the format {format.name}, and this forklake reads "
        f"version {format.version}: install the newer forklake that wrote it"
    )
