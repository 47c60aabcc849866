"""The warehouse pipeline, ODS -> DWD -> DIM: generator of its input, splitting and routing rules, the Spark job."""
