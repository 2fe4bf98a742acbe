"""The local engine: DuckDB over the files of a lake."""
