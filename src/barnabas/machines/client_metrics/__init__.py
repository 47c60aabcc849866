"""Metrics that clients push to a broker (KIP-714): who may push when, and the last values of each. Pure."""
