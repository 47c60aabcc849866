"""Log directories that come without metadata: written by Kafka, or by a broker of ours whose metadata file is lost.

`Broker.start` calls `adopt_folders` once it has joined the cluster. The first start on a new metadata store takes every
topic in that has folders here, by one command to the controller; settings and exact partition counts come from Kafka's
metadata log, if that can be read. Otherwise nothing may be deleted by age or size, because the topic may have been
compacted. Later, a folder that the store does not know is named in the log and left as it is; `stray_logs.py` sets the
logs of deleted topics aside before.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import Executor
from typing import Final, NamedTuple

from barnabas.config.broker import BrokerConfig
from barnabas.errors import KafkaError, ProtocolError
from barnabas.machines.controller.adoption import KEEP_EVERYTHING
from barnabas.machines.controller.commands import AdoptedTopic, AdoptTopics, ScramChange
from barnabas.machines.controller.machine import PRODUCER_ID_BLOCK_SIZE
from barnabas.machines.controller.topics import MAX_PARTITIONS_PER_REQUEST
from barnabas.metadata.image import CLUSTER_DEFAULT, ClusterImage, ConfigResource, ResourceType
from barnabas.metadata.kraft_log import KraftMetadata, KraftTopic, read_kraft_metadata
from barnabas.protocol.messages.transaction_log_record import TransactionLogValue
from barnabas.protocol.versioned import decode_versioned
from barnabas.records.reader import read_records
from barnabas.server.auto_topic_creation import TRANSACTION_STATE_TOPIC, settings_on_demand
from barnabas.server.cluster_membership import ClusterMembership
from barnabas.server.controller_client import ControllerClient
from barnabas.storage.files import Files
from barnabas.storage.log import Log
from barnabas.storage.log_directories import LogDirectories
from barnabas.storage.partition_metadata import CorruptPartitionMetadataError, read_partition_metadata
from barnabas.storage.segment_scan import BrokenChainError, is_intact, walk_batches
from barnabas.types import NO_LEADER_EPOCH, NO_TOPIC_ID, TopicId

logger = logging.getLogger(__name__)

NAMES_SHOWN: Final = 10


class Folder(NamedTuple):
    topic: str
    partition: int
    topic_id: TopicId
    leader_epoch: int


async def adopt_folders(
    cluster: ClusterMembership,
    controller: ControllerClient,
    directories: LogDirectories,
    config: BrokerConfig,
    executor: Executor,
) -> None:
    """Raises KafkaError if the controller could not write what was found."""
    if cluster.is_controller and not cluster.image.folders_adopted:
        if any(directory.is_offline for directory in directories.directories):
            logger.error("topics in the log directories are taken in once all of the directories can be used")
        else:
            loop = asyncio.get_running_loop()
            found, kraft = await loop.run_in_executor(executor, find_topics, directories, config)
            await _adopt(controller, found, kraft)
    _report_strays(cluster.image, directories)


async def _adopt(controller: ControllerClient, found: AdoptTopics, kraft: KraftMetadata) -> None:
    adoption = await controller.adopt_topics(found)
    if adoption.topics:
        count = sum(len(topic.partitions) for topic in adoption.topics)
        logger.info("took in %d topics with %d partitions from the log directories", len(adoption.topics), count)
        if kraft.damage is not None:
            logger.warning(
                "%s: topics that are not known to be compacted got retention.ms=-1 and retention.bytes=-1, so that "
                "nothing is deleted; give them the settings they should have: %s",
                kraft.damage,
                _shown(topic.name for topic in adoption.topics),
            )
        if kraft.not_taken_over:
            logger.warning("not taken over from Kafka's metadata: %s", ", ".join(sorted(kraft.not_taken_over)))
    for fault in adoption.faults:
        logger.warning("not taken over: %s", fault)


def find_topics(directories: LogDirectories, config: BrokerConfig) -> tuple[AdoptTopics, KraftMetadata]:
    """What is in the directories. Reads files: for a thread."""
    kraft = _read_kraft(directories)
    by_topic: dict[str, list[Folder]] = {}
    for folder in _folders(directories):
        by_topic.setdefault(folder.topic, []).append(folder)
    known = {topic.name: topic for topic in kraft.topics.values()}
    topics = []
    for name in sorted({*by_topic, *known}):
        topic = _topic(name, by_topic.get(name, []), known.get(name), kraft, config)
        if topic is not None:
            topics.append(topic)
    own = (CLUSTER_DEFAULT, ConfigResource.broker(config.node_id))
    configs = tuple(
        (resource, settings)
        for resource, settings in kraft.configs.items()
        if settings and (resource in own or resource.type is ResourceType.GROUP)
    )
    acls = tuple(kraft.acls.values())
    users = tuple(ScramChange(user, mechanism, each.text()) for (user, mechanism), each in kraft.scram.items())
    tokens = tuple(kraft.tokens.values())
    if kraft.damage is not None:
        # A DENY may be missing, or what was removed be back: nobody gets access by that.
        named = {"access control lists": acls, "SCRAM credentials": users, "delegation tokens": tokens}
        kraft.not_taken_over.update(name for name, found in named.items() if found)
        acls, users, tokens = (), (), ()
    next_producer_id = max(kraft.next_producer_id, _next_producer_id(directories))
    return AdoptTopics(config.node_id, tuple(topics), configs, next_producer_id, acls, users, tokens), kraft


def _read_kraft(directories: LogDirectories) -> KraftMetadata:
    """Kafka keeps its metadata log in one of the log directories, the first unless configured otherwise."""
    read = [read_kraft_metadata(Files(), directory.path) for directory in directories.directories]
    return next((each for each in read if each.damage is None or each.topics), read[0])


def _folders(directories: LogDirectories) -> Iterable[Folder]:
    for log in directories:
        if log.topic_id != NO_TOPIC_ID or log.log_end_offset > 0:
            yield Folder(*log.topic_partition, log.topic_id, log.leader_epoch)
    for directory in directories.directories:
        for topic_partition in directory.damaged:
            try:
                path = f"{directory.path}/{topic_partition.topic}-{topic_partition.partition}"
                topic_id = read_partition_metadata(Files(), path)
            except (OSError, CorruptPartitionMetadataError):
                topic_id = NO_TOPIC_ID
            yield Folder(*topic_partition, topic_id, NO_LEADER_EPOCH)


def _topic(
    name: str, here: list[Folder], known: KraftTopic | None, kraft: KraftMetadata, config: BrokerConfig
) -> AdoptedTopic | None:
    """The topic as it goes on; None if it was deleted, or is kept by other brokers only."""
    if kraft.damage is None and known is None:
        return None
    replicas = [] if known is None else [each.replicas for each in known.partitions.values()]
    if not here and not any(config.node_id in each for each in replicas):
        logger.warning("topic %s has no partition on this broker: not taken in", name)
        return None
    ids = Counter(folder.topic_id for folder in here if folder.topic_id != NO_TOPIC_ID)
    if known is not None and (kraft.damage is None or not ids):
        topic_id = known.topic_id
    else:
        topic_id = max(ids, key=lambda each: ids[each], default=NO_TOPIC_ID)
    epochs = {folder.partition: folder.leader_epoch for folder in here if folder.topic_id in (topic_id, NO_TOPIC_ID)}
    numbers = {*epochs} if kraft.damage is not None or known is None else set()
    if known is not None and known.topic_id == topic_id:
        numbers |= {*known.partitions}
        for number, partition in known.partitions.items():
            epochs[number] = max(epochs.get(number, NO_LEADER_EPOCH), partition.leader_epoch)
    count = max(numbers, default=-1) + 1
    if not 0 < count <= MAX_PARTITIONS_PER_REQUEST:
        return None
    leader_epochs = tuple(epochs.get(number, NO_LEADER_EPOCH) + 1 for number in range(count))
    return AdoptedTopic(name, leader_epochs, topic_id, _settings(name, kraft, config))


def _settings(name: str, kraft: KraftMetadata, config: BrokerConfig) -> dict[str, str]:
    settings = dict(kraft.configs.get(ConfigResource.topic(name), {}))
    if kraft.damage is not None:
        if not settings:
            settings.update((key, value or "") for key, value in settings_on_demand(name, config))
        if "compact" not in settings.get("cleanup.policy", ""):
            settings |= KEEP_EVERYTHING
    return settings


def _next_producer_id(directories: LogDirectories) -> int:
    """The start of a block above every producer id that is still remembered anywhere in the logs."""
    highest = -1
    for log in directories:
        highest = max(highest, *log.producers.producers, -1)
        if log.topic_partition.topic == TRANSACTION_STATE_TOPIC:
            highest = max(highest, _highest_transactional(log))
    return (highest // PRODUCER_ID_BLOCK_SIZE + 1) * PRODUCER_ID_BLOCK_SIZE


def _highest_transactional(log: Log) -> int:
    """Transactional ids keep their producer id for longer than partitions remember it."""
    highest = -1
    try:
        for segment in log.segments:
            for _, header, batch in walk_batches(segment.file, 0, segment.size):
                if header.is_control or not is_intact(batch, header):
                    continue
                for record in read_records(batch):
                    if record.value:
                        state, _ = decode_versioned(TransactionLogValue, record.value)
                        highest = max(highest, state.producer_id, state.next_producer_id)
    except (BrokenChainError, KafkaError, ProtocolError) as error:
        logger.warning("%s is read only in part: %s", log.topic_partition, error)
    return highest


def _report_strays(image: ClusterImage, directories: LogDirectories) -> None:
    strays = []
    for log in directories:
        topic = image.topic(log.topic_partition.topic)
        number = log.topic_partition.partition
        if topic is None or topic.partition(number) is None or log.topic_id not in (topic.topic_id, NO_TOPIC_ID):
            strays.append(log.directory)
    if strays:
        logger.warning("%d folders belong to no topic and are left as they are: %s", len(strays), _shown(strays))


def _shown(names: Iterable[str]) -> str:
    names = sorted(names)
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return ", ".join(names[:NAMES_SHOWN]) + more
