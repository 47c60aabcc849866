"""Where the cluster's metadata lies in the store, and in which JSON: the same tree as Kafka keeps in ZooKeeper.

    /cluster/id                                   {"version":"1","id":...}
    /controller                (ephemeral)        {"version":1,"brokerid":...,"timestamp":...}
    /controller_epoch                             a number in text
    /brokers/ids/N             (ephemeral)        endpoints, rack; broker epoch = transaction that made it
    /brokers/seqid                                empty; its version is the number of the last generated broker id
    /brokers/topics/T                             topic id and replicas of each partition
    /brokers/topics/T/partitions/P/state          leader, leader epoch, ISR; its version is the partition epoch
    /config/topics/T  /config/brokers/N or <default>
    /config/users/U                               SCRAM credentials, in Kafka's form
    /latest_producer_id_block
    /kafka-acl, /kafka-acl-extended               access rules (`acl_tree.py`)
    /delegation_token/tokens/ID                   delegation tokens (`token_tree.py`)
    /barnabas/brokers/N                           what the controller knows of a broker: last epoch, away? leaving?
    /barnabas/quotas/E                            quotas of a user, client id, both, or IP address (not Kafka's)
    /admin/delete_topics/T                        a topic on its way out
    /admin/folders_adopted                        there once the log directories' folders are in the tree (not Kafka's)
    /barnabas/changes                             the change log (not Kafka's; `change_log.py`)

Pure text in and out: `repository.py` does the reading and writing.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote, unquote

from barnabas.machines.controller.image import (
    NO_BROKER_EPOCH,
    BrokerEndpoint,
    BrokerImage,
    ConfigResource,
    EntityPart,
    PartitionImage,
    QuotaEntity,
    ResourceType,
    TopicImage,
)
from barnabas.types import NO_LEADER, TopicId, topic_id_from_text, topic_id_text

CLUSTER_ID = "/cluster/id"
CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"
BROKERS = "/brokers"
BROKER_IDS = "/brokers/ids"
BROKER_SEQUENCE = "/brokers/seqid"
TOPICS = "/brokers/topics"
PRODUCER_IDS = "/latest_producer_id_block"
DELETE_TOPICS = "/admin/delete_topics"
KNOWN_BROKERS = "/barnabas/brokers"
QUOTAS = "/barnabas/quotas"
FOLDERS_ADOPTED = "/admin/folders_adopted"
CONFIG = "/config"
_CONFIG = {
    ResourceType.TOPIC: "/config/topics",
    ResourceType.BROKER: "/config/brokers",
    ResourceType.CLIENT_METRICS: "/config/client-metrics",
    ResourceType.GROUP: "/config/groups",
    ResourceType.USER: "/config/users",
}
_DEFAULT_ENTITY = "<default>"
PERSISTENT = (BROKER_IDS, KNOWN_BROKERS, QUOTAS, TOPICS, DELETE_TOPICS, *_CONFIG.values())
"""Nodes that are made once and never hold data."""


def broker_path(broker_id: int) -> str:
    return f"{BROKER_IDS}/{broker_id}"


def known_broker_path(broker_id: int) -> str:
    return f"{KNOWN_BROKERS}/{broker_id}"


def topic_path(topic: str) -> str:
    return f"{TOPICS}/{topic}"


def state_path(topic: str, partition: int) -> str:
    return f"{TOPICS}/{topic}/partitions/{partition}/state"


def delete_path(topic: str) -> str:
    return f"{DELETE_TOPICS}/{topic}"


def config_path(resource: ConfigResource) -> str:
    # Users may have any name: as in Kafka it is quoted, so that it is one part of a path.
    name = quote(resource.name, safe="") if resource.type is ResourceType.USER else resource.name
    return f"{_CONFIG[resource.type]}/{name or _DEFAULT_ENTITY}"


def config_folders() -> Iterable[tuple[ResourceType, str]]:
    return _CONFIG.items()


def config_resource(resource_type: ResourceType, entity: str) -> ConfigResource:
    if resource_type is ResourceType.USER:
        return ConfigResource.user(unquote(entity))
    return ConfigResource(resource_type, "" if entity == _DEFAULT_ENTITY else entity)


def _encode(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def encode_cluster_id(cluster_id: str) -> bytes:
    return _encode({"version": "1", "id": cluster_id})


def decode_cluster_id(data: bytes) -> str:
    return str(json.loads(data)["id"])


def encode_controller(broker_id: int, now_ms: int) -> bytes:
    return _encode({"version": 1, "brokerid": broker_id, "timestamp": str(now_ms)})


def decode_controller(data: bytes) -> int:
    return int(json.loads(data)["brokerid"])


def encode_broker(broker: BrokerImage, now_ms: int) -> bytes:
    return _encode(_registration(broker, now_ms))


def decode_broker(broker_id: int, data: bytes, epoch: int) -> BrokerImage:
    return _registered(broker_id, json.loads(data), epoch)


def encode_known_broker(broker: BrokerImage) -> bytes:
    """The registration, the epoch it had, and what became of it."""
    value = _registration(broker, now_ms=0)
    value["epoch"] = broker.epoch
    value["fenced"] = broker.is_fenced
    value["in_controlled_shutdown"] = broker.in_controlled_shutdown
    return _encode(value)


def decode_known_broker(broker_id: int, data: bytes) -> BrokerImage:
    value = json.loads(data)
    return _registered(broker_id, value, value["epoch"])._replace(
        is_fenced=value["fenced"], in_controlled_shutdown=value["in_controlled_shutdown"]
    )


def _registration(broker: BrokerImage, now_ms: int) -> dict[str, Any]:
    """The first PLAINTEXT endpoint also goes where clients older than endpoints look for it, as in Kafka."""
    plain = next((each for each in broker.endpoints if each.security_protocol == "PLAINTEXT"), None)
    value: dict[str, Any] = {
        "version": 5,
        "host": None if plain is None else plain.host,
        "port": -1 if plain is None else plain.port,
        "jmx_port": -1,
        "timestamp": str(now_ms),
        "endpoints": [f"{each.listener}://{_bracketed(each.host)}:{each.port}" for each in broker.endpoints],
        "listener_security_protocol_map": {each.listener: each.security_protocol for each in broker.endpoints},
        "features": {},
    }
    if broker.rack is not None:
        value["rack"] = broker.rack
    # What Kafka's tree has no place for: directories, the process, how it stopped.
    if broker.directory_ids:
        value["directory_ids"] = broker.directory_ids
    if broker.incarnation:
        value["incarnation"] = broker.incarnation
    if broker.previous_epoch != NO_BROKER_EPOCH:
        value["previous_epoch"] = broker.previous_epoch
    if broker.unclean_stop:
        value["unclean_stop"] = True
    return value


def _registered(broker_id: int, value: Mapping[str, Any], epoch: int) -> BrokerImage:
    protocols = value.get("listener_security_protocol_map") or {}
    endpoints = []
    for text in value["endpoints"]:
        listener, _, address = text.partition("://")
        host, _, port = address.rpartition(":")
        endpoints.append(BrokerEndpoint(listener, host.strip("[]"), int(port), protocols.get(listener, listener)))
    return BrokerImage(
        broker_id,
        tuple(endpoints),
        value.get("rack"),
        epoch,
        directory_ids=tuple(value.get("directory_ids", ())),
        incarnation=value.get("incarnation", ""),
        previous_epoch=value.get("previous_epoch", NO_BROKER_EPOCH),
        unclean_stop=value.get("unclean_stop", False),
    )


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def assignment_of(partition: PartitionImage) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """What the topic's node says of a partition."""
    return partition.replicas, partition.adding_replicas, partition.removing_replicas


