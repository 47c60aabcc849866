"""What a reader of fetched records raises: which partition, which offset, what is wrong, what to do.

Both twins of the codec call this, so that an application sees the same error whichever of them reads.
"""

from barnabas.errors import ErrorCode, KafkaError


def read_fault(topic: str, partition: int, offset: int, error: KafkaError) -> KafkaError:
    """CORRUPT_MESSAGE for every fault of the bytes; records of the formats before Kafka 0.11 keep their own code."""
    code = error.code
    if code != ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT:
        code = ErrorCode.CORRUPT_MESSAGE
    return KafkaError(
        code, f"cannot read {topic}-{partition} at offset {offset}: {error.message}; seek past it to go on"
    )
