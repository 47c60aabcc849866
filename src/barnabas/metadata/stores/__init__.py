"""Implementations of `MetadataStore`. One test suite runs on all of them."""
