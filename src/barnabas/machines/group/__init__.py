"""The group coordinator as a pure machine: one `GroupShard` for each partition of `__consumer_offsets`."""
