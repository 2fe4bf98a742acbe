"""What some of the versions of Spark that forklake runs on do not have."""

from __future__ import annotations

from importlib.util import find_spec

from pyspark.sql import datasource, types
from pyspark.version import __version__

HAS_TIME = hasattr(types, "TimeType")
"""Whether there is a type for TIME."""
HAS_ADMISSION = find_spec("pyspark.sql.streaming.datasource") is not None
"""Whether a stream can be told how much a batch takes."""
HAS_STREAM_WRITER = hasattr(datasource, "DataSourceStreamArrowWriter")
"""Whether a data source gets the rows of a stream as Arrow."""


def needs(what: str, since: str) -> str:
    """What to say of something that this version lacks."""
    return f"{what} needs Spark {since} or newer, and this is {__version__}"
