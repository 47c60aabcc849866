"""The last error per partition that has no position, or no leader to read from, yet. Shown when a wait times out.

Recorded by the position keeper on the I/O thread, read by `position` in the user's. All of them are retried, so poll
raises none; but a topic that does not exist is usually a typo, so that is logged once per assigned topic.
"""

import logging
from collections.abc import Mapping

from barnabas.client.consumer.subscription import SubscriptionState
from barnabas.client.errors import UnknownTopicError
from barnabas.errors import KafkaError
from barnabas.types import TopicPartition

logger = logging.getLogger("barnabas.client.consumer")


class LastErrors:
    """The last error per partition without a position."""

    def __init__(self, subscription: SubscriptionState) -> None:
        self._subscription = subscription
        self._errors: dict[TopicPartition, KafkaError] = {}
        self._logged_topics: set[str] = set()
        """Topics that do not exist. Kept apart: a seek clears an error, and the topic still does not exist."""

    def record(self, failed: Mapping[TopicPartition, KafkaError]) -> None:
        for entry in [each for each in self._errors if self._subscription.find(each) is None]:
            del self._errors[entry]
        self._logged_topics &= {state.topic_partition.topic for state in self._subscription.states()}
        for entry, error in failed.items():
            if isinstance(error, UnknownTopicError) and entry.topic not in self._logged_topics:
                self._logged_topics.add(entry.topic)
                logger.warning("%s; it is read as soon as it exists", error.message)
            else:
                logger.debug("no position for %s yet: %s", entry, error)
            self._errors[entry] = error

    def clear(self, entry: TopicPartition) -> None:
        self._errors.pop(entry, None)

    def get(self, entry: TopicPartition) -> KafkaError | None:
        """From any thread."""
        return self._errors.get(entry)
