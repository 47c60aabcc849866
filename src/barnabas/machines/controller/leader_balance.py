"""Automatic balancing: leadership goes back to preferred replicas of brokers that lead too few of theirs.

Looked at by a timer (`auto.leader.rebalance.enable`, `leader.imbalance.check.interval.seconds`): a broker is imbalanced
if others lead more than `leader.imbalance.per.broker.percentage` of the partitions that it should lead.
"""

from barnabas.machines.controller.commands import BalanceLeaders
from barnabas.machines.controller.election import Election
from barnabas.machines.controller.records import PartitionsChanged
from barnabas.machines.controller.view import View
from barnabas.types import TopicPartition

MAX_ELECTIONS = 1000
"""In one step; the next look takes the rest."""


def decide_balance(view: View, command: BalanceLeaders) -> tuple[tuple[PartitionsChanged, ...], int]:
    """Reply: how many leaders moved."""
    concerned: list[TopicPartition] = []
    active = view.active
    for broker_id in active:
        others_lead = view.index.imbalanced.get(broker_id, {})
        share = 100 * len(others_lead)
        if share > command.percentage * view.index.preferred_counts.get(broker_id, 0):
            # Whoever is not in sync yet has its turn later.
            partitions = view.image.topics
            concerned += [
                TopicPartition(*key)
                for key in others_lead
                if broker_id in partitions[key[0]].partitions[key[1]].in_sync_replicas
            ]
    records = view.change_all(concerned[:MAX_ELECTIONS], active, election=Election.PREFERRED)
    return records, sum(len(record.partitions) for record in records)
