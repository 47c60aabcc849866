"""The controller: topics, partitions, leaders, settings and producer ids of a cluster."""
