"""SQL on Spark: `SparkCatalog.sql` and temporary views of tables."""
