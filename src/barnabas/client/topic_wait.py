"""Waiting until a topic, or the leader of a partition, is known. Used by `cluster` only."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from barnabas.client.errors import ClientTimeoutError, UnknownTopicError, error_for
from barnabas.client.metadata import MetadataCache, NodeAndEpoch, TopicMetadata
from barnabas.client.retry import Deadline
from barnabas.errors import ErrorCode, KafkaError
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.client.cluster_client import ClusterClient

T = TypeVar("T")


async def wait_for_topic(
    cluster: "ClusterClient", topic: str, deadline: Deadline, allow_auto_topic_creation: bool
) -> TopicMetadata:
    return await _wait_for(
        cluster, topic, deadline, lambda cache: cache.topic(topic), allow_auto_topic_creation, f"topic {topic}"
    )


async def wait_for_leader(cluster: "ClusterClient", tp: TopicPartition, deadline: Deadline) -> NodeAndEpoch:
    return await _wait_for(cluster, tp.topic, deadline, lambda cache: cache.leader(tp), False, f"partition {tp}")


async def _wait_for(
    cluster: "ClusterClient",
    topic: str,
    deadline: Deadline,
    look: Callable[[MetadataCache], T | None],
    allow_auto_topic_creation: bool,
    what: str,
) -> T:
    backoff = cluster.new_backoff()
    failure: KafkaError | None = None
    while True:
        found = look(cluster.metadata)
        if found is not None:
            return found
        try:
            async with asyncio.timeout(deadline.remaining_s):
                await cluster.refresh_metadata((topic,), allow_auto_topic_creation=allow_auto_topic_creation)
        except KafkaError as error:
            failure = error
        except TimeoutError:
            # The last failure says more to the user than that the time is over.
            failure = failure or ClientTimeoutError(f"{what}: no broker described it in time")
        else:
            found = look(cluster.metadata)
            if found is not None:
                return found
            failure = _failure(cluster.metadata, topic, what)
        pause_ms = backoff.next_ms()
        if not failure.retriable or pause_ms >= deadline.remaining_ms:
            raise failure
        await asyncio.sleep(pause_ms / 1000)


def _failure(cache: MetadataCache, topic: str, what: str) -> KafkaError:
    code = cache.invalid_topics.get(topic, ErrorCode.NONE)
    if code not in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
        return error_for(code, topic=topic)
    if topic not in cache.topics:
        return UnknownTopicError(f"{what}: there is no such topic, create it or look for a typo in its name")
    if what == f"topic {topic}":
        return error_for(ErrorCode.LEADER_NOT_AVAILABLE, topic=topic)
    count = cache.topics[topic].partition_count
    number = int(what.rpartition("-")[2])
    if number >= count:
        return UnknownTopicError(f"{what}: the topic has {count} partitions, numbered from 0")
    return error_for(ErrorCode.LEADER_NOT_AVAILABLE, f"{what}: no leader is elected at present")
