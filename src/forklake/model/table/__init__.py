"""What a table consists of: columns, layout and files."""
