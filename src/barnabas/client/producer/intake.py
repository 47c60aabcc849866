"""The way of a record from `send` into a batch, in the thread of whoever sends.

Interceptors, serializers, checks, partitioner, accumulator. Never waits: `try_append` says what is missing, metadata of
the topic or memory, and the blocking producer and its asyncio twin wait for that in their own ways and try again.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from barnabas.client.consumer.arguments import MAX_INT32, whole_number
from barnabas.client.environment import environment
from barnabas.client.errors import ClosedError, IllegalStateError, RecordTooLargeError, SerializationError
from barnabas.client.options.plugins import Serializer
from barnabas.client.options.producer import ProducerOptions
from barnabas.client.producer.accumulator import Accumulator, size_bound
from barnabas.client.producer.fast_path import Delivery
from barnabas.client.producer.partitioner import Partitioner
from barnabas.client.producer.queues import TopicQueues
from barnabas.client.producer.record import ProducerInterceptors, ProducerRecord
from barnabas.records.codec import partition_for_key

Headers = Sequence[tuple[str, bytes | None]]
OnDelivery = Callable[[Delivery], object]
_STICKY = -1
_ASK_AGAIN = -1


class PreparedRecord(NamedTuple):
    topic: str
    value: bytes | None
    key: bytes | None
    partition: int | None
    timestamp: int
    headers: Headers | None
    on_delivery: OnDelivery | None


class Intake:
    def __init__(self, options: ProducerOptions, accumulator: Accumulator) -> None:
        self.interceptors = ProducerInterceptors(options.interceptor_classes)
        self.fast: dict[str, TopicQueues] = {}
        """Topics whose records may go straight into the open batch; empty whenever a check is due."""
        self.check_may_send: Callable[[], None] = _nothing
        """Transactions look here whether one is open. Lock held."""
        self.refuse: Exception | None = None
        """Set after close, and in a child process."""
        self._options = options
        self._accumulator = accumulator
        self._partitioner = options.partitioner_class
        self._may_be_fast = (
            not self.interceptors.any
            and options.key_serializer is None
            and options.value_serializer is None
            and options.partitioner_class is None
            and not options.partitioner_ignore_keys
        )

    def prepare(self, record: ProducerRecord, on_delivery: OnDelivery | None) -> PreparedRecord:
        """Intercepted, serialized, checked. Raises what is wrong with the record."""
        self.check_open()
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
            return self._append(record, granted, None)
        while True:
            choice = None
            try:
                choice = self._choice(self._partitioner, record)
            finally:
                if choice is None:
                    with self._accumulator.lock:
                        self._give_back(granted)
            outcome = None if choice is None else self._append(record, granted, choice)
            if outcome != _ASK_AGAIN:
                return outcome

    def _choice(self, partitioner: Partitioner, record: PreparedRecord) -> tuple[int, int] | None:
        """What the user's partitioner says, and of how many partitions; None if the topic is not known.

        Without the lock: it may ask the producer something, or take its time. The count may be another one afterwards.
        """
        topic = self._accumulator.topics.get(record.topic)
        count = 0 if topic is None else len(topic.partitions)
        if not count:
            return None
        chosen = partitioner(record.topic, record.key, record.value, count)
        if not isinstance(chosen, int) or not 0 <= chosen < count:
            raise IllegalStateError(
                f"the partitioner chose {chosen!r} for {record.topic}, which has partitions 0 to {count - 1}"
            )
        return chosen, count

    def _append(self, record: PreparedRecord, granted: int, choice: tuple[int, int] | None) -> Delivery | int | None:
        """`choice`: of the user's partitioner; _ASK_AGAIN if the topic has other partitions by now."""
        with self._accumulator.lock:
            try:
                self.check_open()
                self.check_may_send()
                topic = self._accumulator.topics.get(record.topic)
                if topic is None or not topic.partitions:
                    self._give_back(granted)
                    return None
                if choice is not None and choice[1] != len(topic.partitions):
                    return _ASK_AGAIN
                partition = self._partition(topic, record) if choice is None else choice[0]
                if partition >= len(topic.partitions):
                    self._give_back(granted)
                    return None
            except BaseException:
                self._give_back(granted)
                raise
            outcome = self._accumulator.append(
                topic, partition, record.timestamp, record.key, record.value, record.headers, granted
            )
            if isinstance(outcome, Delivery):
                self._hang_callbacks(outcome, record)
                if self._may_be_fast:
                    self.fast[record.topic] = topic
            return outcome

    def check_open(self) -> None:
        if self.refuse is not None:
            raise self.refuse.with_traceback(None)

    def end_fast_path(self) -> None:
        self.fast.clear()

    def close(self) -> None:
        self.refuse = ClosedError("the producer is closed: make a new one")
        self.end_fast_path()

    def forked(self) -> None:
        """In a child process: the thread that sends is not there, and the lock may be held by nobody who lives."""
        self.refuse = IllegalStateError(
            "this producer was made in the parent process, and its I/O thread did not come along the fork:"
            " make a producer in the child"
        )
        self.fast.clear()

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
        return PreparedRecord(topic, value, key, partition, timestamp, headers, on_delivery)

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

    def _hang_callbacks(self, delivery: Delivery, record: PreparedRecord) -> None:
        if self.interceptors.wants_acknowledgements:
            delivery.batch.hang_on_locked(delivery, self.interceptors.on_done)
        if record.on_delivery is not None:
            delivery.batch.hang_on_locked(delivery, record.on_delivery)

    def _give_back(self, granted: int) -> None:
        if granted:
            self._accumulator.pool.give_back(granted)


def _nothing() -> None:
    pass


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
