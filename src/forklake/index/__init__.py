"""Secondary indexes: one module for each kind, behind one protocol."""
