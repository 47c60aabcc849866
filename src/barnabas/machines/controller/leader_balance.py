"""Automatic balancing: leadership goes back to preferred replicas once they are in sync.

Looked at by a timer (`server/leader_balancing.py`). As in Kafka 4, any leader that is not the preferred one counts.
"""

from barnabas.machines.controller.election import Election
from barnabas.machines.controller.records import PartitionsChanged
from barnabas.machines.controller.view import View
from barnabas.types import TopicPartition

MAX_ELECTIONS = 1000
"""In one step; the next look takes the rest."""


def decide_balance(view: View) -> tuple[tuple[PartitionsChanged, ...], int]:
    """Reply: how many leaders moved."""
    topics, active = view.image.topics, view.active
    concerned = [
        TopicPartition(topic, number)
        for broker_id in active
        for topic, number in view.index.imbalanced.get(broker_id, {})
        if broker_id in topics[topic].partitions[number].in_sync_replicas
    ]
    records = view.change_all(concerned[:MAX_ELECTIONS], active, election=Election.PREFERRED)
    return records, sum(len(record.partitions) for record in records)
