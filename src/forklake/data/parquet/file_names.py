"""Files of a table that we wrote ourselves, told by their names. Pure."""

from __future__ import annotations

import re

SPARK_FOLDER = "spark-"
"""What Spark writes is in a folder of its own that begins like this, under names that Spark gives."""

_OURS = re.compile(
    r"(?:.*/)?(?:(?:delete-)?[0-9a-f-]{32,36}(?:-\w+)*-\d+(?:-deletes)?"
    rf"|{SPARK_FOLDER}[0-9a-f]{{12,32}}/(?:\w+=[^/]*/)*part-\d+-[0-9a-f-]{{36}}[^/]*)\.parquet"
)


def is_ours(path: str, relative: bool) -> bool:
    """Whether a file is one that is written once, with the names that its table had then."""
    return relative and _OURS.fullmatch(path) is not None
