"""AlterPartition (key 56), v2-v3: a leader asks the controller for other in-sync replicas (KIP-497).

v2 topic ids (KIP-841); v3 broker epochs of the new in-sync replicas (KIP-903). Only brokers send it.
"""

from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.controller.commands import IsrChange, IsrResult
from barnabas.net.deferred import Deferred
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    PartitionData,
    ResponsePartitionData,
    ResponseTopicData,
)
from barnabas.server.dispatch import Handler
from barnabas.server.request import RequestContext
from barnabas.types import NodeId, TopicId

FIRST_EPOCHS_VERSION = 3


def handle_alter_partition(
    context: RequestContext, request: AlterPartitionRequest
) -> AlterPartitionResponse | Deferred[AlterPartitionResponse]:
    if not context.may_act_as_broker():
        return fail_alter_partition(context, request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if not context.broker.cluster.is_controller:
        return fail_alter_partition(context, request, ErrorCode.NOT_CONTROLLER)
    return context.run(_alter(context, request))


async def _alter(context: RequestContext, request: AlterPartitionRequest) -> AlterPartitionResponse:
    changes = [
        _change(topic.topic_id, partition, context.version)
        for topic in request.topics
        for partition in topic.partitions
    ]
    try:
        results = await context.broker.controller.alter_partition_here(
            NodeId(request.broker_id), request.broker_epoch, changes
        )
    except KafkaError as error:
        return fail_alter_partition(context, request, error.code)
    topics: dict[TopicId, ResponseTopicData] = {}
    for result in results:
        topic = topics.setdefault(result.topic_id, ResponseTopicData(topic_id=result.topic_id, partitions=[]))
        topic.partitions.append(_result(result))
    return AlterPartitionResponse(topics=list(topics.values()))


def _change(topic_id: TopicId, partition: PartitionData, version: int) -> IsrChange:
    isr: tuple[int, ...] = tuple(partition.new_isr)
    epochs: tuple[int, ...] = ()
    if version >= FIRST_EPOCHS_VERSION:
        isr = tuple(each.broker_id for each in partition.new_isr_with_epochs)
        epochs = tuple(each.broker_epoch for each in partition.new_isr_with_epochs)
    return IsrChange(
        topic_id,
        partition.partition_index,
        partition.leader_epoch,
        partition.partition_epoch,
        isr,
        epochs,
        bool(partition.leader_recovery_state),
    )


def _result(result: IsrResult) -> ResponsePartitionData:
    data = ResponsePartitionData(partition_index=result.partition, error_code=result.error)
    image = result.image
    if image is not None:
        data.leader_id = image.leader
        data.leader_epoch = image.leader_epoch
        data.isr = list(image.in_sync_replicas)
        data.leader_recovery_state = int(image.leader_recovering)
        data.partition_epoch = image.partition_epoch
    return data


def fail_alter_partition(
    context: RequestContext, request: AlterPartitionRequest, error: ErrorCode
) -> AlterPartitionResponse:
    return AlterPartitionResponse(error_code=error, topics=[])


HANDLER = Handler(
    api_key=ApiKey.ALTER_PARTITION,
    min_version=2,
    max_version=3,
    request=AlterPartitionRequest,
    handle=handle_alter_partition,
    fail=fail_alter_partition,
    is_advertised=False,
    checks_access=True,
)
