"""Frozen values without I/O: names, types, entities, snapshots and changes."""
