"""SQL: statements as values, how they are read, and what runs them."""
