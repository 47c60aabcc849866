"""`python -m benchmarks.hostile_requests [--only NAME]`: what one connection can do to everybody else.

A broker process gets one attack at a time. Meanwhile another process sends ApiVersions, one at a time, and notes how
long each response takes. The table has the broker's processor time and peak memory for the attack, and the bystander's
p99 and worst delay: in loop time, which is what the broker's thread ran meanwhile, and by the wall clock, which a busy
machine makes longer. Requests are encoded before, so that the load generator does not compete with the broker.
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import time
from collections.abc import Callable, Iterable
from functools import partial
from multiprocessing.synchronize import Event
from pathlib import Path
from statistics import quantiles
from typing import Any

from barnabas_process import BarnabasProcess
from raw_client import ConnectionEnded, RawClient, batch

from barnabas.protocol import encode_request
from barnabas.protocol.messages import add_partitions_to_txn as adding
from barnabas.protocol.messages import consumer_group_heartbeat as beating
from barnabas.protocol.messages import create_topics as creating
from barnabas.protocol.messages import delete_groups, delete_topics, describe_groups, find_coordinator
from barnabas.protocol.messages import describe_configs as configs
from barnabas.protocol.messages import describe_log_dirs as dirs
from barnabas.protocol.messages import fetch as fetching
from barnabas.protocol.messages import list_offsets as listing
from barnabas.protocol.messages import metadata as meta
from barnabas.protocol.messages import offset_commit as committing
from barnabas.protocol.messages import offset_fetch as offsets
from barnabas.protocol.messages import produce as producing
from barnabas.protocol.messages import txn_offset_commit as txn_committing
from barnabas.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.protocol.messages.list_groups import ListGroupsRequest

Attack = Callable[[], Iterable[tuple[Any, int]]]
"""Requests with their versions, sent one after the other without waiting."""
TOPIC = "known"
MANY = 100_000
SETTINGS = {"auto.create.topics.enable": "false", "offsets.topic.num.partitions": "4"}


def metadata_one_topic() -> Iterable[tuple[Any, int]]:
    yield meta.MetadataRequest(topics=[meta.MetadataRequestTopic(name=TOPIC)] * 500_000), 12


def metadata_unknown_topics() -> Iterable[tuple[Any, int]]:
    yield meta.MetadataRequest(topics=[meta.MetadataRequestTopic(name=f"no-{n}") for n in range(50_000)]), 12


def describe_configs_groups() -> Iterable[tuple[Any, int]]:
    named = [configs.DescribeConfigsResource(resource_type=32, resource_name=f"g{n}") for n in range(10_000)]
    yield configs.DescribeConfigsRequest(resources=named), 4


def describe_configs_broker() -> Iterable[tuple[Any, int]]:
    yield configs.DescribeConfigsRequest(resources=[configs.DescribeConfigsResource(resource_type=4)] * 10_000), 4


def joins_848() -> Iterable[tuple[Any, int]]:
    for number in range(3_000):
        yield (
            beating.ConsumerGroupHeartbeatRequest(
                group_id="joins",
                member_id=f"member-{number}",
                rebalance_timeout_ms=60_000,
                subscribed_topic_names=[TOPIC],
                topic_partitions=[],
            ),
            1,
        )


def list_offsets_many() -> Iterable[tuple[Any, int]]:
    partitions = [listing.ListOffsetsPartition(partition_index=n, timestamp=-1) for n in range(MANY)]
    yield listing.ListOffsetsRequest(topics=[listing.ListOffsetsTopic(name=TOPIC, partitions=partitions)]), 7


def find_coordinator_many() -> Iterable[tuple[Any, int]]:
    yield find_coordinator.FindCoordinatorRequest(coordinator_keys=[f"k{n}" for n in range(MANY)]), 4


def offset_fetch_partitions() -> Iterable[tuple[Any, int]]:
    topic = offsets.OffsetFetchRequestTopics(name=TOPIC, partition_indexes=list(range(MANY)))
    yield offsets.OffsetFetchRequest(groups=[offsets.OffsetFetchRequestGroup(group_id="g", topics=[topic])]), 8


def offset_fetch_groups() -> Iterable[tuple[Any, int]]:
    group = offsets.OffsetFetchRequestGroup(group_id="committed", topics=None)
    yield offsets.OffsetFetchRequest(groups=[group] * MANY), 8


def offset_commit_many() -> Iterable[tuple[Any, int]]:
    partition = committing.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topic = committing.OffsetCommitRequestTopic(name=TOPIC, partitions=[partition] * MANY)
    yield committing.OffsetCommitRequest(group_id="committed", generation_id_or_member_epoch=-1, topics=[topic]), 8


def describe_groups_many() -> Iterable[tuple[Any, int]]:
    yield describe_groups.DescribeGroupsRequest(groups=["committed"] * MANY), 5


def delete_groups_many() -> Iterable[tuple[Any, int]]:
    yield delete_groups.DeleteGroupsRequest(groups_names=[f"none-{n}" for n in range(MANY)]), 2


def create_topics_many() -> Iterable[tuple[Any, int]]:
    topics = [creating.CreatableTopic(name=f"v-{n}", num_partitions=1, replication_factor=1) for n in range(20_000)]
    yield creating.CreateTopicsRequest(topics=topics, validate_only=True, timeout_ms=60_000), 7


def delete_topics_many() -> Iterable[tuple[Any, int]]:
    yield delete_topics.DeleteTopicsRequest(topic_names=[f"no-{n}" for n in range(MANY)], timeout_ms=60_000), 5


def describe_log_dirs_many() -> Iterable[tuple[Any, int]]:
    topics = [dirs.DescribableLogDirTopic(topic=f"no-{n}", partitions=[0]) for n in range(MANY)]
    yield dirs.DescribeLogDirsRequest(topics=topics), 4


def add_partitions_many() -> Iterable[tuple[Any, int]]:
    topics = [adding.AddPartitionsToTxnTopic(name=TOPIC, partitions=list(range(MANY)))]
    yield adding.AddPartitionsToTxnRequest(v3_and_below_transactional_id="t", v3_and_below_topics=topics), 3


def txn_offset_commit_many() -> Iterable[tuple[Any, int]]:
    partition = txn_committing.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topic = txn_committing.TxnOffsetCommitRequestTopic(name=TOPIC, partitions=[partition] * MANY)
    yield txn_committing.TxnOffsetCommitRequest(transactional_id="t", group_id="g", topics=[topic]), 3


def fetch_many() -> Iterable[tuple[Any, int]]:
    partitions = [fetching.FetchPartition(partition=n, partition_max_bytes=1) for n in range(MANY)]
    topic = fetching.FetchTopic(topic=TOPIC, partitions=partitions)
    yield fetching.FetchRequest(max_wait_ms=0, max_bytes=1000, session_epoch=-1, topics=[topic]), 12


def produce_many(count: int, topic: str, *, one_partition: bool) -> Iterable[tuple[Any, int]]:
    data = bytes(batch())
    partitions = [producing.PartitionProduceData(index=0 if one_partition else n, records=data) for n in range(count)]
    yield (
        producing.ProduceRequest(
            acks=1, timeout_ms=30_000, topic_data=[producing.TopicProduceData(name=topic, partition_data=partitions)]
        ),
        9,
    )


def produce_nothing() -> Iterable[tuple[Any, int]]:
    partitions = [producing.PartitionProduceData(index=n, records=None) for n in range(MANY)]
    topic = producing.TopicProduceData(name=TOPIC, partition_data=partitions)
    yield producing.ProduceRequest(acks=1, timeout_ms=30_000, topic_data=[topic]), 9


def list_groups_many(client: RawClient) -> Attack:
    """20,000 groups that have only offsets."""
    partition = committing.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topic = committing.OffsetCommitRequestTopic(name=TOPIC, partitions=[partition])
    for number in range(20_000):
        request = committing.OffsetCommitRequest(
            group_id=f"group-{number}", generation_id_or_member_epoch=-1, topics=[topic]
        )
        client.post(request, 8)
        if number % 100 == 99:
            for _ in range(100):
                client.read_frame()
    return lambda: [(ListGroupsRequest(), 4)]


def offset_fetch_all(version: int, client: RawClient) -> Attack:
    """All offsets of a group that has 10,000 of them."""
    count = 10_000
    client.create_topic("wide", count)
    for start in range(0, count, 1000):
        partitions = [
            committing.OffsetCommitRequestPartition(partition_index=n, committed_offset=1)
            for n in range(start, start + 1000)
        ]
        topic = committing.OffsetCommitRequestTopic(name="wide", partitions=partitions)
        answer = client.ask(
            committing.OffsetCommitRequest(group_id="all", generation_id_or_member_epoch=-1, topics=[topic]), 8
        )
        assert not any(each.error_code for each in answer.topics[0].partitions), answer
    if version < 8:
        return lambda: [(offsets.OffsetFetchRequest(group_id="all", topics=None), version)]
    group = offsets.OffsetFetchRequestGroup(group_id="all", topics=None)
    return lambda: [(offsets.OffsetFetchRequest(groups=[group]), version)]


def offsets_in_transaction(client: RawClient) -> Attack:
    """As txn_offset_commit_many, in a transaction that exists: the offsets are written."""
    client.ask(find_coordinator.FindCoordinatorRequest(key_type=1, coordinator_keys=["t"]), 4)
    request = InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=60_000)
    while (producer := client.ask(request, 4)).error_code:
        time.sleep(0.05)  # the coordinator loads
    added = client.ask(
        AddOffsetsToTxnRequest(transactional_id="t", producer_id=producer.producer_id, producer_epoch=0, group_id="g"),
        3,
    )
    assert added.error_code == 0, added
    partition = txn_committing.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topic = txn_committing.TxnOffsetCommitRequestTopic(name=TOPIC, partitions=[partition] * MANY)
    request = txn_committing.TxnOffsetCommitRequest(
        transactional_id="t", group_id="g", producer_id=producer.producer_id, producer_epoch=0, topics=[topic]
    )
    return lambda: [(request, 3)]


PREPARED: dict[str, Callable[[RawClient], Attack]] = {
    "ListGroups, 20,000 groups": list_groups_many,
    "OffsetFetch, all 10,000 offsets of a group": partial(offset_fetch_all, 8),
    "OffsetFetch v7, all 10,000 offsets": partial(offset_fetch_all, 7),
    "TxnOffsetCommit, 100,000 offsets written": offsets_in_transaction,
}
"""Attacks on what another request has made."""

ATTACKS: dict[str, Attack] = {
    "Metadata, one topic 500,000 times": metadata_one_topic,
    "Metadata, 50,000 unknown topics": metadata_unknown_topics,
    "DescribeConfigs, 10,000 groups": describe_configs_groups,
    "DescribeConfigs, broker 10,000 times": describe_configs_broker,
    "ConsumerGroupHeartbeat, 3,000 joins": joins_848,
    "ListOffsets, 100,000 partitions": list_offsets_many,
    "FindCoordinator, 100,000 keys": find_coordinator_many,
    "OffsetCommit, 100,000 partitions": offset_commit_many,
    "OffsetFetch, 100,000 partitions": offset_fetch_partitions,
    "OffsetFetch, one group 100,000 times": offset_fetch_groups,
    "DescribeGroups, one group 100,000 times": describe_groups_many,
    "DeleteGroups, 100,000 groups": delete_groups_many,
    "CreateTopics, 20,000 checked only": create_topics_many,
    "DeleteTopics, 100,000 unknown topics": delete_topics_many,
    "DescribeLogDirs, 100,000 topics": describe_log_dirs_many,
    "AddPartitionsToTxn, 100,000 partitions": add_partitions_many,
    "TxnOffsetCommit, 100,000 partitions": txn_offset_commit_many,
    "Fetch, 100,000 partitions": fetch_many,
    "Produce, 100,000 partitions without a batch": produce_nothing,
    "Produce, 100,000 unknown partitions": partial(produce_many, MANY, "none", one_partition=False),
    "Produce, 10,000 batches for one partition": partial(produce_many, 10_000, TOPIC, one_partition=True),
}


def bystander(bootstrap: str, pid: int, started: Event, stop: Event, delays: Any) -> None:
    """Sends a small request every few milliseconds and takes its time."""
    client = RawClient(bootstrap, timeout=120.0)
    request = encode_request(ApiVersionsRequest(), 0, 1, "bystander")
    taken = []
    while not stop.is_set():
        began, ran = time.perf_counter(), _loop_ms(pid)
        client.send(request)
        client.read_frame()
        taken.append((_loop_ms(pid) - ran, (time.perf_counter() - began) * 1000))
        started.set()
        time.sleep(0.002)
    delays.send(taken)


def _loop_ms(pid: int) -> float:
    """For how long the broker's first thread, which has the loop, has run."""
    return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[0]) / 1e6


