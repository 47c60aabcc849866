"""Creating and deleting topics: the checks, in Kafka's order and with Kafka's codes, and the records.

Functions over an image; `machine.py` calls them. Each topic of a request succeeds or fails on its own.
"""

from collections import Counter
from collections.abc import Container, Mapping
from dataclasses import dataclass

from barnabas.clock import Random
from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.controller.commands import (
    ConfigRules,
    CreateTopics,
    DeletedTopic,
    DeleteTopics,
    NewTopic,
    TopicResult,
    TopicToDelete,
)
from barnabas.machines.controller.image import ClusterImage, ConfigResource, PartitionImage, TopicImage
from barnabas.machines.controller.partition_change import first_state
from barnabas.machines.controller.records import TopicCreated, TopicRemoved
from barnabas.machines.controller.topic_name import (
    CLUSTER_METADATA_TOPIC,
    collision_key,
    fault_of_topic_name,
    may_collide,
)
from barnabas.machines.placement import place_replicas
from barnabas.types import NO_TOPIC_ID, TopicId

MAX_PARTITIONS_PER_REQUEST = 100_000
"""Far above what a cluster serves; keeps one request from taking all memory."""


@dataclass(frozen=True, slots=True)
class TopicDefaults:
    """num.partitions and default.replication.factor, and the largest replication factor that brokers support."""

    num_partitions: int = 1
    replication_factor: int = 1
    internal_replication_factors: tuple[tuple[str, int], ...] = ()
    """Of internal topics; reached as soon as there are enough brokers."""


class TopicCreation:
    """One CreateTopics request against one image."""

    def __init__(
        self,
        image: ClusterImage,
        active: Container[int],
        collisions: Mapping[str, tuple[str, ...]],
        defaults: TopicDefaults,
        rules: ConfigRules,
        random: Random,
    ) -> None:
        self._image = image
        self._active = active
        self._collisions = collisions
        self._defaults = defaults
        self._rules = rules
        self._random = random
        self._partitions_left = MAX_PARTITIONS_PER_REQUEST

    def decide(self, command: CreateTopics) -> tuple[tuple[TopicCreated, ...], tuple[TopicResult, ...]]:
        counts = Counter(topic.name for topic in command.topics)
        records: list[TopicCreated] = []
        results: dict[str, TopicResult] = {}
        for topic in command.topics:
            if counts[topic.name] > 1:
                error = KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
                results[topic.name] = TopicResult(topic.name, error.code, error.message)
                continue
            try:
                record = self._create(topic)
                if command.charge is not None:
                    command.charge(len(record.topic.partitions))
            except KafkaError as error:
                results[topic.name] = TopicResult(topic.name, error.code, error.message)
            else:
                records.append(record)
                results[topic.name] = _created(record)
        return (() if command.validate_only else tuple(records)), tuple(results.values())

    def _create(self, topic: NewTopic) -> TopicCreated:
        self._check_name(topic.name)
        config = self._config_of(topic)
        partitions = self._assigned(topic) if topic.assignments else self._placed(topic)
        self._partitions_left -= len(partitions)
        return TopicCreated(TopicImage(topic.name, new_topic_id(self._image, self._random), partitions), config)

    def _check_name(self, name: str) -> None:
        if name == CLUSTER_METADATA_TOPIC:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Creation of internal topic {name} is prohibited.")
        if name in self._image.topics:
            raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
        fault = fault_of_topic_name(name)
        if fault is not None:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
        if may_collide(name):
            others = self._collisions.get(collision_key(name))
            if others:
                raise KafkaError(
                    ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {others[0]}"
                )

    def _config_of(self, topic: NewTopic) -> dict[str, str]:
        missing = [name for name, value in topic.configs if value is None]
        if missing:
            names = ",".join(missing)
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {names}")
        config = {name: value for name, value in topic.configs if value is not None}
        if config:
            self._rules.check(ConfigResource.topic(topic.name), config)
        return config

    def _assigned(self, topic: NewTopic) -> tuple[PartitionImage, ...]:
        for given, what in ((topic.replication_factor, "replication factor"), (topic.num_partitions, "numPartitions")):
            if given != -1:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST,
                    f"A manual partition assignment was specified, but {what} was not set to -1.",
                )
        replication_factor: int | None = None
        partitions: dict[int, PartitionImage] = {}
        for index, replicas in topic.assignments:
            if index in partitions:
                raise _bad_assignment(f"Found multiple manual partition assignments for partition {index}")
            check_assignment(self._image, replicas, replication_factor)
            replication_factor = len(replicas)
            partitions[index] = assign_partition(index, replicas, self._active)
        if sorted(partitions) != list(range(len(partitions))):
            raise _bad_assignment("partitions should be a consecutive 0-based integer sequence")
        return tuple(partitions[index] for index in range(len(partitions)))

    def _placed(self, topic: NewTopic) -> tuple[PartitionImage, ...]:
        if topic.replication_factor < -1 or topic.replication_factor == 0:
            raise KafkaError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                "Replication factor must be larger than 0, or -1 to use the default value.",
            )
        if topic.num_partitions < -1 or topic.num_partitions == 0:
            raise KafkaError(
                ErrorCode.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value."
            )
        count = self._defaults.num_partitions if topic.num_partitions == -1 else topic.num_partitions
        factor = self._defaults.replication_factor if topic.replication_factor == -1 else topic.replication_factor
        if count > self._partitions_left:
            raise KafkaError(
                ErrorCode.INVALID_PARTITIONS, f"No more than {MAX_PARTITIONS_PER_REQUEST} partitions in one request."
            )
        return place_new_partitions(self._image, self._active, 0, count, factor, self._random)


