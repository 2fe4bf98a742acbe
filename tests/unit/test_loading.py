"""What takes long to load is loaded by those who use it: modules are listed here, and no seconds counted."""

from __future__ import annotations

import pickle
import sys
from types import ModuleType

import pytest

from forklake.lazy import LazyModule
from tests.loaded import HEAVY, loaded, of_forklake


def test_importing_forklake_loads_no_package_and_few_modules() -> None:
    modules = loaded("import forklake")
    assert modules & HEAVY == set()
    assert of_forklake(modules) == {"forklake", "forklake.errors", "forklake.lazy", "forklake.version"}


@pytest.mark.parametrize(
    ("program", "packages"),
    [
        ("forklake.connect", set[str]()),
        ("forklake.Lake; forklake.Catalog; forklake.Table; forklake.Transaction", set[str]()),
        ("for name in forklake.__all__: getattr(forklake, name)", set[str]()),
        ("for name in forklake.distributed.__all__: getattr(forklake.distributed, name)", set[str]()),
        ("forklake.ColumnSpec('a', 'INT')", {"sqlglot"}),
    ],
)
def test_names_are_loaded_without_the_packages_behind_them(program: str, packages: set[str]) -> None:
    assert loaded(f"import forklake\n{program}") & HEAVY == packages


def test_whoever_lists_catalogs_loads_nothing_that_reads_rows(tmp_path: object) -> None:
    modules = loaded(
        "import sys, forklake\n"
        "with forklake.connect(sys.argv[1], create=True) as lake:\n"
        "    assert lake.catalogs() == []",
        f"sqlite:///{tmp_path}/lake.db",
    )
    assert modules & HEAVY == set()
    parts = {name.split(".")[1] for name in of_forklake(modules) if "." in name}
    assert parts.isdisjoint({"engine", "scan", "compact", "distributed", "commit", "context", "cli", "spark"})


def test_the_help_of_the_command_line_loads_no_engine() -> None:
    program = "import sys\nfrom forklake.cli import main\nsys.argv[0] = 'forklake'\nmain()"
    assert loaded(program, "--help") & HEAVY <= {"rich", "typer"}
    assert loaded(program, "--version") & HEAVY <= {"rich", "typer"}


@pytest.mark.parametrize(
    "module",
    [
        "forklake.spark.source.source",
        "forklake.spark.source.batch_read",
        "forklake.spark.source.batch_write",
        "forklake.spark.source.stream_write",
        "forklake.spark.workers",
        "forklake.spark.task_writes",
        "forklake.spark.dml",
    ],
)
def test_a_worker_of_spark_loads_nothing_that_commits(module: str) -> None:
    before = loaded("import pyspark.worker, pyspark.sql.datasource")
    modules = loaded(f"import pyspark.worker, pyspark.sql.datasource\nimport {module}") - before
    assert modules & HEAVY <= {"numpy", "pyarrow"}
    parts = {name.split(".")[1] for name in of_forklake(modules) if "." in name}
    assert parts.isdisjoint({"cli", "commit", "compact", "context", "demo"})
    assert modules.isdisjoint({"forklake.api.catalog", "forklake.spark.catalog", "forklake.spark.sessions"})


def test_a_lazy_module_loads_at_first_use_and_pickles_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    lazy = LazyModule("colorsys")
    assert "colorsys" not in sys.modules
    assert repr(lazy) == "<lazy module 'colorsys'>"
    assert lazy.rgb_to_hsv(0, 0, 0) == (0.0, 0.0, 0)
    assert repr(lazy) == "<lazy module 'colorsys', loaded>"
    # What somebody puts into the module is seen, and what it does not have is said as for any module.
    monkeypatch.setattr(sys.modules["colorsys"], "rgb_to_hsv", "patched")
    assert lazy.rgb_to_hsv == "patched"
    with pytest.raises(AttributeError, match="module 'colorsys' has no attribute 'nothing'"):
        _ = lazy.nothing
    found = pickle.loads(pickle.dumps(lazy))  # noqa: S301
    assert isinstance(found, ModuleType) and found.__name__ == "colorsys"


def test_a_package_that_is_missing_is_said_at_first_use() -> None:
    lazy = LazyModule("no_such_package")
    with pytest.raises(ModuleNotFoundError, match="No module named 'no_such_package'"):
        _ = lazy.anything
