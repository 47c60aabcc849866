"""WriteTxnMarkers (key 27), v1: a transaction coordinator has commit or abort markers written to partitions led here.

Responds when every marker is committed or refused. Also what `kafka-transactions abort` sends.
"""

from barnabas.errors import ErrorCode
from barnabas.machines.coordinator import ProducerIdAndEpoch
from barnabas.net.deferred import Deferred
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from barnabas.server.dispatch import Handler
from barnabas.server.request import CLUSTER, Operation, RequestContext
from barnabas.server.txn_markers import Marker
from barnabas.types import TopicPartition

LONGEST_WAIT_MS = 10_000
"""Responses to a coordinator come in order: a marker that cannot be replicated must not hold up the others for long."""


def handle_write_txn_markers(
    context: RequestContext, request: WriteTxnMarkersRequest
) -> WriteTxnMarkersResponse | Deferred[WriteTxnMarkersResponse]:
    # An administrator who aborts a transaction, or a broker.
    if not context.may(Operation.ALTER, CLUSTER, log_denied=False) and not context.may_act_as_broker():
        return fail_write_txn_markers(context, request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    response = WriteTxnMarkersResponse(markers=[])
    missing = sum(len(topic.partition_indexes) for marker in request.markers for topic in marker.topics)
    done: Deferred[WriteTxnMarkersResponse] = Deferred()
    deadline_ms = context.broker.clock.monotonic_ms() + LONGEST_WAIT_MS
    for marker in request.markers:
        result = WritableTxnMarkerResult(producer_id=marker.producer_id, topics=[])
        response.markers.append(result)
        for topic in marker.topics:
            topic_result = WritableTxnMarkerTopicResult(name=topic.name, partitions=[])
            result.topics.append(topic_result)

            def on_written(
                partition: TopicPartition, error: ErrorCode, topic_result: WritableTxnMarkerTopicResult = topic_result
            ) -> None:
                nonlocal missing
                missing -= 1
                topic_result.partitions.append(
                    WritableTxnMarkerPartitionResult(partition_index=partition.partition, error_code=error)
                )
                if not missing:
                    done.complete(response)

            partitions = [TopicPartition(topic.name, index) for index in topic.partition_indexes]
            context.broker.transactions.markers.write(_marker(marker), partitions, on_written, deadline_ms)
    return done if missing else response


def _marker(marker: WritableTxnMarker) -> Marker:
    producer = ProducerIdAndEpoch(marker.producer_id, marker.producer_epoch)
    return Marker(producer, marker.transaction_result, marker.coordinator_epoch)


def fail_write_txn_markers(
    context: RequestContext, request: WriteTxnMarkersRequest, error: ErrorCode
) -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            WritableTxnMarkerPartitionResult(partition_index=index, error_code=error)
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )


HANDLER = Handler(
    api_key=ApiKey.WRITE_TXN_MARKERS,
    min_version=1,
    max_version=1,
    request=WriteTxnMarkersRequest,
    handle=handle_write_txn_markers,
    fail=fail_write_txn_markers,
    checks_access=True,
)