def new_topic_id(image: ClusterImage, random: Random) -> TopicId:
    while (topic_id := new_uuid(random)) in image.topic_names:
        pass
    return topic_id


def new_uuid(random: Random) -> bytes:
    """A version 4 UUID, never one that Kafka reserves (the first two, or a text that begins with a dash)."""
    while True:
        number = random.getrandbits(128) & ~(0xF000 << 64) & ~(0xC000 << 48)
        value = (number | (0x4000 << 64) | (0x8000 << 48)).to_bytes(16, "big")
        if value[0] >> 2 != 0b111110:
            return value


def place_new_partitions(
    image: ClusterImage, active: Container[int], first: int, count: int, replication_factor: int, random: Random
) -> tuple[PartitionImage, ...]:
    racks = {broker.node_id: broker.rack for broker in image.brokers.values() if broker.node_id in active}
    placed = place_replicas(racks, count, replication_factor, random, first)
    return tuple(first_state(first + offset, replicas, active) for offset, replicas in enumerate(placed))


def assign_partition(index: int, replicas: tuple[int, ...], active: Container[int]) -> PartitionImage:
    if not any(replica in active for replica in replicas):
        raise _bad_assignment(
            f"All brokers specified in the manual partition assignment for partition {index} are fenced or in "
            "controlled shutdown."
        )
    return first_state(index, replicas, active)


def check_assignment(image: ClusterImage, replicas: tuple[int, ...], replication_factor: int | None) -> None:
    """Raises INVALID_REPLICA_ASSIGNMENT unless the brokers exist, differ, and are as many as elsewhere in the topic."""
    prefix = "The manual partition assignment includes"
    if not replicas:
        raise _bad_assignment(f"{prefix} an empty replica list.")
    previous: int | None = None
    for broker in sorted(replicas):
        if broker not in image.brokers and broker not in image.fenced_brokers:
            raise _bad_assignment(f"{prefix} broker {broker}, but no such broker is registered.")
        if broker == previous:
            raise _bad_assignment(f"{prefix} the broker {broker} more than once.")
        previous = broker
    if replication_factor not in (None, len(replicas)):
        raise _bad_assignment(
            f"{prefix} a partition with {len(replicas)} replica(s), but this is not consistent with previous "
            f"partitions, which have {replication_factor} replica(s)."
        )


def decide_delete(
    image: ClusterImage, command: DeleteTopics
) -> tuple[tuple[TopicRemoved, ...], tuple[DeletedTopic, ...]]:
    """A topic given twice, or by both name and id, is not deleted at all."""
    asked = Counter(command.topics)
    found: dict[TopicId, list[TopicImage]] = {}
    results: list[DeletedTopic] = []
    for wanted in asked:
        try:
            topic = _find(image, wanted, asked[wanted])
            found.setdefault(topic.topic_id, []).append(topic)
        except KafkaError as error:
            results.append(DeletedTopic(wanted.name, wanted.topic_id, error.code, error.message))
    records: list[TopicRemoved] = []
    for topic_id, (topic, *again) in found.items():
        if again:
            message = "The provided topic name maps to an ID that was already supplied."
            results.append(DeletedTopic(topic.name, topic_id, ErrorCode.INVALID_REQUEST, message))
            continue
        try:
            if command.charge is not None:
                command.charge(len(topic.partitions))
            records.append(TopicRemoved(topic.name, topic_id))
            results.append(DeletedTopic(topic.name, topic_id))
        except KafkaError as error:
            results.append(DeletedTopic(topic.name, topic_id, error.code, error.message))
    return tuple(records), tuple(results)


def _find(image: ClusterImage, wanted: TopicToDelete, times: int) -> TopicImage:
    if wanted.name is None and wanted.topic_id == NO_TOPIC_ID:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")
    if wanted.name is not None and wanted.topic_id != NO_TOPIC_ID:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id.")
    if times > 1:
        what = "id" if wanted.name is None else "name"
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Duplicate topic {what}.")
    if wanted.name is None:
        topic = image.topic_by_id(wanted.topic_id)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        return topic
    topic = image.topic(wanted.name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return topic


def _created(record: TopicCreated) -> TopicResult:
    topic = record.topic
    return TopicResult(
        topic.name,
        topic_id=topic.topic_id,
        num_partitions=len(topic.partitions),
        replication_factor=topic.replication_factor,
        config=record.config,
    )


def _bad_assignment(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
