"""Types of columns, and their values as Arrow, text and sort keys."""
