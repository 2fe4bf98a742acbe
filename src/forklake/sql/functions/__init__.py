"""Functions that return rows about a lake or do something to it: in FROM, and by CALL."""
