"""One broker as a member of the consumer group behind a shared subscription (KIP-848): heartbeats and offsets.

The coordinator assigns partitions on its side, so a member sends what it subscribes to and owns, and gets what it
should own. Requests go over links, to this broker as well, so there is one path wherever the coordinator is.
"""

from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.mqtt.session import Place
from barnabas.net.link import LinkError
from barnabas.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from barnabas.server.broker_links import LinkUse
from barnabas.types import GroupId

if TYPE_CHECKING:
    from barnabas.server.broker import Broker

GROUP: Final = 0
REBALANCE_TIMEOUT_MS: Final = 10_000
JOIN, LEAVE = 0, -1
OFFSET_COMMIT_VERSION: Final = 9
OFFSET_FETCH_VERSION: Final = 9
CODES: Final = {int(error): error for error in ErrorCode}


class ShareGroup:
    def __init__(self, broker: "Broker", group_id: str) -> None:
        self._broker = broker
        self._group_id = GroupId(group_id)
        self._coordinator = -1
        self._member_id = ""
        self._epoch = JOIN
        self._sent_topics: list[str] | None = None

    def start_again(self) -> None:
        """As a new member: the coordinator does not know this one any more."""
        self._member_id, self._epoch, self._sent_topics = uuid4().hex, JOIN, None

    def lose_coordinator(self) -> None:
        self._coordinator = -1

    async def beat(self, topics: list[str], owned: list[Place]) -> tuple[set[Place] | None, int]:
        """(what this member should own, None for no news; milliseconds to the next time). Raises KafkaError."""
        if not self._member_id:
            self.start_again()
        image = self._broker.cluster.image
        by_topic: dict[str, list[int]] = {}
        for topic, partition in owned:
            by_topic.setdefault(topic, []).append(partition)
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._group_id,
            member_id=self._member_id,
            member_epoch=self._epoch,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS if self._epoch == JOIN else -1,
            subscribed_topic_names=topics if topics != self._sent_topics else None,
            topic_partitions=[
                TopicPartitions(topic_id=image.topics[topic].topic_id, partitions=sorted(partitions))
                for topic, partitions in by_topic.items()
                if topic in image.topics
            ],
        )
        response = await self._ask(request)
        self._epoch, self._sent_topics = response.member_epoch, topics
        if response.assignment is None:
            return None, response.heartbeat_interval_ms
        assigned: set[Place] = set()
        for each in response.assignment.topic_partitions:
            found = image.topic_by_id(each.topic_id)
            if found is not None:
                assigned |= {(found.name, partition) for partition in each.partitions}
        return assigned, response.heartbeat_interval_ms

    async def leave(self) -> None:
        if self._epoch > JOIN:
            try:
                await self._ask(
                    ConsumerGroupHeartbeatRequest(
                        group_id=self._group_id, member_id=self._member_id, member_epoch=LEAVE
                    )
                )
            except KafkaError:
                pass  # the coordinator finds out by itself
        self._epoch = JOIN
        self._member_id = ""

    async def committed(self, place: Place) -> int:
        """-1 if there is none. Raises KafkaError."""
        topic = OffsetFetchRequestTopics(name=place[0], partition_indexes=[place[1]])
        group = OffsetFetchRequestGroup(
            group_id=self._group_id, member_id=self._member_id, member_epoch=self._epoch, topics=[topic]
        )
        response = await self._request(OffsetFetchRequest(groups=[group], require_stable=True), OFFSET_FETCH_VERSION)
        found = response.groups[0]
        _check(found.error_code)
        partition = found.topics[0].partitions[0]
        _check(partition.error_code)
        offset: int = partition.committed_offset
        return offset

    async def commit(self, offsets: dict[Place, int]) -> None:
        """Raises KafkaError."""
        by_topic: dict[str, list[OffsetCommitRequestPartition]] = {}
        for (topic, partition), offset in offsets.items():
            by_topic.setdefault(topic, []).append(
                OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset)
            )
        request = OffsetCommitRequest(
            group_id=self._group_id,
            generation_id_or_member_epoch=self._epoch,
            member_id=self._member_id,
            topics=[OffsetCommitRequestTopic(name=topic, partitions=each) for topic, each in by_topic.items()],
        )
        response = await self._request(request, OFFSET_COMMIT_VERSION)
        for topic in response.topics:
            for partition in topic.partitions:
                _check(partition.error_code)

    async def _ask(self, request: ConsumerGroupHeartbeatRequest) -> Any:
        response = await self._request(request, None)
        _check(response.error_code, response.error_message or "")
        return response

    async def _request(self, request: Any, version: int | None) -> Any:
        if self._coordinator < 0:
            await self._find_coordinator()
        link = self._broker.links.to(self._coordinator, LinkUse.MQTT_GROUPS)
        try:
            return await (link.request(request) if version is None else link.request(request, version))
        except LinkError as error:
            self._coordinator = -1
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, str(error)) from error

    async def _find_coordinator(self) -> None:
        request = FindCoordinatorRequest(key_type=GROUP, coordinator_keys=[self._group_id])
        link = self._broker.links.to(self._broker.node_id, LinkUse.MQTT_GROUPS)
        try:
            found = (await link.request(request)).coordinators[0]
        except LinkError as error:
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, str(error)) from error
        _check(found.error_code)
        self._coordinator = found.node_id


def _check(code: int, why: str = "") -> None:
    if code != ErrorCode.NONE:
        raise KafkaError(CODES.get(code, ErrorCode.UNKNOWN_SERVER_ERROR), why)
