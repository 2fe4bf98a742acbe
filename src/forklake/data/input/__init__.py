"""Rows as people hand them over, as batches of Arrow that a table takes."""
