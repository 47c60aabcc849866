"""Kafka's own commands under their own names, flags and output: one module per tool, each with a `main`."""
