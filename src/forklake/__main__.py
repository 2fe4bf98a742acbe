"""`python -m forklake` is the command line."""

from forklake.cli import main

main()
