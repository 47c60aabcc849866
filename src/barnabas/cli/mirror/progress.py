"""What a mirror remembers in the target cluster: how far it has come, and which offsets belong together.

Both are written in the transaction of the copied records, so they are true whenever the records are there:
- the next offset to read of every source partition, as an offset of the group `barnabas-mirror-NAME` for its copy;
- the runs of offsets (translation.py), as JSON in the topic of the same name.
"""

import json
import logging
from collections.abc import Iterable, Mapping

from barnabas.cli.mirror.translation import Run, Translation
from barnabas.client.admin import Admin
from barnabas.client.consumer import Consumer
from barnabas.errors import ErrorCode, KafkaError
from barnabas.types import TopicPartition

logger = logging.getLogger(__name__)

RUNS_RETENTION_MS = 7 * 86_400_000
PREFIX = "barnabas-mirror-"
Translations = dict[TopicPartition, Translation]


def group_of(name: str) -> str:
    return PREFIX + name


def create_runs_topic(admin: Admin, name: str, replication_factor: int | None) -> None:
    config = {"retention.ms": RUNS_RETENTION_MS, "cleanup.policy": "delete", "compression.type": "producer"}
    admin.create_topic(group_of(name), 1, replication_factor, config=config, if_not_exists=True)


def stored_positions(admin: Admin, name: str) -> dict[TopicPartition, int]:
    """By partitions of the target. Waits for a transaction that is being ended."""
    try:
        offsets = admin.list_group_offsets(group_of(name), require_stable=True)
    except KafkaError as error:
        if error.code is ErrorCode.GROUP_ID_NOT_FOUND:
            return {}
        raise
    return {key: stored.offset for key, stored in offsets.items() if stored is not None}


def encode_runs(runs: Mapping[TopicPartition, Iterable[Run]]) -> bytes:
    """By partitions of the source."""
    return json.dumps([[*key, *run] for key, given in runs.items() for run in given], separators=(",", ":")).encode()


def load_translations(consumer: Consumer, name: str) -> Translations:
    """Every run that the target still has; `consumer` reads committed records of the target."""
    place = TopicPartition(group_of(name), 0)
    translations: Translations = {}
    consumer.assign([place])
    consumer.seek_to_beginning()
    end = consumer.end_offsets([place])[place]
    while consumer.position(place) < end:
        for record in consumer.poll(1.0):
            add_runs(translations, record.value or b"[]")
    return translations


def add_runs(translations: Translations, encoded: bytes) -> None:
    for topic, partition, *run in json.loads(encoded):
        translations.setdefault(TopicPartition(topic, partition), Translation()).add(Run(*run))
