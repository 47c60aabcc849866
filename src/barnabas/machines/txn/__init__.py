"""The transaction coordinator as a pure machine: one `TransactionShard` for each partition of `__transaction_state`.

How it is driven (besides the contract of `machines/coordinator.py`):

    TransactionShard(coordinator_epoch, settings, take_producer_id)
        coordinator_epoch   leader epoch of the partition
        settings            TransactionSettings.of(broker_config)
        take_producer_id    () -> int, or None while none is at hand: the client hears COORDINATOR_LOAD_IN_PROGRESS
                            then, as from Kafka, and tries again; whoever is asked in vain should fetch a block

Commands and their answers are listed in commands.py. There is one kind of request to the driver, `SendMarkers`: have
the markers written and `tell` the shard with `MarkersWritten`, for all partitions at once or in parts. A partition that
does not exist any more counts as written. The shard asks once for each transaction, and once more after a reload, so
whoever writes the markers goes on trying until the shard is closed.

The client is answered as soon as the outcome is written (PrepareCommit, PrepareAbort); the markers follow. Until they
stand, every request for this transactional id is answered CONCURRENT_TRANSACTIONS.

Differences from Kafka 4.1: a time-out aborts when it is due, not at the next look around; the ids of a rotation are
written to the log, so that one under way outlives a failover; a fenced producer at its last epoch is rotated too; an
InitProducerId with an epoch of the past does not abort the transaction of whoever holds the current one.
"""
