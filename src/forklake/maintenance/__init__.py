"""Keeping a lake small: expiring snapshots, and removing what nobody can reach any more."""
