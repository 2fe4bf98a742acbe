"""The grammar of SQL: a text becomes statements. Queries and expressions stay text, which DuckDB reads."""
