"""Lakes that moved: their files, their metadata, or both."""

from __future__ import annotations

from pathlib import Path

from forklake.data.storage.storage import Storage
from forklake.errors import FileMissing, InvalidArgument
from forklake.fork.paths import refuse_overlap
from forklake.store.backend import Database
from forklake.store.home import ReadOnlyDatabase, former_home, remember_home
from forklake.store.paths import move_files, some_files
from forklake.store.settings import set_setting, setting

_SAMPLE = 20
"""So many of the oldest files are looked for in the new place, and of the newest."""


def guarded(database: Database, data_path: str) -> Database:
    """The database, or one that can only be read if it was copied or moved and nobody has said which."""
    before = former_home(database)
    if before is None:
        return _with_files(database, data_path)
    return ReadOnlyDatabase(
        database,
        f"the metadata at {database.url} were copied or moved: they were at {before}, and what is written "
        f"would go to {data_path}, beside what the original writes. If the lake moved, say so once: "
        "`forklake --lake URL moved`, or connect(…, moved=True). For a copy, copy the files too, and add "
        "their data path to that. Reading works in any case",
    )


def _with_files(database: Database, data_path: str) -> Database:
    """The database, or one that can only be read if the folder of its files is gone."""
    if "://" in data_path or Path(data_path).exists() or not some_files(database, 1):
        return database
    return ReadOnlyDatabase(
        database,
        f"the files of the lake were in {data_path}, which is not there: put them back, or say where they "
        "are now, once: `forklake --lake URL moved --data-path PATH`, or connect(…, data_path=…, moved=True)",
    )


def files_beside(stored: str, beside: str | None) -> str:
    """Where the files of a lake that moved are: where they were, or in the folder that moved with it."""
    is_gone = "://" not in stored and not Path(stored).exists()
    return beside if beside is not None and is_gone and Path(beside).is_dir() else stored


def move(database: Database, storage: Storage, *, force: bool) -> None:
    """Note that the lake is at home here, and that its files are in this storage."""
    former, present = setting(database, "data_path"), storage.data_path
    if not force:
        _check_files(database, storage)
        if present == former:
            _check_original(database, present)
    home = database.home()
    with database.transaction() as session:
        if present != former:
            refuse_overlap(session, present)
            set_setting(session, "data_path", present)
            if former is not None:
                move_files(session, former, present)
        remember_home(session, home)
        session.commit()


def _check_original(database: Database, data_path: str) -> None:
    """Refuse a copy that would write where the original writes: their files would get the same ids."""
    before = former_home(database)
    if before is not None and Path(before).is_file():
        raise InvalidArgument(
            f"the original of {database.url} is still at {before}, and both would write to {data_path}: "
            "remove it if the lake moved; for a copy, copy the files too and give their data path; or pass "
            'moved="force" (on the command line --force)'
        )


def _check_files(database: Database, storage: Storage) -> None:
    """Refuse a place that does not have the lake's files: some of the oldest, and of the newest."""
    paths = some_files(database, _SAMPLE)
    missing: list[str] = []
    for path in dict.fromkeys(paths):
        try:
            storage.info(path)
        except FileMissing:
            missing.append(path)
    if missing:
        raise FileMissing(
            f"{len(missing)} of {len(set(paths))} files of the lake that were looked for are not in "
            f'{storage.data_path}, such as {missing[0]}: copy them there first, or pass moved="force" '
            "(on the command line --force) if that is known"
        )


def check_moved(moved: object) -> None:
    """Refuse what says neither yes nor no."""
    if not (isinstance(moved, bool) or moved == "force"):
        raise InvalidArgument(f'moved is True, False or "force", not {moved!r}')