def encode_topic(topic_id: TopicId, partitions: Iterable[PartitionImage]) -> bytes:
    partitions = list(partitions)
    return _encode(
        {
            "version": 3,
            "topic_id": topic_id_text(topic_id),
            "partitions": {str(each.partition): each.replicas for each in partitions},
            "adding_replicas": {
                str(each.partition): each.adding_replicas for each in partitions if each.adding_replicas
            },
            "removing_replicas": {
                str(each.partition): each.removing_replicas for each in partitions if each.removing_replicas
            },
        }
    )


def decode_topic(name: str, data: bytes) -> TopicImage:
    """The assignment alone: every partition is without a leader until its state is read."""
    value = json.loads(data)
    adding, removing = value.get("adding_replicas") or {}, value.get("removing_replicas") or {}
    partitions = [
        PartitionImage(
            int(index),
            tuple(replicas),
            (),
            adding_replicas=tuple(adding.get(index, ())),
            removing_replicas=tuple(removing.get(index, ())),
        )
        for index, replicas in value["partitions"].items()
    ]
    partitions.sort()
    return TopicImage(name, topic_id_from_text(value["topic_id"]), tuple(partitions))


def encode_state(partition: PartitionImage, controller_epoch: int) -> bytes:
    value = {
        "version": 1,
        "leader": partition.leader,
        "leader_epoch": partition.leader_epoch,
        "controller_epoch": controller_epoch,
        "isr": partition.in_sync_replicas,
    }
    if partition.leader_recovering:
        value["leader_recovery_state"] = 1
    if partition.eligible_leader_replicas:
        value["elr"] = partition.eligible_leader_replicas
    if partition.last_known_leader != NO_LEADER:
        value["last_known_leader"] = partition.last_known_leader
    return _encode(value)


def decode_state(partition: PartitionImage, data: bytes, version: int) -> PartitionImage:
    value = json.loads(data)
    return partition._replace(
        in_sync_replicas=tuple(value["isr"]),
        leader=value["leader"],
        leader_epoch=value["leader_epoch"],
        partition_epoch=version,
        leader_recovering=value.get("leader_recovery_state", 0) == 1,
        eligible_leader_replicas=tuple(value.get("elr", ())),
        last_known_leader=value.get("last_known_leader", NO_LEADER),
    )


def encode_config(config: Mapping[str, str]) -> bytes:
    return _encode({"version": 1, "config": dict(config)})


def decode_config(data: bytes) -> dict[str, str]:
    return dict(json.loads(data)["config"]) if data else {}


def quotas_path(entity: QuotaEntity) -> str:
    """Parts as type=name, or type alone for the default; names are quoted, since they may have any character."""
    parts = [part.type if part.name is None else f"{part.type}={quote(part.name, safe='')}" for part in entity]
    return f"{QUOTAS}/{','.join(parts)}"


def quota_entity(name: str) -> QuotaEntity:
    parts = [part.partition("=") for part in name.split(",")]
    return tuple(EntityPart(kind, unquote(value) if equals else None) for kind, equals, value in parts)


def encode_quotas(values: Mapping[str, float]) -> bytes:
    return _encode({"version": 1, "quotas": dict(values)})


def decode_quotas(data: bytes) -> dict[str, float]:
    return {key: float(value) for key, value in json.loads(data)["quotas"].items()}


def encode_producer_ids(broker_id: int, first: int, length: int) -> bytes:
    last = first + length - 1
    return _encode({"version": 1, "broker": broker_id, "block_start": str(first), "block_end": str(last)})


def decode_next_producer_id(data: bytes) -> int:
    return int(json.loads(data)["block_end"]) + 1
