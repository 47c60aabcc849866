"""The warehouse pipeline, ODS -> DWD -> DIM: input generator, splitting and routing rules, Spark job."""
