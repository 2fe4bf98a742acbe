"""Queries over several tables: DuckDB binds what users wrote, and reads only what plans name."""
