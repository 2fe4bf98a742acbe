"""What the work on a lake needs: its storage, engine and settings, and where changes take effect."""