def measure(broker: BarnabasProcess, attack: Attack | None) -> tuple[float, float, list[tuple[float, float]]]:
    """(CPU seconds per attack, peak MB, the bystander's delays in ms), for attacks in a row; without one for 2 s."""
    requests = [] if attack is None else list(attack())
    data = b"".join(encode_request(request, version, n, "attack") for n, (request, version) in enumerate(requests))
    count = len(requests)
    del requests
    started, stop = multiprocessing.Event(), multiprocessing.Event()
    receiver, sender = multiprocessing.Pipe(duplex=False)
    other = multiprocessing.Process(target=bystander, args=(broker.bootstrap, broker.pid, started, stop, sender))
    other.start()
    started.wait(30)
    Path(f"/proc/{broker.pid}/clear_refs").write_text("5")  # the peak of the memory begins again
    cpu_before = broker.cpu_seconds()
    if attack is None:
        time.sleep(2)
    else:
        client = RawClient(broker.bootstrap, timeout=120.0)
        until = time.perf_counter() + 2
        times = 0
        try:
            while not times or time.perf_counter() < until:  # often enough for a p99
                times += 1
                client.send(data)
                for _ in range(count):
                    client.read_frame()
        except ConnectionEnded:
            print("    (the broker closed the connection)")
        client.close()
        cpu_before += (broker.cpu_seconds() - cpu_before) * (times - 1) / times
    cpu = broker.cpu_seconds() - cpu_before
    stop.set()
    delays = receiver.recv()
    other.join()
    return cpu, _peak_bytes(broker.pid) / 1e6, delays


