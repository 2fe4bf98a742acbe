"""Indexes of words, ranked by BM25: segments are those of tantivy."""

from __future__ import annotations

from forklake.index.bm25.kind import Bm25

__all__ = ["Bm25"]
