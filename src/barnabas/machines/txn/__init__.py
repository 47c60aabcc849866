"""The transaction coordinator as a pure machine: one `TransactionShard` for each partition of `__transaction_state`.

How it is driven (besides the contract of `machines/coordinator.py`):

    TransactionShard(coordinator_epoch, settings, take_producer_id)
        coordinator_epoch   leader epoch of the partition
        settings            TransactionSettings.of(broker_config)
        take_producer_id    () -> int, or None while none is available: the client then receives
                            COORDINATOR_LOAD_IN_PROGRESS, as from Kafka, and retries; the driver should fetch a block

Commands and their replies are listed in commands.py. There is one kind of request to the driver, `SendMarkers`: have
the markers written and `tell` the shard with `MarkersWritten`, for all partitions at once or in parts. A partition that
no longer exists counts as written. The shard asks once per transaction, and once more after a reload, so the driver
retries until the shard is closed.

The client gets its response as soon as the outcome is written (PrepareCommit, PrepareAbort); the markers follow. Until
they are written, every request for this transactional id fails with CONCURRENT_TRANSACTIONS.

Differences from Kafka 4.1: a timeout aborts when it is due, not at the next periodic check; the ids of a rotation are
written to the log, so that a rotation in progress survives a failover; a fenced producer at its last epoch is rotated
too; an InitProducerId with an old epoch does not abort the transaction of the producer with the current one.
"""
