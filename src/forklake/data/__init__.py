"""Data files: where they lie, how they are written, read and described."""
