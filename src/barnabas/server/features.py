"""The features of KIP-584 and their levels: on from the start, never changed. ApiVersions lists them.

They let clients use the newer protocols by themselves: KIP-848 groups (group.version), an epoch for every transaction
(transaction.version, KIP-890). metadata.version is the level of Kafka 4.1, whose APIs this broker serves.
"""

FEATURES = {"group.version": 1, "transaction.version": 2, "metadata.version": 27}
LOWEST_SUPPORTED = {"group.version": 0, "transaction.version": 0, "metadata.version": 27}
"""What ApiVersions lists as supported. For the two that start at 0 it says that clients need not use them."""
