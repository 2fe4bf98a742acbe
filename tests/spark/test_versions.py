"""Which versions of Spark are taken."""

from __future__ import annotations

import pytest

import forklake
from forklake.spark.versions import check_version


@pytest.mark.parametrize("version", ["4.0.0", "4.1.4", "4.3.0", "4.4.1", "4.3.0.dev1"])
def test_version_of_this_spark_is_taken(version: str) -> None:
    check_version(version, "Spark")


@pytest.mark.parametrize(
    ("version", "problem"),
    [("3.5.6", "too old"), ("2.4.8", "too old"), ("5.0.0", "too new"), ("10.1", "too new")],
)
def test_other_versions_are_refused_with_those_that_are_taken(version: str, problem: str) -> None:
    with pytest.raises(forklake.MissingDependency, match=f"PySpark {version} is {problem}.*4.0 to 4.3"):
        check_version(version, "PySpark")
