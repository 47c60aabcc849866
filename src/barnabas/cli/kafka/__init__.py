"""Kafka's own commands under their own names, flags and output: one module a tool, each with a `main`."""
