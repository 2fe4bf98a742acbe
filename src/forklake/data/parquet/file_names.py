"""Files of a table and of its indexes that we wrote ourselves, told by their names. Pure."""

from __future__ import annotations

import re

from forklake.model.index import INDEX_PREFIX

SPARK_FOLDER = "spark-"
"""What Spark writes is in a folder of its own that begins like this, under names that Spark gives."""

_OURS = re.compile(
    r"(?:.*/)?(?:(?:delete-)?[0-9a-f-]{32,36}(?:-\w+)*-\d+(?:-deletes)?\.parquet"
    rf"|{SPARK_FOLDER}[0-9a-f]{{12,32}}/(?:\w+=[^/]*/)*part-\d+-[0-9a-f-]{{36}}[^/]*\.parquet"
    rf"|{INDEX_PREFIX}[0-9a-f-]{{32,36}}(?:-\w+)*-\d+\.\w+)"
)


def is_ours(path: str, relative: bool) -> bool:
    """Whether a file is one that is written once, with the names that its table had then."""
    return relative and _OURS.fullmatch(path) is not None
