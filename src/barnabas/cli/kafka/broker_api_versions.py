"""`kafka-broker-api-versions.sh`: which requests each broker takes, in which versions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from barnabas.cli.kafka.failures import FailureReport, with_admin
from barnabas.cli.kafka.flags import CONNECTION, Options, Tool

if TYPE_CHECKING:
    from barnabas.client.admin import Admin
    from barnabas.client.admin.types import FeatureRange
    from barnabas.client.metadata import Node

TOOL = Tool(
    "kafka-broker-api-versions.sh",
    "This tool helps to retrieve broker version information.",
    CONNECTION,
)


class Api(NamedTuple):
    """A request as clients of Kafka 4.1 know it."""

    name: str
    oldest: int
    latest: int


APIS = {
    0: Api("Produce", 3, 13),
    1: Api("Fetch", 4, 18),
    2: Api("ListOffsets", 1, 10),
    3: Api("Metadata", 0, 13),
    8: Api("OffsetCommit", 2, 10),
    9: Api("OffsetFetch", 1, 10),
    10: Api("FindCoordinator", 0, 6),
    11: Api("JoinGroup", 0, 9),
    12: Api("Heartbeat", 0, 4),
    13: Api("LeaveGroup", 0, 5),
    14: Api("SyncGroup", 0, 5),
    15: Api("DescribeGroups", 0, 6),
    16: Api("ListGroups", 0, 5),
    17: Api("SaslHandshake", 0, 1),
    18: Api("ApiVersions", 0, 4),
    19: Api("CreateTopics", 2, 7),
    20: Api("DeleteTopics", 1, 6),
    21: Api("DeleteRecords", 0, 2),
    22: Api("InitProducerId", 0, 6),
    23: Api("OffsetForLeaderEpoch", 2, 4),
    24: Api("AddPartitionsToTxn", 0, 5),
    25: Api("AddOffsetsToTxn", 0, 4),
    26: Api("EndTxn", 0, 5),
    27: Api("WriteTxnMarkers", 1, 1),
    28: Api("TxnOffsetCommit", 0, 5),
    29: Api("DescribeAcls", 1, 3),
    30: Api("CreateAcls", 1, 3),
    31: Api("DeleteAcls", 1, 3),
    32: Api("DescribeConfigs", 1, 4),
    33: Api("AlterConfigs", 0, 2),
    34: Api("AlterReplicaLogDirs", 1, 2),
    35: Api("DescribeLogDirs", 1, 4),
    36: Api("SaslAuthenticate", 0, 2),
    37: Api("CreatePartitions", 0, 3),
    38: Api("CreateDelegationToken", 1, 3),
    39: Api("RenewDelegationToken", 1, 2),
    40: Api("ExpireDelegationToken", 1, 2),
    41: Api("DescribeDelegationToken", 1, 3),
    42: Api("DeleteGroups", 0, 2),
    43: Api("ElectLeaders", 0, 2),
    44: Api("IncrementalAlterConfigs", 0, 1),
    45: Api("AlterPartitionReassignments", 0, 1),
    46: Api("ListPartitionReassignments", 0, 0),
    47: Api("OffsetDelete", 0, 0),
    48: Api("DescribeClientQuotas", 0, 1),
    49: Api("AlterClientQuotas", 0, 1),
    50: Api("DescribeUserScramCredentials", 0, 0),
    51: Api("AlterUserScramCredentials", 0, 0),
    55: Api("DescribeQuorum", 0, 2),
    57: Api("UpdateFeatures", 0, 2),
    60: Api("DescribeCluster", 0, 2),
    61: Api("DescribeProducers", 0, 0),
    64: Api("UnregisterBroker", 0, 0),
    65: Api("DescribeTransactions", 0, 0),
    66: Api("ListTransactions", 0, 2),
    68: Api("ConsumerGroupHeartbeat", 0, 1),
    69: Api("ConsumerGroupDescribe", 0, 1),
    71: Api("GetTelemetrySubscriptions", 0, 0),
    72: Api("PushTelemetry", 0, 0),
    74: Api("ListConfigResources", 0, 1),
    75: Api("DescribeTopicPartitions", 0, 0),
    76: Api("ShareGroupHeartbeat", 1, 1),
    77: Api("ShareGroupDescribe", 1, 1),
    78: Api("ShareFetch", 1, 1),
    79: Api("ShareAcknowledge", 1, 1),
    80: Api("AddRaftVoter", 0, 0),
    81: Api("RemoveRaftVoter", 0, 0),
    83: Api("InitializeShareGroupState", 0, 0),
    84: Api("ReadShareGroupState", 0, 0),
    85: Api("WriteShareGroupState", 0, 0),
    86: Api("DeleteShareGroupState", 0, 0),
    87: Api("ReadShareGroupStateSummary", 0, 0),
    88: Api("StreamsGroupHeartbeat", 0, 0),
    89: Api("StreamsGroupDescribe", 0, 0),
    90: Api("DescribeShareGroupOffsets", 0, 0),
    91: Api("AlterShareGroupOffsets", 0, 0),
    92: Api("DeleteShareGroupOffsets", 0, 0),
}


def _run(admin: Admin, options: Options) -> None:
    from barnabas.cli.kafka.connection import kafka_text
    from barnabas.errors import KafkaError

    for broker in admin.describe_cluster().brokers:
        try:
            features = admin.describe_features(broker_id=broker.node.id)
        except KafkaError as error:
            print(f"{_node(broker.node)} -> ERROR: {kafka_text(error)}")
        else:
            print(f"{_node(broker.node)} -> (\n\t" + ",\n\t".join(_lines(features.api_versions)) + "\n)")


def _node(node: Node) -> str:
    return f"{node.host}:{node.port} (id: {node.id} rack: {node.rack or 'null'} isFenced: false)"


def _lines(versions: Mapping[int, FeatureRange]) -> list[str]:
    return [
        _line(key, versions[key]) if key in versions else f"{APIS[key].name}({key}): UNSUPPORTED"
        for key in sorted({*versions, *APIS})
    ]


def _line(key: int, served: FeatureRange) -> str:
    oldest, latest = served
    range_text = str(oldest) if oldest == latest else f"{oldest} to {latest}"
    api = APIS.get(key)
    if api is None:
        return f"UNKNOWN({key}): {range_text}"
    if api.latest < oldest:
        usable = "[unusable: node too new]"
    elif latest < api.oldest:
        usable = "[unusable: node too old]"
    else:
        usable = f"[usable: {min(api.latest, latest)}]"
    return f"{api.name}({key}): {range_text} {usable}"


main = TOOL.main(lambda options: options.require("bootstrap-server"), with_admin(_run, FailureReport()))
