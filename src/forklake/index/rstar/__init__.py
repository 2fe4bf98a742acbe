"""Indexes of places: `kind.py` is the kind `rstar`."""