def _peak_bytes(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("no VmHWM: the broker has ended")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hostile_requests", description=__doc__)
    parser.add_argument("--only", action="append", help="attacks whose name contains this")
    wanted = parser.parse_args().only
    print(f"{'attack':42} {'CPU s':>7} {'peak MB':>8} {'loop p99':>9} {'worst ms':>9} {'wall p99':>9} {'worst ms':>9}")
    for name in ("nothing", *ATTACKS, *PREPARED):
        if wanted and name != "nothing" and not any(each.lower() in name.lower() for each in wanted):
            continue
        with tempfile.TemporaryDirectory(prefix="barnabas-hostile-") as directory:
            broker = BarnabasProcess(Path(directory), settings=SETTINGS).start()
            try:
                client = RawClient(broker.bootstrap)
                client.create_topic(TOPIC)
                client.ask(find_coordinator.FindCoordinatorRequest(coordinator_keys=["g"]), 4)
                attack = PREPARED[name](client) if name in PREPARED else ATTACKS.get(name)
                cpu, peak_mb, delays = measure(broker, attack)
            finally:
                broker.kill()
        loop, wall = zip(*delays, delays[-1], strict=True)  # two at least
        figures = [quantiles(loop, n=100, method="inclusive")[98], max(loop)]
        figures += [quantiles(wall, n=100, method="inclusive")[98], max(wall)]
        print(f"{name:42} {cpu:7.2f} {peak_mb:8.0f} " + " ".join(f"{each:9.1f}" for each in figures), flush=True)


if __name__ == "__main__":
    main()
