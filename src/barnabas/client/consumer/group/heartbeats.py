"""ConsumerGroupHeartbeat requests: each carries only what has changed since the last one with a response."""

from collections.abc import Collection

from barnabas.client.consumer.group.options import GroupOptions
from barnabas.client.consumer.group.subscription import Subscription
from barnabas.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from barnabas.types import TopicId

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
STATIC_LEAVE_EPOCH = -2
"""Gone for now: the place is kept for the same group.instance.id."""

OwnedIds = frozenset[tuple[TopicId, int]]


class Heartbeats:
    def __init__(self, options: GroupOptions) -> None:
        self._options = options
        self._sent_subscription: Subscription | None = None
        self._sent_owned: OwnedIds | None = None

    def forget_sent(self) -> None:
        """It is unknown what the coordinator has received: send everything again."""
        self._sent_subscription = self._sent_owned = None

    def must_say_owned(self) -> None:
        self._sent_owned = None

    def is_up_to_date(self, subscription: Subscription | None, owned: OwnedIds) -> bool:
        return self._sent_owned == owned and (
            subscription is None or not subscription.is_resolved or self._sent_subscription == subscription
        )

    def request(
        self, member_id: str, epoch: int, subscription: Subscription | None, owned: OwnedIds
    ) -> ConsumerGroupHeartbeatRequest:
        """Without a subscription the member is about to leave, and only shows that it is alive."""
        options = self._options
        request = ConsumerGroupHeartbeatRequest(
            group_id=options.group_id,
            member_id=member_id,
            member_epoch=epoch,
            instance_id=options.group_instance_id,
        )
        is_first = self._sent_subscription is None
        if epoch == JOIN_EPOCH or is_first:
            request.rebalance_timeout_ms = options.max_poll_interval_ms
            request.rack_id = options.client_rack or None
            request.server_assignor = options.group_remote_assignor
        if epoch == JOIN_EPOCH or self._sent_owned != owned:
            request.topic_partitions = _by_topic(owned)
            self._sent_owned = owned
        is_news = self._sent_subscription != subscription and subscription is not None and subscription.is_resolved
        if subscription is not None and (epoch == JOIN_EPOCH or is_news):
            self._say_subscription(request, subscription)
        return request

    def leave(self, member_id: str, epoch: int) -> ConsumerGroupHeartbeatRequest:
        options = self._options
        return ConsumerGroupHeartbeatRequest(
            group_id=options.group_id, member_id=member_id, member_epoch=epoch, instance_id=options.group_instance_id
        )

    def _say_subscription(self, request: ConsumerGroupHeartbeatRequest, subscription: Subscription) -> None:
        """An empty regular expression takes back the one said before; null would leave it as it is."""
        before, self._sent_subscription = self._sent_subscription, subscription
        request.subscribed_topic_names = sorted(subscription.topics)
        if subscription.remote_pattern is not None:
            request.subscribed_topic_regex = subscription.remote_pattern
        elif before is not None and before.remote_pattern is not None:
            request.subscribed_topic_regex = ""


def _by_topic(owned: Collection[tuple[TopicId, int]]) -> list[TopicPartitions]:
    by_topic: dict[TopicId, list[int]] = {}
    for topic_id, partition in sorted(owned):
        by_topic.setdefault(topic_id, []).append(partition)
    return [TopicPartitions(topic_id=topic_id, partitions=numbers) for topic_id, numbers in by_topic.items()]
