"""Performance claims, each measured against a baseline in the same run. `make bench-commit` runs them."""
