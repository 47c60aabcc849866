"""The way of a record from `send` into a batch, in the thread of whoever sends.

Interceptors, serializers, checks, partitioner, accumulator. Never waits: `try_append` says what is missing, metadata of
the topic or memory, and the blocking producer and its asyncio twin wait for that in their own ways and try again.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from barnabas.client.consumer.arguments import MAX_INT32, whole_number
from barnabas.client.environment import environment
from barnabas.client.errors import ClosedError, IllegalStateError, RecordTooLargeError, SerializationError
from barnabas.client.options.plugins import Serializer
from barnabas.client.options.producer import ProducerOptions
from barnabas.client.producer.accumulator import PARTITIONS_CHANGED, Accumulator
from barnabas.client.producer.buffer_pool import size_bound
from barnabas.client.producer.fast_path import Delivery
from barnabas.client.producer.partitioner import Partitioner
from barnabas.client.producer.queues import TopicQueues
from barnabas.client.producer.record import Headers, OnDelivery, PreparedRecord, ProducerInterceptors, ProducerRecord
from barnabas.records.codec import partition_for_key

_STICKY: Final = -1


class Intake:
    """Prepares records and appends them to batches, in the thread of the caller."""

    def __init__(self, options: ProducerOptions, accumulator: Accumulator) -> None:
        self.interceptors = ProducerInterceptors(options.interceptor_classes)
        self._options = options
        self._accumulator = accumulator
        self._partitioner = options.partitioner_class
        accumulator.allows_fast = (
            not self.interceptors.any
            and options.key_serializer is None
            and options.value_serializer is None
            and options.partitioner_class is None
            and not options.partitioner_ignore_keys
        )

    def prepare(self, record: ProducerRecord, on_delivery: OnDelivery | None) -> PreparedRecord:
        """Intercepted, serialized, checked. Raises what is wrong with the record."""
        self._accumulator.check_open()
        if self.interceptors.any:
            record = self.interceptors.on_send(record)
        try:
            return self._prepared(record, on_delivery)
        except Exception as error:
            self.interceptors.on_refused(error)
            raise

    def try_append(self, record: PreparedRecord, granted: int = 0) -> Delivery | int | None:
        """The record's handle; or how many bytes to wait for; or None if topic or partition are not known yet."""
        if record.partition is not None or not callable(self._partitioner):
            return self._accumulator.append(record, granted, self._partition)
        while True:
            choice = None
            try:
                choice = self._choice(self._partitioner, record)
            finally:
                if choice is None:
                    self._accumulator.give_back(granted)
            if choice is None:
                return None
            chosen, count = choice
            outcome = self._accumulator.append(record._replace(partition=chosen), granted, self._partition, count)
            if outcome != PARTITIONS_CHANGED:
                return outcome

    def _choice(self, partitioner: Partitioner, record: PreparedRecord) -> tuple[int, int] | None:
        """What the user's partitioner says, and of how many partitions; None if the topic is not known.

        Without the lock: it may ask the producer something, or take its time. The count may be another one afterwards.
        """
        topic = self._accumulator.batches.topics.get(record.topic)
        count = 0 if topic is None else len(topic.partitions)
        if not count:
            return None
        chosen = partitioner(record.topic, record.key, record.value, count)
        if not isinstance(chosen, int) or not 0 <= chosen < count:
            raise IllegalStateError(
                f"the partitioner chose {chosen!r} for {record.topic}, which has partitions 0 to {count - 1}"
            )
        return chosen, count

    def close(self) -> None:
        """Nothing is taken any more."""
        self._accumulator.refuse(closed_error())

    def forked(self) -> None:
        """In a child process, where the thread that sends does not exist."""
        self._accumulator.forked(
            IllegalStateError(
                "this producer was made in the parent process, and its I/O thread did not come along the fork:"
                " make a producer in the child"
            )
        )

    def _prepared(self, record: ProducerRecord, on_delivery: OnDelivery | None) -> PreparedRecord:
        topic = record.topic
        if not isinstance(topic, str):
            raise TypeError(f"the topic must be text, not {type(topic).__name__}")
        if not topic:
            raise ValueError("the topic has no name: give one")
        key = _serialized("key", self._options.key_serializer, record.key, topic)
        value = _serialized("value", self._options.value_serializer, record.value, topic)
        timestamp = _timestamp(record.timestamp)
        partition = _partition_number(record.partition)
        headers = _checked_headers(record.headers)
        self._check_size(topic, size_bound(key, value, headers))
        callbacks = (self.interceptors.on_done,) if self.interceptors.wants_acknowledgements else ()
        if on_delivery is not None:
            callbacks = (*callbacks, on_delivery)
        return PreparedRecord(topic, value, key, partition, timestamp, headers, callbacks)

    def _check_size(self, topic: str, size: int) -> None:
        for limit, name in (
            (self._options.max_request_size, "max_request_size"),
            (self._options.buffer_memory, "buffer_memory"),
        ):
            if size > limit:
                raise RecordTooLargeError(
                    f"a record of {size} bytes for {topic} is larger than {name} ({limit}): send less, or raise"
                    f" {name} and the topic's max.message.bytes"
                )

    def _partition(self, topic: TopicQueues, record: PreparedRecord) -> int:
        if record.partition is not None:
            return record.partition
        count = len(topic.partitions)
        if self._partitioner is not None:
            return topic.round_robin.next(topic.available, count)
        if record.key is None or self._options.partitioner_ignore_keys:
            return _STICKY
        return partition_for_key(record.key, count)


def closed_error() -> ClosedError:
    return ClosedError("the producer is closed: make a new one")


def _serialized(what: str, serializer: Serializer | None, given: Any, topic: str) -> bytes | None:
    if serializer is not None:
        try:
            given = serializer(given)
        except Exception as error:
            raise SerializationError(
                f"the {what}_serializer failed for a record to {topic}: {type(error).__name__}: {error}"
            ) from error
    if given is None or isinstance(given, bytes | bytearray | memoryview):
        return given if given is None or type(given) is bytes else bytes(given)
    advice = "it must return bytes or None" if serializer else f"give bytes, or a {what}_serializer (str.encode, say)"
    source = f"the {what}_serializer returned" if serializer else f"the {what} is"
    raise SerializationError(f"{source} {type(given).__name__} for a record to {topic}: {advice}")


def _timestamp(given: Any) -> int:
    if given is None:
        return environment().clock.now_ms()
    return whole_number(given, "the timestamp of a record", hint=": give it in milliseconds since 1970")


def _partition_number(given: Any) -> int | None:
    if given is None:
        return None
    hint = "; leave it out to let the partitioner choose"
    return whole_number(given, "the number of a partition", highest=MAX_INT32, hint=hint)


def _checked_headers(headers: Headers | Mapping[str, bytes | None] | None) -> Headers | None:
    if headers is None:
        return None
    if not isinstance(headers, Iterable):
        raise SerializationError(f"headers must be a list of (text, bytes or None), not {headers!r}")
    pairs = list(headers.items()) if isinstance(headers, Mapping) else list(headers)
    for pair in pairs:
        if not _is_header(pair):
            raise SerializationError(f"a header must be (text, bytes or None), not {pair!r}")
    return pairs or None


def _is_header(pair: Any) -> bool:
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        return False
    return isinstance(pair[0], str) and isinstance(pair[1], bytes | bytearray | None)
