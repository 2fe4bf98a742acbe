"""The version of this package, for code of every layer."""

VERSION = "0.1.0"
