"""Log directories of brokers: what lies in them and how large it is, and moving replicas between them.

Each broker reports its own directories.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from barnabas.client.admin.attempts import Outcome
from barnabas.client.admin.errors import admin_error, check
from barnabas.client.admin.records import by_topic, named_partition
from barnabas.client.admin.requests import AdminRequests
from barnabas.client.admin.types import LogDirDescription, ReplicaInfo
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from barnabas.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResult,
)
from barnabas.types import TopicPartition


class Replica(NamedTuple):
    """The copy of a partition that one broker holds."""

    partition: TopicPartition
    broker_id: int


@dataclass(frozen=True, slots=True)
class LogDirAdmin:
    """Log directories of brokers and the replicas in them."""

    requests: AdminRequests

    async def describe_log_dirs(
        self,
        broker_ids: Iterable[int] | None = None,
        *,
        partitions: Iterable[tuple[str, int]] | None = None,
        timeout: float | None = None,
    ) -> dict[int, dict[str, LogDirDescription]]:
        """Log directories by broker and path, with the replicas in them; of all brokers and partitions if left out."""
        deadline = self.requests.deadline(timeout)
        brokers = await self.requests.brokers(deadline) if broker_ids is None else list(broker_ids)
        wanted = None if partitions is None else by_topic(named_partition(each) for each in partitions)

        async def send_to(node_id: int, keys: list[int]) -> Mapping[int, dict[str, LogDirDescription] | KafkaError]:
            topics = None
            if wanted is not None:
                topics = [
                    DescribableLogDirTopic(topic=topic, partitions=[each.partition for each in group])
                    for topic, group in wanted.items()
                ]
            response = await self.requests.send(node_id, DescribeLogDirsRequest(topics=topics), deadline)
            check(response.error_code)
            return {node_id: {each.log_dir: _log_dir(each) for each in response.results}}

        outcome = await self.requests.call_each(brokers, self.requests.on_brokers, send_to, deadline)
        return outcome.all()

    async def alter_replica_log_dirs(
        self,
        moves: Mapping[Replica, str] | Mapping[tuple[tuple[str, int], int], str],
        *,
        timeout: float | None = None,
    ) -> None:
        """Move replicas to another directory of the same broker: (partition, broker id) -> path.

        The broker copies in the background; until it is done `describe_log_dirs` shows a future replica. For one that
        it does not have it raises REPLICA_NOT_AVAILABLE at once, and remembers the directory until it is given one.
        """
        wanted = {Replica(named_partition(key[0]), key[1]): path for key, path in moves.items()}
        (await self._move(wanted, timeout)).all()

    async def _move(self, wanted: Mapping[Replica, str], timeout: float | None) -> Outcome[Replica, bool]:
        deadline = self.requests.deadline(timeout)
        absent: dict[Replica, KafkaError] = {}

        async def locate(keys: list[Replica]) -> Mapping[Replica, int | KafkaError]:
            places = await self.requests.on_brokers(sorted({key.broker_id for key in keys}))
            return {key: places[key.broker_id] for key in keys}

        async def send_to(node_id: int, keys: list[Replica]) -> Mapping[Replica, bool | KafkaError]:
            by_path: dict[str, list[TopicPartition]] = defaultdict(list)
            for key in keys:
                by_path[wanted[key]].append(key.partition)
            request = AlterReplicaLogDirsRequest(
                dirs=[
                    AlterReplicaLogDir(
                        path=path,
                        topics=[
                            AlterReplicaLogDirTopic(name=topic, partitions=[each.partition for each in group])
                            for topic, group in by_topic(partitions).items()
                        ],
                    )
                    for path, partitions in by_path.items()
                ]
            )
            response = await self.requests.send(node_id, request, deadline)
            found: dict[Replica, bool | KafkaError] = {}
            for topic in response.results:
                for each in topic.partitions:
                    key = Replica(TopicPartition(topic.topic_name, each.partition_index), node_id)
                    found[key] = True
                    if each.error_code:
                        error = admin_error(each.error_code, topic=topic.topic_name, partition=each.partition_index)
                        if error.code is ErrorCode.REPLICA_NOT_AVAILABLE:
                            # Elsewhere it means to try again; here it is what the caller wants to know.
                            absent[key] = error
                        else:
                            found[key] = error
            return found

        outcome = await self.requests.call_each(wanted, locate, send_to, deadline)
        for key, error in absent.items():
            outcome.results.pop(key, None)
            outcome.errors[key] = error
        return outcome


def _log_dir(log_dir: DescribeLogDirsResult) -> LogDirDescription:
    return LogDirDescription(
        path=log_dir.log_dir,
        error=admin_error(log_dir.error_code) if log_dir.error_code else None,
        replicas={
            TopicPartition(topic.name, each.partition_index): ReplicaInfo(
                size=each.partition_size, offset_lag=each.offset_lag, is_future=each.is_future_key
            )
            for topic in log_dir.topics
            for each in topic.partitions
        },
        total_bytes=log_dir.total_bytes if log_dir.total_bytes >= 0 else None,
        usable_bytes=log_dir.usable_bytes if log_dir.usable_bytes >= 0 else None,
    )
