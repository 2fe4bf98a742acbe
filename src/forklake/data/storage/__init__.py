"""Where data files are: on a local disk or in a bucket."""
