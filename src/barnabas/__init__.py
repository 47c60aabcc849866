"""Barnabas: Apache Kafka's system in Python.

    from barnabas import Producer, Consumer, Admin        # blocking; the awaitable ones are in barnabas.aio
    from barnabas.testing import Broker                   # a broker inside a test

Names are imported when they are first used, so that `import barnabas` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from barnabas.client.admin import Admin
    from barnabas.client.admin.types import ConfigResource, NewTopic, OffsetSpec
    from barnabas.client.consumer import Consumer, ConsumerRecord, OffsetAndMetadata, RebalanceListener
    from barnabas.client.errors import (
        AbortableTransactionError,
        AuthenticationError,
        AuthorizationError,
        BufferFullError,
        ClientTimeoutError,
        ClosedError,
        CommitFailedError,
        ConcurrentTransactionsError,
        ConfigError,
        CoordinatorNotAvailableError,
        CorruptMessageError,
        DeserializationError,
        FencedError,
        GroupNotEmptyError,
        GroupNotFoundError,
        IllegalStateError,
        InvalidGroupIdError,
        InvalidPartitionsError,
        InvalidRecordError,
        InvalidReplicationFactorError,
        InvalidRequestError,
        InvalidTimestampError,
        InvalidTopicError,
        KafkaStorageError,
        LeaderNotAvailableError,
        LogTruncationError,
        NoOffsetForPartitionError,
        NotControllerError,
        NotEnoughReplicasError,
        NotLeaderError,
        OffsetOutOfRangeError,
        OutOfOrderSequenceError,
        PolicyViolationError,
        QuotaExceededError,
        RebalanceInProgressError,
        RecordTooLargeError,
        ResourceNotFoundError,
        SecurityDisabledError,
        SerializationError,
        TopicExistsError,
        TransactionAbortedError,
        TransactionalIdNotFoundError,
        UnexpectedError,
        UnknownTopicError,
        UnreachableError,
        UnsupportedVersionError,
        WakeupError,
    )
    from barnabas.client.metrics import MetricName, Metrics
    from barnabas.client.metrics.prometheus import PrometheusCollector
    from barnabas.client.producer import Producer
    from barnabas.client.producer._fast_pure import Delivery
    from barnabas.client.producer.delivery import RecordMetadata
    from barnabas.errors import ErrorCode, KafkaError
    from barnabas.testing import Broker
    from barnabas.types import TopicPartition

__version__ = "0.1.0"
__all__ = [
    "AbortableTransactionError",
    "Admin",
    "AuthenticationError",
    "AuthorizationError",
    "Broker",
    "BufferFullError",
    "ClientTimeoutError",
    "ClosedError",
    "CommitFailedError",
    "ConcurrentTransactionsError",
    "ConfigError",
    "ConfigResource",
    "Consumer",
    "ConsumerRecord",
    "CoordinatorNotAvailableError",
    "CorruptMessageError",
    "Delivery",
    "DeserializationError",
    "ErrorCode",
    "FencedError",
    "GroupNotEmptyError",
    "GroupNotFoundError",
    "IllegalStateError",
    "InvalidGroupIdError",
    "InvalidPartitionsError",
    "InvalidRecordError",
    "InvalidReplicationFactorError",
    "InvalidRequestError",
    "InvalidTimestampError",
    "InvalidTopicError",
    "KafkaError",
    "KafkaStorageError",
    "LeaderNotAvailableError",
    "LogTruncationError",
    "MetricName",
    "Metrics",
    "NewTopic",
    "NoOffsetForPartitionError",
    "NotControllerError",
    "NotEnoughReplicasError",
    "NotLeaderError",
    "OffsetAndMetadata",
    "OffsetOutOfRangeError",
    "OffsetSpec",
    "OutOfOrderSequenceError",
    "PolicyViolationError",
    "Producer",
    "PrometheusCollector",
    "QuotaExceededError",
    "RebalanceInProgressError",
    "RebalanceListener",
    "RecordMetadata",
    "RecordTooLargeError",
    "ResourceNotFoundError",
    "SecurityDisabledError",
    "SerializationError",
    "TopicExistsError",
    "TopicPartition",
    "TransactionAbortedError",
    "TransactionalIdNotFoundError",
    "UnexpectedError",
    "UnknownTopicError",
    "UnreachableError",
    "UnsupportedVersionError",
    "WakeupError",
    "__version__",
]

_HOMES = {
    "Admin": "barnabas.client.admin",
    "Broker": "barnabas.testing",
    "ConfigResource": "barnabas.client.admin.types",
    "Consumer": "barnabas.client.consumer",
    "ConsumerRecord": "barnabas.client.consumer",
    "Delivery": "barnabas.client.producer.fast_path",
    "ErrorCode": "barnabas.errors",
    "KafkaError": "barnabas.errors",
    "MetricName": "barnabas.client.metrics",
    "Metrics": "barnabas.client.metrics",
    "NewTopic": "barnabas.client.admin.types",
    "OffsetAndMetadata": "barnabas.client.consumer",
    "OffsetSpec": "barnabas.client.admin.types",
    "Producer": "barnabas.client.producer",
    "PrometheusCollector": "barnabas.client.metrics.prometheus",
    "RebalanceListener": "barnabas.client.consumer",
    "RecordMetadata": "barnabas.client.producer.delivery",
    "TopicPartition": "barnabas.types",
}


if not TYPE_CHECKING:  # type checkers must see a name that does not exist

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module 'barnabas' has no attribute {name!r}")
        value = getattr(import_module(_HOMES.get(name, "barnabas.client.errors")), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
