"""From staged changes to one published snapshot."""
