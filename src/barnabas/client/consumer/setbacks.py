"""Why a partition has no position, or no leader to read from, yet: what the user is told who waits for it.

Noted by the position keeper on the I/O thread, read by `position` in the user's. All of it may pass, so poll raises
nothing; but a topic that does not exist is as a rule a typo, so that is logged, once for each topic that is assigned.
"""

import logging
from collections.abc import Mapping

from barnabas.client.consumer.subscription import SubscriptionState
from barnabas.client.errors import UnknownTopicError
from barnabas.errors import KafkaError
from barnabas.types import TopicPartition

logger = logging.getLogger("barnabas.client.consumer")


class Setbacks:
    def __init__(self, subscription: SubscriptionState) -> None:
        self._subscription = subscription
        self._reasons: dict[TopicPartition, KafkaError] = {}
        self._told: set[str] = set()
        """Topics that do not exist. Not by their reasons: a seek takes those away, and the topic is still not there."""

    def note(self, failed: Mapping[TopicPartition, KafkaError]) -> None:
        for entry in [each for each in self._reasons if self._subscription.find(each) is None]:
            del self._reasons[entry]
        self._told &= {state.topic_partition.topic for state in self._subscription.states()}
        for entry, error in failed.items():
            if isinstance(error, UnknownTopicError) and entry.topic not in self._told:
                self._told.add(entry.topic)
                logger.warning("%s; it is read as soon as it is there", error.message)
            else:
                logger.debug("no position for %s yet: %s", entry, error)
            self._reasons[entry] = error

    def clear(self, entry: TopicPartition) -> None:
        self._reasons.pop(entry, None)

    def reason(self, entry: TopicPartition) -> KafkaError | None:
        """From any thread."""
        return self._reasons.get(entry)
