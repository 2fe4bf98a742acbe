"""What `import forklake` offers is what it says it offers."""

from __future__ import annotations

import ast
import importlib
import inspect
from pathlib import Path
from types import ModuleType

import pytest

import forklake
import forklake.spark
from forklake import errors

PROMISED = [
    "MetadataNotFound",
    "UnsupportedVersion",
    "CatalogNotFound",
    "CatalogExists",
    "SchemaNotFound",
    "TableNotFound",
    "TableExists",
    "ColumnNotFound",
    "SnapshotNotFound",
    "InvalidSchemaChange",
    "InvalidPredicate",
    "InvalidData",
    "DataPathOverlap",
    "CommitConflict",
    "MergeConflict",
    "ReservationExpired",
    "ReservationConsumed",
    "MissingDependency",
]


@pytest.mark.parametrize("package", [forklake, forklake.distributed, forklake.spark])
def test_everything_in_all_is_there_and_nothing_else_is_public(package: ModuleType) -> None:
    for name in package.__all__:
        assert getattr(package, name) is not None
    modules = {name for name in dir(package) if inspect.ismodule(getattr(package, name))}
    assert set(dir(package)) - modules == set(package.__all__)
    assert len(set(package.__all__)) == len(package.__all__)
    with pytest.raises(AttributeError, match=f"module '{package.__name__}' has no attribute 'Nothing'"):
        _ = package.Nothing


@pytest.mark.parametrize("package", [forklake, forklake.distributed, forklake.spark])
def test_type_checkers_see_what_is_loaded_at_first_use(package: ModuleType) -> None:
    tree = ast.parse(Path(str(package.__file__)).read_text(encoding="utf-8"))
    checked = {
        alias.asname or alias.name: (node.module, alias.name)
        for branch in tree.body
        if isinstance(branch, ast.If)
        for node in branch.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert checked
    for name, (module, original) in checked.items():
        assert getattr(package, name) is getattr(importlib.import_module(str(module)), original)


def test_every_promised_error_is_a_forklake_error() -> None:
    for name in PROMISED:
        assert issubclass(getattr(forklake, name), forklake.ForklakeError)


def test_every_exception_is_in_the_tree_at_the_top_of_its_file_and_is_exported() -> None:
    source = Path(errors.__file__).read_text(encoding="utf-8")
    classes = {node.name for node in ast.parse(source).body if isinstance(node, ast.ClassDef)}
    tree = ast.get_docstring(ast.parse(source)) or ""
    assert {name for name in classes if name not in tree} == set()
    assert classes <= set(forklake.__all__)


def test_every_public_method_has_a_docstring() -> None:
    for kind in (forklake.Lake, forklake.Catalog, forklake.Transaction, forklake.Table):
        for name, member in inspect.getmembers(kind):
            if not name.startswith("_"):
                assert inspect.getdoc(member), f"{kind.__name__}.{name}"


def test_a_transaction_has_the_verbs_of_a_catalog() -> None:
    catalog_only = {
        "at",
        "snapshots",
        "transaction",
        "diff",
        "materialize",
        "reservations",
        "fork",
        "merge_into",
        "replay",
        "checkpoint",
        "expire",
    }
    catalog_only |= {"begin_distributed", "commit_distributed", "cancel_distributed"}
    verbs = {
        name
        for name, _ in inspect.getmembers(forklake.Catalog, inspect.isfunction)
        if not name.startswith("_")
    }
    assert verbs - catalog_only <= set(dir(forklake.Transaction))


def test_the_package_is_typed() -> None:
    assert (Path(forklake.__file__).parent / "py.typed").exists()
