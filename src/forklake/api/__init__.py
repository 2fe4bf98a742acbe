"""The handles on lakes, catalogs and tables, and the values that they return."""
