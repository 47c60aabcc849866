"""What a broker measures, and `/metrics`.

The hot path only adds to integers (`traffic`, `requests`); everything else is computed when somebody asks, in slices of
the loop (`scrape`). `table` is the one list of metrics: the exposition, docs/metrics.md and the tests read it.
"""
