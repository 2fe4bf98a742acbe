"""Indexes of vectors, ranked by distance: lists around trained centroids, scanned by faiss."""

from __future__ import annotations

from forklake.index.vector.kind import Vector

__all__ = ["Vector"]
