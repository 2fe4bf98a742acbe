"""Compaction: many small files become few, deletes are applied, inlined rows get files. No row changes."""
