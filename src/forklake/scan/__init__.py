"""What a query has to read: which files can hold its rows, and how they are read."""
