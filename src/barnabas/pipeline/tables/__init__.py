"""The warehouse's topics as tables: Parquet files, or PostgreSQL. Fed from the DWD and DIM topics, read committed."""
