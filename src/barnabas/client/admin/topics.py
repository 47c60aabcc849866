"""Topics: create, delete, list, describe, more partitions.

Changes go to the controller (in KRaft every broker forwards them), lookups to any broker. Describing pages through
DescribeTopicPartitions, which knows eligible leader replicas, and falls back to Metadata on older brokers.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from barnabas.client.admin.attempts import Outcome
from barnabas.client.admin.errors import admin_error, check
from barnabas.client.admin.requests import AdminRequests, several
from barnabas.client.admin.topic_responses import created_topic, described_by_metadata, described_by_pages, listed_topic
from barnabas.client.admin.types import CreatedTopic, NewTopic, TopicDescription, TopicListing
from barnabas.client.admin.types.configs import config_text
from barnabas.client.errors import UnsupportedVersionError
from barnabas.client.retry import Deadline
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import create_partitions as partitions_messages
from barnabas.protocol.messages import create_topics as create_messages
from barnabas.protocol.messages import delete_topics as delete_messages
from barnabas.protocol.messages import describe_topic_partitions as page_messages
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.types import NO_TOPIC_ID, topic_id_from_text, topic_id_text

BROKERS_DEFAULT = -1
PARTITIONS_PER_PAGE = 2000


@dataclass(frozen=True, slots=True)
class TopicAdmin:
    """Topics and their partitions."""

    requests: AdminRequests

    async def create_topic(
        self,
        name: str,
        partitions: int | None = None,
        replication_factor: int | None = None,
        config: Mapping[str, object] | None = None,
        *,
        assignments: Mapping[int, Sequence[int]] | None = None,
        validate_only: bool = False,
        if_not_exists: bool = False,
        timeout: float | None = None,
    ) -> CreatedTopic:
        """Make a topic. Counts that are left out are the brokers' defaults; `assignments` places each partition.

        `if_not_exists`: a topic of that name is fine, whatever its settings; the result then has `existed`.
        """
        topic = NewTopic(
            name=name,
            partitions=partitions,
            replication_factor=replication_factor,
            config=config or {},
            assignments=assignments,
        )
        outcome = await self._create([topic], validate_only, if_not_exists, timeout)
        return outcome.only(name)

    async def create_topics(
        self,
        topics: Iterable[NewTopic],
        *,
        validate_only: bool = False,
        if_not_exists: bool = False,
        timeout: float | None = None,
    ) -> dict[str, CreatedTopic]:
        """Make several topics; each is made or refused on its own."""
        return (await self._create(list(topics), validate_only, if_not_exists, timeout)).all()

    async def _create(
        self, topics: list[NewTopic], validate_only: bool, if_not_exists: bool, timeout: float | None
    ) -> Outcome[str, CreatedTopic]:
        by_name = {topic.name: topic for topic in topics}
        if len(by_name) < len(topics):
            raise ValueError("the same topic is named twice")
        deadline = self.requests.deadline(timeout)

        async def send_to(node_id: int, names: list[str]) -> Mapping[str, CreatedTopic | KafkaError]:
            request = create_messages.CreateTopicsRequest(
                topics=[_creatable(by_name[name]) for name in names],
                timeout_ms=self.requests.request_timeout_ms(deadline),
                validate_only=validate_only,
            )
            by_default = any(_by_default(by_name[name]) for name in names)
            response = await self.requests.send(node_id, request, deadline, min_version=4 if by_default else 0)
            return {topic.name: created_topic(topic, if_not_exists) for topic in response.topics}

        def already(name: str, error: KafkaError) -> CreatedTopic | None:
            made = error.code is ErrorCode.TOPIC_ALREADY_EXISTS
            return CreatedTopic.of_name(name) if made else None

        return await self.requests.call_each(
            by_name,
            self.requests.on_controller,
            send_to,
            deadline,
            on_retry=self.requests.forget_controller,
            already=already,
        )

    async def delete_topic(
        self, name: str | None = None, *, topic_id: str | None = None, timeout: float | None = None
    ) -> None:
        """Delete a topic, by its name or by its id."""
        if (name is None) == (topic_id is None):
            raise ValueError("give a name or a topic_id, one of them")
        key = name if name is not None else str(topic_id)
        (await self._delete([key], topic_id is not None, timeout)).only(key)

    async def delete_topics(
        self, names: Iterable[str] = (), *, topic_ids: Iterable[str] = (), timeout: float | None = None
    ) -> None:
        """Delete several topics, by names or by ids."""
        names, topic_ids = several(names), several(topic_ids)
        if names and topic_ids:
            raise ValueError("give names or topic_ids, one of them")
        (await self._delete(names or topic_ids, bool(topic_ids), timeout)).all()

    async def _delete(self, keys: list[str], by_id: bool, timeout: float | None) -> Outcome[str, bool]:
        deadline = self.requests.deadline(timeout)
        if by_id:
            for key in keys:
                topic_id_from_text(key)

        async def send_to(node_id: int, requested: list[str]) -> Mapping[str, bool | KafkaError]:
            request = delete_messages.DeleteTopicsRequest(timeout_ms=self.requests.request_timeout_ms(deadline))
            if by_id:
                request.topics = [
                    delete_messages.DeleteTopicState(topic_id=topic_id_from_text(key)) for key in requested
                ]
                response = await self.requests.send(node_id, request, deadline, min_version=6)
                return {topic_id_text(each.topic_id): _deleted(each) for each in response.responses}
            request.topic_names = requested
            response = await self.requests.send(node_id, request, deadline, max_version=5)
            return {each.name: _deleted(each) for each in response.responses}

        def already(key: str, error: KafkaError) -> bool | None:
            return True if error.code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID) else None

        return await self.requests.call_each(
            keys,
            self.requests.on_controller,
            send_to,
            deadline,
            on_retry=self.requests.forget_controller,
            already=already,
        )

    async def list_topics(
        self, *, include_internal: bool = False, timeout: float | None = None
    ) -> dict[str, TopicListing]:
        """All topics by name; internal ones (`__consumer_offsets`) only if asked for."""
        deadline = self.requests.deadline(timeout)
        response = await self.requests.call(
            self.requests.any_node, lambda node: self._metadata_of(node, None, False, deadline), deadline
        )
        listed = [listed_topic(topic) for topic in response.topics if topic.name is not None]
        return {
            topic.name: topic
            for topic in sorted(listed, key=lambda topic: topic.name)
            if include_internal or not topic.is_internal
        }

    async def describe_topic(
        self,
        name: str | None = None,
        *,
        topic_id: str | None = None,
        include_authorized_operations: bool = False,
        timeout: float | None = None,
    ) -> TopicDescription:
        """Partitions of a topic with leader, replicas and in-sync replicas; by name or by id."""
        deadline = self.requests.deadline(timeout)
        if (name is None) == (topic_id is None):
            raise ValueError("give a name or a topic_id, one of them")
        if name is None:
            name = await self._name_of(str(topic_id), deadline)
        return (await self._describe([name], include_authorized_operations, deadline)).only(name)

    async def describe_topics(
        self,
        names: Iterable[str],
        *,
        include_authorized_operations: bool = False,
        timeout: float | None = None,
    ) -> dict[str, TopicDescription]:
        """The same of several topics by name."""
        return (
            await self._describe(several(names), include_authorized_operations, self.requests.deadline(timeout))
        ).all()

    async def _describe(self, names: list[str], operations: bool, deadline: Deadline) -> Outcome[str, TopicDescription]:
        async def send_to(node_id: int, requested: list[str]) -> Mapping[str, TopicDescription | KafkaError]:
            try:
                # The operations come with Metadata only in the form of a choice: pages always carry them.
                return await self._pages(node_id, requested, operations, deadline)
            except UnsupportedVersionError:
                response = await self._metadata_of(node_id, requested, operations, deadline)
                return {topic.name: described_by_metadata(topic) for topic in response.topics}

        return await self.requests.call_each(names, self.requests.on_any_node, send_to, deadline)

    async def _pages(
        self, node_id: int, names: Collection[str], operations: bool, deadline: Deadline
    ) -> dict[str, TopicDescription | KafkaError]:
        found: dict[str, page_messages.DescribeTopicPartitionsResponseTopic] = {}
        cursor: page_messages.Cursor | None = None
        while True:
            request = page_messages.DescribeTopicPartitionsRequest(
                topics=[page_messages.TopicRequest(name=name) for name in sorted(names)],
                response_partition_limit=PARTITIONS_PER_PAGE,
                cursor=cursor,
            )
            response = await self.requests.send(node_id, request, deadline)
            for topic in response.topics:
                if topic.name in found:
                    found[topic.name].partitions += topic.partitions
                else:
                    found[topic.name] = topic
            cursor = response.next_cursor
            if cursor is None:
                return {name: described_by_pages(topic, operations) for name, topic in found.items()}

    async def _name_of(self, topic_id: str, deadline: Deadline) -> str:
        wanted = topic_id_from_text(topic_id)

        async def send_to(node_id: int) -> str:
            request = MetadataRequest(topics=[MetadataRequestTopic(topic_id=wanted, name=None)])
            request.allow_auto_topic_creation = False
            response = await self.requests.send(node_id, request, deadline, min_version=12)
            topic = next(iter(response.topics))
            check(topic.error_code, f"no topic has the id {topic_id}")
            return str(topic.name)

        return await self.requests.call(self.requests.any_node, send_to, deadline)

    async def _metadata_of(
        self, node_id: int, names: Collection[str] | None, operations: bool, deadline: Deadline
    ) -> Any:
        """Metadata of topics (None: all) that never creates one."""
        topics = None if names is None else [MetadataRequestTopic(name=name) for name in names]
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        request.include_topic_authorized_operations = operations
        response = await self.requests.send(node_id, request, deadline, min_version=8 if operations else 4)
        check(response.error_code)
        return response

    async def add_partitions(
        self,
        name: str,
        total: int,
        *,
        assignments: Sequence[Sequence[int]] | None = None,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> None:
        """Raise the number of partitions to `total`; `assignments` places the new ones, in their order.

        Keys map to other partitions from then on: records of one key may be in two partitions.
        """
        deadline = self.requests.deadline(timeout)

        async def send_to(node_id: int) -> bool:
            topic = partitions_messages.CreatePartitionsTopic(name=name, count=total, assignments=None)
            if assignments is not None:
                topic.assignments = [
                    partitions_messages.CreatePartitionsAssignment(broker_ids=list(brokers)) for brokers in assignments
                ]
            request = partitions_messages.CreatePartitionsRequest(
                topics=[topic], timeout_ms=self.requests.request_timeout_ms(deadline), validate_only=validate_only
            )
            response = await self.requests.send(node_id, request, deadline)
            for result in response.results:
                check(result.error_code, result.error_message, topic=name)
            return True

        def already(error: KafkaError) -> bool | None:
            return True if error.code is ErrorCode.INVALID_PARTITIONS else None

        await self.requests.call(
            self.requests.controller, send_to, deadline, on_retry=self.requests.forget_controller, already=already
        )


def _creatable(topic: NewTopic) -> create_messages.CreatableTopic:
    by_hand = topic.assignments is not None
    return create_messages.CreatableTopic(
        name=topic.name,
        num_partitions=BROKERS_DEFAULT if by_hand or topic.partitions is None else topic.partitions,
        replication_factor=BROKERS_DEFAULT if by_hand or topic.replication_factor is None else topic.replication_factor,
        assignments=[
            create_messages.CreatableReplicaAssignment(partition_index=partition, broker_ids=list(brokers))
            for partition, brokers in sorted((topic.assignments or {}).items())
        ],
        configs=[
            create_messages.CreatableTopicConfig(name=name, value=config_text(value))
            for name, value in topic.config.items()
        ],
    )


def _by_default(topic: NewTopic) -> bool:
    return topic.assignments is None and (topic.partitions is None or topic.replication_factor is None)


def _deleted(result: delete_messages.DeletableTopicResult) -> bool | KafkaError:
    if not result.error_code:
        return True
    name = result.name if result.name is not None else None
    shown = name or (topic_id_text(result.topic_id) if result.topic_id != NO_TOPIC_ID else None)
    return admin_error(result.error_code, result.error_message, topic=shown)
