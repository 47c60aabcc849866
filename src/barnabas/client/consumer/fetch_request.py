"""What the fetcher asks a broker for, as a message: what a fetch session has not been told yet."""

from barnabas.client.consumer.fetch_session import FetchPlan, SessionPartition
from barnabas.client.consumer.partition_state import PartitionState
from barnabas.client.options import ConsumerOptions
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic


def session_partition(state: PartitionState, max_bytes: int) -> SessionPartition:
    return SessionPartition(state.topic_id, state.fetch_offset, state.leader_epoch, max_bytes)


def fetch_request(plan: FetchPlan, version: int, options: ConsumerOptions) -> FetchRequest:
    topics: dict[str, FetchTopic] = {}
    for (topic, partition), entry in plan.send.items():
        of_topic = topics.get(topic)
        if of_topic is None:
            of_topic = topics[topic] = FetchTopic(topic=topic, topic_id=entry.topic_id, partitions=[])
        of_topic.partitions.append(
            FetchPartition(
                partition=partition,
                current_leader_epoch=entry.current_leader_epoch,
                fetch_offset=entry.fetch_offset,
                partition_max_bytes=entry.max_bytes,
            )
        )
    return FetchRequest(
        max_wait_ms=options.fetch_max_wait_ms,
        min_bytes=options.fetch_min_bytes,
        max_bytes=options.fetch_max_bytes,
        isolation_level=int(options.isolation_level == "read_committed"),
        session_id=plan.session_id,
        session_epoch=plan.epoch,
        topics=list(topics.values()),
        forgotten_topics_data=_forgotten(plan) if version >= 7 else [],
        rack_id=options.client_rack or "",
    )


def _forgotten(plan: FetchPlan) -> list[ForgottenTopic]:
    topics: dict[tuple[bytes, str], ForgottenTopic] = {}
    for topic_id, topic, partition in plan.forget:
        entry = topics.setdefault((topic_id, topic), ForgottenTopic(topic=topic, topic_id=topic_id, partitions=[]))
        entry.partitions.append(partition)
    return list(topics.values())
