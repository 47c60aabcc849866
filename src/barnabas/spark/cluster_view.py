"""What the driver queries from the cluster: topics, their ids, and offsets. Clients connect on first use."""

import re
import time
from collections.abc import Callable, Collection, Iterable
from typing import TypeVar

from barnabas.client.admin.admin import Admin
from barnabas.client.consumer.consumer import Consumer
from barnabas.client.errors import ClientError, ConfigError, UnknownTopicError
from barnabas.errors import KafkaError
from barnabas.spark.offsets import EARLIEST, LATEST, OffsetSpec
from barnabas.spark.options import SourceOptions
from barnabas.types import TopicPartition, topic_id_text

T = TypeVar("T")


class Topics(dict[str, int]):
    """Partitions by topic; `ids` has the topics' ids as text."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: dict[str, str] = {}


class ClusterView:
    """Not picklable: a reader creates its own where it runs."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._consumer: Consumer | None = None
        self._admin: Admin | None = None

    def topics(self) -> Topics:
        """The partitions that the options select. Raises UnknownTopicError if a given topic does not exist."""
        return self._retrying(self._topics)

    def partitions(self, topics: Topics) -> list[TopicPartition]:
        options = self._options
        if not options.assign:
            return [TopicPartition(topic, number) for topic, count in topics.items() for number in range(count)]
        found = []
        for topic, numbers in options.assign.items():
            for number in numbers:
                if number >= topics[topic]:
                    raise ConfigError([f"assign: {topic} has {topics[topic]} partitions, so there is no {number}"])
                found.append(TopicPartition(topic, number))
        return found

    def earliest(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return self._retrying(lambda: self._connected().beginning_offsets(partitions)) if partitions else {}

    def latest(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return self._retrying(lambda: self._connected().end_offsets(partitions)) if partitions else {}

    def resolve(self, spec: OffsetSpec, partitions: list[TopicPartition], option: str) -> dict[TopicPartition, int]:
        """Resolved offsets. Raises ConfigError if the option does not match the partitions."""
        wanted = spec.by_partition
        if wanted is None:
            assert spec.everywhere is not None
            wanted = dict.fromkeys(partitions, spec.everywhere)
        elif set(wanted) != set(partitions):
            missing = sorted(set(partitions) - set(wanted))
            unknown = sorted(set(wanted) - set(partitions))
            faults = [f"{_named(missing)} is missing"] if missing else []
            faults += [f"{_named(unknown)} is not read"] if unknown else []
            raise ConfigError([f"{option}: {' and '.join(faults)}"])
        if spec.kind == "timestamps":
            return self._at_times(wanted, spec, option)
        found = dict(wanted)
        found |= self.earliest([tp for tp, offset in wanted.items() if offset == EARLIEST])
        return found | self.latest([tp for tp, offset in wanted.items() if offset == LATEST])

    def _at_times(self, times: dict[TopicPartition, int], spec: OffsetSpec, option: str) -> dict[TopicPartition, int]:
        found = self._retrying(lambda: self._connected().offsets_for_times(times))
        after_all = [tp for tp, response in found.items() if response is None]
        if after_all and option.startswith("starting") and spec.when_too_late == "error":
            how = "startingOffsetsByTimestampStrategy=latest starts at the end instead"
            raise ConfigError([f"{option}: {_named(after_all)} has no record from that time on; {how}"])
        offsets = {tp: response.offset for tp, response in found.items() if response is not None}
        return offsets | self.latest(after_all)

    def commit(self, group_id: str, offsets: dict[TopicPartition, int]) -> None:
        """Progress for monitoring; never read here."""
        from barnabas.client.admin.admin import Admin
        from barnabas.client.options import AdminOptions

        # Without options that only a consumer has, such as isolation.level.
        client = {name: value for name, value in self._options.client.items() if name in AdminOptions.settings}
        with Admin.from_config(client) as admin:
            admin.alter_group_offsets(group_id, offsets)

    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None
        if self._admin is not None:
            self._admin.close()
            self._admin = None

    def _topics(self) -> Topics:
        options, topics = self._options, Topics()
        known = self._connected().list_topics()
        if options.subscribe_pattern is not None:
            pattern = re.compile(options.subscribe_pattern)
            # Internal topics are only read by name, as with the official connector.
            names: Iterable[str] = sorted(
                name for name, topic in known.items() if pattern.fullmatch(name) and not topic.is_internal
            )
        else:
            names = options.subscribe or options.assign
            missing = [name for name in names if name not in known]
            if missing:
                raise UnknownTopicError(f"there is no topic {', '.join(missing)}: create it, or check the spelling")
        for name in names:
            topics[name] = len(known[name].partitions)
            topics.ids[name] = topic_id_text(known[name].topic_id)
        return topics

    def _connected(self) -> Consumer:
        if self._consumer is None:
            self._consumer = Consumer.from_config({**self._options.client, "enable.auto.commit": "false"})
        return self._consumer

    def _retrying(self, operation: Callable[[], T]) -> T:
        """fetchOffset.numRetries attempts in total, as in the official connector, fetchOffset.retryIntervalMs apart."""
        for _ in range(self._options.offset_retries - 1):
            try:
                return operation()
            except KafkaError as error:
                if not error.retriable and not isinstance(error, ClientError):
                    raise
                if isinstance(error, UnknownTopicError | ConfigError):
                    raise
                time.sleep(self._options.offset_retry_interval_ms / 1000)
        return operation()


def _named(partitions: list[TopicPartition]) -> str:
    shown = ", ".join(map(str, partitions[:5]))
    return shown if len(partitions) <= 5 else f"{shown} and {len(partitions) - 5} more"
