"""Series of the groups that this broker coordinates: offsets, lag in records and in time, members.

Lag needs the log of the partition, so it is there for partitions that this broker leads or follows.
"""

from collections import Counter
from collections.abc import Generator
from typing import TYPE_CHECKING

from barnabas.errors import KafkaError
from barnabas.machines.group.registry import Group
from barnabas.machines.group.shard import GroupShard
from barnabas.machines.group.stored_offset import read_stored
from barnabas.server.coordinator_shard import ShardState
from barnabas.server.metrics.exposition import Samples, escaped
from barnabas.server.metrics.lag_time import LagTimes

if TYPE_CHECKING:
    from barnabas.server.broker import Broker

PREFIX = "kafka_coordinator_group_groupmetadatamanager_numgroups"
STATES = ("Stable", "Empty", "Dead", "PreparingRebalance", "CompletingRebalance")
OFFSETS_AT_ONCE = 50


def add_groups(samples: Samples, broker: "Broker", times: LagTimes) -> Generator[None, None, None]:
    states: Counter[str] = Counter()
    members = samples.of("kafka_consumergroup_members")
    for shard in broker.groups.shards():
        if shard.state is not ShardState.ACTIVE or not isinstance(shard.machine, GroupShard):
            continue
        for group in shard.machine.registry:
            states[group.state_name] += 1
            members.append(f'{{consumergroup="{escaped(group.group_id)}"}} {len(group.members)}')
            yield from _add_offsets(samples, broker, times, shard.machine, group)
            yield
    samples.put(PREFIX, states.total())
    offsets = samples.of("kafka_consumergroup_current_offset")
    samples.put("kafka_coordinator_group_groupmetadatamanager_numoffsets", len(offsets))
    for state in STATES:
        samples.put(PREFIX + state.lower(), states[state])


def _add_offsets(
    samples: Samples, broker: "Broker", times: LagTimes, machine: GroupShard, group: Group
) -> Generator[None, None, None]:
    offsets, lags = samples.of("kafka_consumergroup_current_offset"), samples.of("kafka_consumergroup_lag")
    uncommitted = samples.of("kafka_consumergroup_uncommitted_offsets")
    millis = samples.of("kafka_consumer_lag_millis")
    now_ms, replicas, count = broker.clock.now_ms(), broker.replicas, 0
    for topic, partitions in list(machine.offsets.of_group(group.group_id).items()):
        head = f'consumergroup="{escaped(group.group_id)}",topic="{escaped(topic)}"'
        offset_sum = lag_sum = 0
        knows_lag = False
        for partition, stored in list(partitions.items()):
            offset = read_stored(stored).offset
            labels = f'{{{head},partition="{partition}"}}'
            offset_sum += offset
            offsets.append(f"{labels} {offset}")
            try:
                hosted = replicas.find(topic, partition)
            except KafkaError:
                continue
            knows_lag = True
            lag = max(0, hosted.log.high_watermark - max(offset, hosted.log.log_start_offset))
            lag_sum += lag
            lags.append(f"{labels} {lag}")
            uncommitted.append(f"{labels} {lag}")
            timestamp = times.timestamp(hosted, offset) if lag else now_ms
            if timestamp is not None:
                millis.append(f"{labels} {max(0, now_ms - timestamp)}")
            count += 1
            if not count % OFFSETS_AT_ONCE:
                yield
        samples.of("kafka_consumergroup_current_offset_sum").append(f"{{{head}}} {offset_sum}")
        if knows_lag:
            samples.of("kafka_consumergroup_lag_sum").append(f"{{{head}}} {lag_sum}")
