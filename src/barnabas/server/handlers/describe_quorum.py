"""DescribeQuorum (key 55), v0-v2: who decides about the metadata (KIP-595, KIP-836, KIP-853).

There is no Raft log here, but what a client needs is there: the leader is the controller, in its epoch, and the
voters are the brokers, each of which may become controller. Offsets of a metadata log do not exist: -1. v2 nodes and
error messages.
"""

from barnabas.errors import ErrorCode
from barnabas.machines.controller.topic_name import CLUSTER_METADATA_TOPIC
from barnabas.metadata.image import ClusterImage
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Listener,
    Node,
    PartitionData,
    ReplicaState,
    TopicData,
)
from barnabas.server.dispatch import Handler
from barnabas.server.request import CLUSTER, Operation, RequestContext

QUORUM = (CLUSTER_METADATA_TOPIC, 0)
NO_OFFSET = -1
FIRST_NODES_VERSION = 2


def handle_describe_quorum(context: RequestContext, request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    if not context.may(Operation.DESCRIBE, CLUSTER):
        return fail_describe_quorum(context, request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    response = DescribeQuorumResponse(error_code=ErrorCode.NONE, error_message=None)
    for topic in request.topics:
        rows = [_describe(context, topic.topic_name, each.partition_index) for each in topic.partitions]
        response.topics.append(TopicData(topic_name=topic.topic_name, partitions=rows))
    if context.version >= FIRST_NODES_VERSION and any(
        row.error_code == ErrorCode.NONE for topic in response.topics for row in topic.partitions
    ):
        response.nodes = _nodes(context.broker.cluster.image)
    return response


def _describe(context: RequestContext, topic: str, partition: int) -> PartitionData:
    if (topic, partition) != QUORUM:
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return PartitionData(partition_index=partition, error_code=error, error_message=error.text)
    image = context.broker.cluster.image
    return PartitionData(
        partition_index=partition,
        error_code=ErrorCode.NONE,
        error_message=None,
        leader_id=image.controller_id,
        leader_epoch=image.controller_epoch,
        high_watermark=NO_OFFSET,
        current_voters=[ReplicaState(replica_id=broker, log_end_offset=NO_OFFSET) for broker in sorted(image.brokers)],
    )


def _nodes(image: ClusterImage) -> list[Node]:
    return [
        Node(
            node_id=broker.node_id,
            listeners=[Listener(name=each.listener, host=each.host, port=each.port) for each in broker.endpoints],
        )
        for broker in image.brokers.values()
    ]


def fail_describe_quorum(
    context: RequestContext, request: DescribeQuorumRequest, error: ErrorCode
) -> DescribeQuorumResponse:
    return DescribeQuorumResponse(error_code=error, error_message=error.text)


HANDLER = Handler(
    api_key=ApiKey.DESCRIBE_QUORUM,
    min_version=0,
    max_version=2,
    request=DescribeQuorumRequest,
    handle=handle_describe_quorum,
    fail=fail_describe_quorum,
    checks_access=True,
)
