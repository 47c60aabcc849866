"""Which brokers hold the replicas of new partitions.

Leaders rotate over the brokers from a random start. Followers are at a shift from their leader, and the shift grows by
one with each full rotation, so that two partitions with the same leader have different followers. With racks the
brokers are first arranged so that neighbours are in different racks, and no rack gets a second replica while another
has none.
"""

from collections.abc import Mapping, Sequence

from barnabas.clock import Random
from barnabas.errors import ErrorCode, KafkaError


def place_replicas(
    racks: Mapping[int, str | None],
    partition_count: int,
    replication_factor: int,
    random: Random,
    first_partition: int = 0,
) -> list[tuple[int, ...]]:
    """Replicas of each new partition. `racks` has every live broker; racks count only if each broker has one."""
    if replication_factor > len(racks):
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {replication_factor} time(s): The target replication factor of "
            f"{replication_factor} cannot be reached because only {len(racks)} broker(s) are registered.",
        )
    rack_of = {broker: rack for broker, rack in racks.items() if rack is not None}
    if len(rack_of) < len(racks):
        rack_of = {}
    brokers = _alternate_racks(rack_of) if rack_of else sorted(racks)
    start, shift = random.randrange(len(brokers)), random.randrange(len(brokers))
    placed = []
    for partition in range(first_partition, first_partition + partition_count):
        if partition > 0 and partition % len(brokers) == 0:
            shift += 1
        leader_index = (partition + start) % len(brokers)
        placed.append(_place_one(brokers, rack_of, leader_index, shift, replication_factor))
    return placed


def _place_one(
    brokers: Sequence[int], rack_of: Mapping[int, str], leader_index: int, shift: int, replication_factor: int
) -> tuple[int, ...]:
    rack_count = len(set(rack_of.values()))
    replicas = [brokers[leader_index]]
    racks_used = {rack_of[each] for each in replicas if rack_of}
    step = 0
    while len(replicas) < replication_factor:
        broker = brokers[_follower_index(leader_index, shift * max(1, rack_count), step, len(brokers))]
        step += 1
        if broker in replicas:
            continue
        if rack_of and rack_of[broker] in racks_used and len(racks_used) < rack_count:
            continue
        replicas.append(broker)
        if rack_of:
            racks_used.add(rack_of[broker])
    return tuple(replicas)


def _follower_index(leader_index: int, shift: int, step: int, broker_count: int) -> int:
    return (leader_index + 1 + (shift + step) % (broker_count - 1)) % broker_count


def _alternate_racks(rack_of: Mapping[int, str]) -> list[int]:
    """Brokers in turn from each rack: a1 b1 c1 a2 b2 c2."""
    by_rack: dict[str, list[int]] = {}
    for broker in sorted(rack_of):
        by_rack.setdefault(rack_of[broker], []).append(broker)
    longest = max(len(members) for members in by_rack.values())
    return [by_rack[rack][turn] for turn in range(longest) for rack in sorted(by_rack) if turn < len(by_rack[rack])]
