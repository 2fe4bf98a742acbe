"""Forks: made, copied, compared and merged."""
