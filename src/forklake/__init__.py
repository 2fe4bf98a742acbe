"""forklake: a lakehouse in which a whole catalog forks in milliseconds."""

from forklake.catalog import Catalog
from forklake.errors import *  # noqa: F403 - every exception is public
from forklake.lake import Lake, connect, init
from forklake.table import Table
from forklake.transaction import Transaction

__version__ = "0.1.0"
