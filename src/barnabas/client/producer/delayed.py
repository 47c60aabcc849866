"""`send(..., deliver_at=...)` and `deliver_after`: the header that says when, and the intake that the record goes to.

An intake of `orders` is a topic with the setting `delay.target.topic=orders`, by convention `orders.delayed`; a record
for the intake itself goes there too. The cluster is asked once per topic and metadata.max.age.ms. A cluster without
delayed messages, such as Apache Kafka, has no such topic: `send` raises, so that no record is lost in a topic that
nobody delivers from. `header` runs in the thread of the caller, `find_intake` on the I/O thread.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from barnabas.client.cluster_client import ClusterClient
from barnabas.client.consumer.arguments import whole_number
from barnabas.client.errors import IllegalStateError, error_for
from barnabas.client.producer.record import ProducerRecord
from barnabas.client.retry import Deadline, retrying
from barnabas.errors import ErrorCode
from barnabas.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from barnabas.records.due_time import DELIVER_AFTER, DELIVER_AT, text_delay_ms

INTAKE_SUFFIX: Final = ".delayed"
TARGET_SETTING: Final = "delay.target.topic"
TOPIC_RESOURCE: Final = 2
MILLISECOND: Final = timedelta(milliseconds=1)
LONGEST_MS: Final = 10**18 - 1
"""More digits the header cannot have."""

DeliverAt = int | datetime
DeliverAfter = int | timedelta | str


def header(deliver_at: DeliverAt | None, deliver_after: DeliverAfter | None) -> tuple[str, bytes]:
    """One of the two is given. Raises TypeError or ValueError with what is wrong with it."""
    if deliver_at is not None:
        if deliver_after is not None:
            raise ValueError("deliver_at and deliver_after were both given: give one")
        return DELIVER_AT, str(_due_ms(deliver_at)).encode()
    return DELIVER_AFTER, str(_delay_ms(deliver_after)).encode()


def with_header(record: ProducerRecord, name: str, value: bytes) -> ProducerRecord:
    """The header comes last; one that was given by hand must not say something else."""
    headers: Any = record.headers or ()
    if not isinstance(headers, Iterable):
        return record  # what is wrong with them is said where all headers are checked
    given = list(headers.items() if isinstance(headers, Mapping) else headers)
    for each in given:
        if isinstance(each, tuple | list) and each and each[0] in (DELIVER_AT, DELIVER_AFTER):
            raise ValueError(f"the header {each[0]} was given as well: give one of the two")
    return record._replace(headers=[*given, (name, value)])


def _due_ms(given: Any) -> int:
    if isinstance(given, datetime):
        if given.tzinfo is None:
            raise ValueError(f"deliver_at is {given}, without a time zone: use datetime.now(UTC), or milliseconds")
        return max(0, int(given.timestamp() * 1000))
    hint = ": give milliseconds since 1970, or a datetime with a time zone"
    return whole_number(given, "deliver_at", highest=LONGEST_MS, hint=hint)


def _delay_ms(given: Any) -> int:
    if isinstance(given, timedelta):
        return max(0, given // MILLISECOND)
    if isinstance(given, str):
        return text_delay_ms(given)
    hint = ": give milliseconds, a timedelta, or text such as 10m"
    return whole_number(given, "deliver_after", highest=LONGEST_MS, hint=hint)


class DelayedTopics:
    """Which intake a record for a topic goes to. `known` may be read by any thread."""

    def __init__(self, cluster: ClusterClient, max_age_ms: int) -> None:
        self._cluster = cluster
        self._max_age_ms = max_age_ms
        self._found: dict[str, tuple[str, Deadline]] = {}

    def known(self, topic: str) -> str | None:
        """The intake, if it was asked for a short while ago."""
        intake, fresh = self._found.get(topic, (None, None))
        return None if fresh is None or fresh.expired else intake

    async def find_intake(self, topic: str, deadline: Deadline) -> str:
        """Asks the cluster. Raises IllegalStateError if the topic has no intake."""
        found = await retrying(
            lambda: self._ask(topic, deadline), deadline=deadline, backoff=self._cluster.new_backoff()
        )
        self._found[topic] = found, Deadline(self._max_age_ms, self._cluster.clock)
        return found

    async def _ask(self, topic: str, deadline: Deadline) -> str:
        intake = topic + INTAKE_SUFFIX
        resources = [
            DescribeConfigsResource(
                resource_type=TOPIC_RESOURCE, resource_name=name, configuration_keys=[TARGET_SETTING]
            )
            for name in (topic, intake)
        ]
        node_id = await self._cluster.any_node()
        response = await self._cluster.send(
            node_id, DescribeConfigsRequest(resources=resources), timeout_ms=deadline.remaining_ms
        )
        targets: dict[str, str | None] = {}
        for each in response.results:
            if each.error_code == ErrorCode.NONE:
                targets[each.resource_name] = next(
                    (entry.value for entry in each.configs if entry.name == TARGET_SETTING), None
                )
            elif each.error_code not in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION):
                raise error_for(each.error_code, f"the settings of {each.resource_name}: {each.error_message}")
        if targets.get(topic):
            return topic
        if targets.get(intake) == topic:
            return intake
        raise IllegalStateError(
            f"topic {topic} has no intake for delayed messages: create {intake} with {TARGET_SETTING}={topic},"
            " on a cluster that has them"
        )
