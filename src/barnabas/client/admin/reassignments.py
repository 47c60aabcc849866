"""Where partitions live and who leads them: reassignments (KIP-455), elections (KIP-460), by the controller."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from barnabas.client.admin.attempts import Outcome
from barnabas.client.admin.errors import admin_error, check
from barnabas.client.admin.records import by_topic, named_partition
from barnabas.client.admin.requests import AdminRequests
from barnabas.client.admin.types import PartitionReassignment
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import alter_partition_reassignments as alter_messages
from barnabas.protocol.messages import elect_leaders as election_messages
from barnabas.protocol.messages import list_partition_reassignments as list_messages
from barnabas.types import TopicPartition

ElectionType = Literal["preferred", "unclean"]
_ELECTION_TYPES = {"preferred": 0, "unclean": 1}


@dataclass(frozen=True, slots=True)
class ReassignmentAdmin:
    """Replica reassignments and leader elections."""

    requests: AdminRequests

    async def alter_partition_reassignments(
        self,
        reassignments: Mapping[TopicPartition, Sequence[int] | None] | Mapping[tuple[str, int], Sequence[int] | None],
        *,
        allow_replication_factor_change: bool = True,
        timeout: float | None = None,
    ) -> None:
        """Start to move partitions to these replicas (the first is preferred as leader); None cancels a move.

        Returns when the moves have begun: `list_partition_reassignments` shows those under way.
        """
        wanted = {named_partition(key): replicas for key, replicas in reassignments.items()}
        deadline = self.requests.deadline(timeout)

        async def send_to(node_id: int, requested: list[TopicPartition]) -> Mapping[TopicPartition, bool | KafkaError]:
            request = alter_messages.AlterPartitionReassignmentsRequest(
                timeout_ms=self.requests.request_timeout_ms(deadline),
                allow_replication_factor_change=allow_replication_factor_change,
                topics=[
                    alter_messages.ReassignableTopic(
                        name=topic, partitions=[_reassignable(key, wanted[key]) for key in keys]
                    )
                    for topic, keys in by_topic(requested).items()
                ],
            )
            oldest = 0 if allow_replication_factor_change else 1
            response = await self.requests.send(node_id, request, deadline, min_version=oldest)
            check(response.error_code, response.error_message)
            return {
                TopicPartition(topic.name, each.partition_index): (
                    admin_error(each.error_code, each.error_message, topic=topic.name, partition=each.partition_index)
                    if each.error_code
                    else True
                )
                for topic in response.responses
                for each in topic.partitions
            }

        def already(key: TopicPartition, error: KafkaError) -> bool | None:
            cancelled = wanted[key] is None and error.code is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
            return True if cancelled else None

        on_retry = self.requests.forget_controller
        outcome: Outcome[TopicPartition, bool] = await self.requests.call_each(
            wanted, self.requests.on_controller, send_to, deadline, on_retry=on_retry, already=already
        )
        outcome.all()

    async def list_partition_reassignments(
        self, partitions: Iterable[tuple[str, int]] | None = None, *, timeout: float | None = None
    ) -> dict[TopicPartition, PartitionReassignment]:
        """Moves under way, of all partitions or of these."""
        deadline = self.requests.deadline(timeout)
        wanted = None if partitions is None else by_topic(named_partition(each) for each in partitions)

        async def send_to(node_id: int) -> dict[TopicPartition, PartitionReassignment]:
            request = list_messages.ListPartitionReassignmentsRequest(
                timeout_ms=self.requests.request_timeout_ms(deadline)
            )
            if wanted is not None:
                request.topics = [
                    list_messages.ListPartitionReassignmentsTopics(
                        name=topic, partition_indexes=[key.partition for key in keys]
                    )
                    for topic, keys in wanted.items()
                ]
            response = await self.requests.send(node_id, request, deadline)
            check(response.error_code, response.error_message)
            return {
                TopicPartition(topic.name, each.partition_index): PartitionReassignment(
                    replicas=tuple(each.replicas),
                    adding_replicas=tuple(each.adding_replicas),
                    removing_replicas=tuple(each.removing_replicas),
                )
                for topic in response.topics
                for each in topic.partitions
            }

        return await self.requests.call(
            self.requests.controller, send_to, deadline, on_retry=self.requests.forget_controller
        )

    async def elect_leaders(
        self,
        partitions: Iterable[tuple[str, int]] | None = None,
        *,
        election_type: ElectionType = "preferred",
        timeout: float | None = None,
    ) -> dict[TopicPartition, bool]:
        """Have leaders elected; False where the right one leads already. Without partitions: wherever it is needed.

        "unclean" may make a replica leader that lacks records: they are lost.
        """
        deadline = self.requests.deadline(timeout)
        wanted = None if partitions is None else [named_partition(each) for each in partitions]

        async def send_to(node_id: int) -> dict[TopicPartition, bool | KafkaError]:
            topics = None
            if wanted is not None:
                topics = [
                    election_messages.TopicPartitions(topic=topic, partitions=[key.partition for key in keys])
                    for topic, keys in by_topic(wanted).items()
                ]
            request = election_messages.ElectLeadersRequest(
                election_type=_ELECTION_TYPES[election_type],
                topic_partitions=topics,
                timeout_ms=self.requests.request_timeout_ms(deadline),
            )
            response = await self.requests.send(
                node_id, request, deadline, min_version=1 if request.election_type else 0
            )
            check(response.error_code)
            return {
                TopicPartition(topic.topic, each.partition_id): _elected(topic.topic, each)
                for topic in response.replica_election_results
                for each in topic.partition_result
            }

        results = await self.requests.call(
            self.requests.controller, send_to, deadline, on_retry=self.requests.forget_controller
        )
        outcome: Outcome[TopicPartition, bool] = Outcome()
        for key, result in sorted(results.items()):
            if isinstance(result, KafkaError):
                outcome.errors[key] = result
            else:
                outcome.results[key] = result
        return outcome.all()


def _reassignable(key: TopicPartition, replicas: Sequence[int] | None) -> alter_messages.ReassignablePartition:
    return alter_messages.ReassignablePartition(
        partition_index=key.partition, replicas=None if replicas is None else list(replicas)
    )


def _elected(topic: str, result: election_messages.PartitionResult) -> bool | KafkaError:
    if result.error_code == ErrorCode.ELECTION_NOT_NEEDED:
        return False
    if result.error_code:
        return admin_error(result.error_code, result.error_message, topic=topic, partition=result.partition_id)
    return True
