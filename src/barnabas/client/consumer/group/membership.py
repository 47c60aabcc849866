"""The membership of a consumer in its group, behind one interface for both protocols; chosen by `group_protocol`."""

import re
from collections.abc import Callable
from typing import Protocol

from barnabas.client.cluster_client import ClusterClient
from barnabas.client.consumer.group.classic import ClassicMachine
from barnabas.client.consumer.group.consumer import ConsumerMachine
from barnabas.client.consumer.group.driver import MembershipDriver
from barnabas.client.consumer.group.events import RebalanceEvent
from barnabas.client.consumer.group.machine import GroupMetadata
from barnabas.client.consumer.group.options import CONSUMER, GroupOptions
from barnabas.client.consumer.offsets import SubscriptionPattern
from barnabas.client.environment import environment
from barnabas.clock import Clock
from barnabas.errors import KafkaError
from barnabas.types import topic_id_text


class Membership(Protocol):
    """What a consumer uses; `driver` says which of these may be called from which thread."""

    @property
    def error(self) -> KafkaError | None:
        """Fatal: to be raised by poll once all events are taken. A new subscription clears it."""
        ...

    @property
    def is_lost(self) -> bool: ...

    @property
    def subscription(self) -> frozenset[str]: ...

    async def start(self) -> None: ...

    async def close(self, leave: bool) -> None: ...

    def subscribe(
        self, topics: frozenset[str] | None, pattern: re.Pattern[str] | SubscriptionPattern | None = None
    ) -> None: ...

    def polled(self, now_ms: int) -> None: ...

    def next_event(self) -> RebalanceEvent | None: ...

    def group_metadata(self) -> GroupMetadata: ...

    def request_rejoin(self, reason: str) -> None: ...


class ClassicMembership(MembershipDriver):
    """JoinGroup, SyncGroup, Heartbeat: the members assign the partitions among themselves."""

    def __init__(
        self,
        cluster: ClusterClient,
        options: GroupOptions,
        *,
        on_event: Callable[[], None] | None = None,
        clock: Clock | None = None,
    ) -> None:
        super().__init__(cluster, ClassicMachine(options), on_event=on_event, clock=clock)


class ConsumerProtocolMembership(MembershipDriver):
    """KIP-848: the coordinator assigns. The member makes up its own id (KIP-1082)."""

    def __init__(
        self,
        cluster: ClusterClient,
        options: GroupOptions,
        *,
        on_event: Callable[[], None] | None = None,
        clock: Clock | None = None,
    ) -> None:
        machine = ConsumerMachine(options, topic_id_text(environment().new_random().randbytes(16)))
        super().__init__(cluster, machine, on_event=on_event, clock=clock)


def make_membership(
    cluster: ClusterClient,
    options: GroupOptions,
    *,
    on_event: Callable[[], None] | None = None,
    clock: Clock | None = None,
) -> MembershipDriver:
    kind = ConsumerProtocolMembership if options.group_protocol == CONSUMER else ClassicMembership
    return kind(cluster, options, on_event=on_event, clock=clock)
