"""Brokers that come, go, restart, shut down or are forgotten: what becomes of them and of their partitions.

A broker that is gone, or registered again under another epoch, leaves every ISR. One that comes back is trusted with
committed records only if its directories took part in the epoch that the controller knows as its last one and lost
nothing since; else it leaves the eligible replicas too, before any election (KIP-966, KAFKA-14139). If one of its
directories is missing, or they are an old copy, it does not even come back as last known leader.

The order of the records matters if they do not fit into one write and the controller dies in between: what the next
controller would no longer know (that a broker has restarted, or lost records) is written after what follows from it.
"""

from collections.abc import Sequence
from typing import Any

from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.controller.commands import ControlledShutdown, UnregisterBroker
from barnabas.machines.controller.election import Election
from barnabas.machines.controller.image import NO_BROKER_EPOCH, BrokerImage, PartitionImage
from barnabas.machines.controller.records import BrokerChanged, BrokerRemoved, Record
from barnabas.machines.controller.view import View
from barnabas.types import TopicPartition


def decide_brokers_changed(
    view: View, brokers: Sequence[BrokerImage], *, take_over: bool = False
) -> tuple[Record, ...]:
    """`take_over`: a new controller also completes what its predecessor may have left undone."""
    image = view.image
    now = {broker.node_id: broker for broker in brokers}
    gone = {each: None for each in image.brokers if each not in now}
    came: dict[int, None] = {}
    restarted: dict[int, None] = {}
    lost_records: dict[int, None] = {}
    wiped: dict[int, None] = {}
    first: list[Record] = [BrokerChanged(image.brokers[each]._replace(is_fenced=True)) for each in gone]
    last: list[Record] = []
    for broker in sorted(now.values()):
        each = broker.node_id
        known = image.brokers.get(each) or image.fenced_brokers.get(each)
        if known is not None and not known.is_fenced and known.epoch == broker.epoch:
            continue
        came[each] = None
        if known is None or not known.is_fenced:
            restarted[each] = None
        if known is not None and not _kept_records(known, broker):
            lost_records[each] = None
            if _is_out_of_date(known, broker):
                wiped[each] = None
        (last if each in restarted or each in lost_records else first).append(BrokerChanged(broker))
    if not (first or last or take_over):
        return ()
    active = {each: None for each in now if each in came or each in view.active}
    leaving = {**gone, **restarted}
    if take_over:
        leaving |= {each: None for each in view.index.brokers_in_sync() if each not in now}
    concerned: list[TopicPartition] = []
    for each in {**leaving, **lost_records}:
        concerned += view.index.in_sync(each)
    for each in lost_records:
        concerned += view.index.eligible(each)
    if came or take_over:
        concerned += [TopicPartition(*key) for key in view.index.leaderless]
    elections = view.change_all(concerned, active, leaving=leaving, lost_records=lost_records, wiped=wiped)
    return (*first, *elections, *last)


def _kept_records(known: BrokerImage, broker: BrokerImage) -> bool:
    if _is_out_of_date(known, broker):
        return False
    if known.incarnation and known.incarnation == broker.incarnation:
        return True  # the same process lost its session
    return broker.previous_epoch == known.epoch and not broker.unclean_stop


def _is_out_of_date(known: BrokerImage, broker: BrokerImage) -> bool:
    """A directory is missing, or they are an old copy."""
    if not set(known.directory_ids) <= set(broker.directory_ids):
        return True
    if known.incarnation and known.incarnation == broker.incarnation:
        return False
    return broker.previous_epoch not in (NO_BROKER_EPOCH, known.epoch)


def decide_controlled_shutdown(view: View, command: ControlledShutdown) -> tuple[tuple[Record, ...], Any]:
    """Moves leaders away. What has no other in-sync replica goes on being led until the broker stops."""
    broker_id = command.broker_id
    broker = view.image.brokers.get(broker_id)
    if broker is None:
        raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"Broker id {broker_id} does not exist.")
    if command.broker_epoch != broker.epoch:
        raise KafkaError(ErrorCode.STALE_BROKER_EPOCH)
    active = {each: None for each in view.active if each != broker_id}

    def has_other(partition: PartitionImage) -> bool:
        return any(each in active for each in partition.in_sync_replicas)

    concerned = list(view.index.in_sync(broker_id))
    elections = view.change_all(
        concerned, active, leaving=(broker_id,), election=Election.CONTROLLED_SHUTDOWN, needs=has_other
    )
    remaining = []
    for topic, number in concerned:
        partition = view.image.topics[topic].partitions[number]
        if partition.leader == broker_id and not has_other(partition):
            remaining.append(TopicPartition(topic, number))
    shutting_down = () if broker.in_controlled_shutdown else (_shutting_down(broker),)
    return (*shutting_down, *elections), tuple(remaining)


def _shutting_down(broker: BrokerImage) -> BrokerChanged:
    return BrokerChanged(broker._replace(in_controlled_shutdown=True))


def decide_unregister(view: View, command: UnregisterBroker) -> tuple[tuple[Record, ...], None]:
    """Forgets a broker that is away; it no longer counts as an eligible leader of anything."""
    broker_id = command.broker_id
    if broker_id in view.image.brokers:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Broker {broker_id} is running: stop it before it is unregistered."
        )
    if broker_id not in view.image.fenced_brokers:
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker ID {broker_id} is not currently registered")
    concerned = [*view.index.in_sync(broker_id), *view.index.eligible(broker_id)]
    concerned += [
        TopicPartition(topic, number)
        for topic, number in view.index.leaderless
        if view.image.topics[topic].partitions[number].last_known_leader == broker_id
    ]
    gone = (broker_id,)
    elections = view.change_all(concerned, view.active, leaving=gone, lost_records=gone, wiped=gone)
    return (*elections, BrokerRemoved(broker_id)), None
