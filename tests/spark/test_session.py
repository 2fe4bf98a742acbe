"""Sessions: the Java they run on, what is set on them, and Spark Connect."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from forklake.errors import InvalidArgument, MissingDependency
from forklake.spark import SparkCatalog, paths, session
from forklake.spark.java import java_home, version_of
from forklake.spark.sessions import SETTINGS


def program(folder: Path, text: str, **environment: str) -> str:
    script = folder / "program.py"
    script.write_text(textwrap.dedent(text))
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_where_no_java_is_installed_that_of_a_package_is_started_without_a_module_it_lacks(
    tmp_path: Path,
) -> None:
    home = java_home({"PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)})
    assert tmp_path in home.parents
    assert version_of(home) == 21
    assert java_home({"PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}) == home
    command = [str(home / "bin" / "java"), "--add-modules=jdk.incubator.vector", "-Dx=a b", "-version"]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0


def test_a_java_that_is_too_old_is_passed_over(tmp_path: Path) -> None:
    old = tmp_path / "old" / "bin" / "java"
    old.parent.mkdir(parents=True)
    old.write_text("#!/bin/sh\necho 'openjdk version \"11.0.1\"' >&2\n")
    old.chmod(0o755)
    assert version_of(tmp_path / "old") == 11
    environment = {"JAVA_HOME": str(tmp_path / "old"), "PATH": "", "XDG_CACHE_HOME": str(tmp_path)}
    assert version_of(java_home(environment)) == 21
    assert version_of(tmp_path) == 0


def test_without_java_and_the_package_it_is_said_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("forklake.spark.java.find_spec", lambda name: None)
    with pytest.raises(MissingDependency, match=r"pip install '.*\[spark\]'"):
        java_home({"PATH": str(tmp_path)})


def test_forklake_alone_does_not_import_pyspark(tmp_path: Path) -> None:
    program(tmp_path, "import forklake, sys; assert not [m for m in sys.modules if m.startswith('pyspark')]")


def test_without_pyspark_it_is_said_what_to_install(tmp_path: Path) -> None:
    text = """
        import importlib.util, sys
        known = importlib.util.find_spec
        importlib.util.find_spec = lambda name, *more: None if name == "pyspark" else known(name, *more)
        try:
            import forklake.spark
        except Exception as error:
            print(type(error).__name__, error)
    """
    assert "MissingDependency PySpark is not installed" in program(tmp_path, text)


def test_a_session_that_runs_gets_what_is_missing(spark: SparkSession) -> None:
    name = "spark.sql.parquet.fieldId.read.enabled"
    spark.conf.set(name, "false")
    assert session() is not None
    assert {key: spark.conf.get(key) for key in SETTINGS} == SETTINGS
    with pytest.raises(InvalidArgument, match="session"):
        SparkCatalog(None, None)  # type: ignore[arg-type]


def test_files_are_named_as_spark_names_them(spark: SparkSession, tmp_path: Path) -> None:
    """Rows that are gone are found by these names: one that differs would bring them back."""
    signs = [chr(code) for code in range(32, 127) if chr(code) not in "/:"] + [
        "ä",
        "€",
        "😀",
        "\u00a0",
        "\u3000",
    ]
    names = [f"x{sign}{number}.parquet" for number, sign in enumerate(signs)] + [
        "x%20%2F.parquet",
        "x\\*.parquet",
    ]
    content = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": [1]}), content)
    for name in names:
        (tmp_path / name).write_bytes(content.getvalue())
    addresses = [str(tmp_path / name) for name in names]
    read = spark.read.schema("id BIGINT").parquet(*map(paths.given, addresses))
    found = {row.p for row in read.selectExpr("_metadata.file_path AS p").collect()}
    assert found == {paths.shown(address) for address in addresses}
    roundabout = [f"/{tmp_path}/down/../x!1.parquet", f"{tmp_path}//x!1.parquet"]
    (tmp_path / "down").mkdir()
    for address in roundabout:
        found = spark.read.schema("id BIGINT").parquet(paths.given(address))
        shown = found.selectExpr("_metadata.file_path AS p").collect()
        assert [row.p for row in shown] == [paths.shown(address)]


@pytest.mark.timeout(300)
def test_spark_connect_reads_and_writes(tmp_path: Path) -> None:
    """In a process of its own: one that has a classic session cannot have another kind."""
    text = f"""
        import forklake, sys
        from forklake.spark import ForklakeDataSource, SparkCatalog, session
        from forklake.spark.java import java_home
        import os
        os.environ["JAVA_HOME"] = str(java_home(os.environ))
        os.environ["PYSPARK_PYTHON"] = sys.executable
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        from pyspark.sql import SparkSession
        spark = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false").getOrCreate()
        folder = "{tmp_path}"
        with forklake.connect(f"sqlite:///{{folder}}/l.db", data_path=f"{{folder}}/f", create=True) as lake:
            lake.set_option("data_inlining_row_limit", 2)
            catalog = lake.create_catalog("c")
            table = catalog.create_table("t", "id BIGINT, u UUID, s STRUCT(x INTEGER), l INTEGER[]")
            seen = SparkCatalog(spark, catalog)
            table.append([{{"id": at, "u": None, "s": {{"x": at}}}} for at in range(10)])
            table.append([{{"id": 10}}])
            table.delete("id = 3")
            table.rename_column("s.x", "y")
            table.add_column("late", "INTEGER", default=5)
            frame = seen.read("t", "id > 1 AND late = 5", row_ids=True)
            assert "connect" in type(frame).__module__
            first = sorted((row.id, row.row_id, row.s and row.s.y) for row in frame.collect())[0]
            print(first, frame.count())
            print(seen.append(spark.range(5).selectExpr("id + 100 AS id"), "t"))
            print(seen.append(spark.range(5).selectExpr("id + 200 AS id", "array(1) AS l"), "t"))
            print(seen.read("t").count())
            start = catalog.snapshot
            print(seen.delete("t", "id >= 200"), seen.update("t", {{"id": "id + 1"}}, "id >= 100"))
            print(seen.merge(spark.range(104, 107), "t", "id"), seen.compact("t").files_out)
            print(sorted(row.change_type for row in seen.changes("t", start).collect())[::6])
            print(sorted(row["id"] for row in table.scan("id >= 100").to_pylist()))
            text = "SELECT id, $p AS p FROM t JOIN t AS u USING (id) WHERE id >= $n"
            query = seen.sql(text, {{"p": "{{x}}", "n": 105}})
            seen.sql("DELETE FROM t WHERE id = $1", [106])
            print(sorted(query.collect()), query.where("id > 105").count())
            print(seen.sql("INSERT INTO t BY NAME SELECT id + 1 AS id FROM t WHERE id = 105").rows_affected)
            spark.dataSource.register(ForklakeDataSource)
            named = {{"lake": lake.url, "catalog": "c", "table": "t"}}
            spark.range(3).write.format("forklake").options(**named).mode("append").save()
            print(spark.read.format("forklake").options(**named).load().where("id < 3").count())
    """
    lines = program(tmp_path, text, **os.environ).splitlines()
    assert lines[-11:-7] == ["(2, 2, 2) 8", "5", "5", "20"]
    assert lines[-7:] == [
        "5 5",
        "RowsMerged(updated=2, deleted=0, inserted=1) 1",
        "['delete', 'update_postimage', 'update_postimage', 'update_preimage']",
        "[101, 102, 103, 104, 105, 106]",
        "[Row(id=105, p='{x}'), Row(id=106, p='{x}')] 1",
        "1",
        "6",
    ]
