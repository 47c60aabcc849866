"""The consumer: fetching, positions, groups. `Consumer` blocks; `barnabas.client.consumer.aio` has its asyncio twin."""

from barnabas.client.consumer.consumer import Consumer
from barnabas.client.consumer.group.machine import GroupMetadata
from barnabas.client.consumer.listener import ConsumerInterceptor, RebalanceListener
from barnabas.client.consumer.offsets import OffsetAndMetadata, OffsetAndTimestamp, SubscriptionPattern
from barnabas.records.codec import ConsumerRecord

__all__ = [
    "Consumer",
    "ConsumerInterceptor",
    "ConsumerRecord",
    "GroupMetadata",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "RebalanceListener",
    "SubscriptionPattern",
]
