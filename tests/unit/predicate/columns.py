"""The columns that the predicates are about, and a predicate as a tree."""

from __future__ import annotations

from forklake.model.sql.ddl import columns_of as ddl
from forklake.model.sql.predicate import parse_predicate
from forklake.model.table.columns import build
from forklake.model.types.sort_keys import key_of

DDL = """
    id BIGINT, i INTEGER, small UTINYINT, huge HUGEINT, f DOUBLE, g FLOAT, price DECIMAL(10,2), Name VARCHAR,
    flag BOOLEAN, d DATE, t TIME, tn TIME_NS, ts TIMESTAMP, sec TIMESTAMP_S, ns TIMESTAMP_NS, tz TIMESTAMPTZ,
    u UUID, b BLOB, j JSON, iv INTERVAL,
    s STRUCT("A" INTEGER, "in" STRUCT(x VARCHAR, inside STRUCT(y INTEGER)[])),
    l INTEGER[], m MAP(VARCHAR, INTEGER), "odd ""name" INTEGER, é INTEGER, vacuum INTEGER,
    deep STRUCT(d1 STRUCT(d2 STRUCT(d3 STRUCT(d4 STRUCT(e INTEGER)))))
"""
COLUMNS = build(ddl(DDL))
BY_NAME = {column.name: column for top in COLUMNS for column in top.walk()}


def tree(text):
    return parse_predicate(text, COLUMNS).tree


def key(name, value):
    return key_of(value, BY_NAME[name].data_type)
