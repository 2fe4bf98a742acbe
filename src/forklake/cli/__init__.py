"""The command line."""

from forklake.cli.app import main

__all__ = ["main"]
