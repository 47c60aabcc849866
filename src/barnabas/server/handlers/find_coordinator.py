"""FindCoordinator (key 10), v0-v6: which broker coordinates a group or a transactional id.

It is the leader of the partition of `__consumer_offsets` or `__transaction_state` that the key hashes to. The first one
a request creates that topic and waits for it; Kafka responds COORDINATOR_NOT_AVAILABLE meanwhile, and clients retry.
It is also the response while a broker that the topic needs is away, and while the leader cannot use that partition's
log (damaged, or its disk failed).
v4 several keys at once (KIP-699); v6 share groups (KIP-932: INVALID_REQUEST, there are none here).
"""

import logging
from collections.abc import Generator

from barnabas.errors import ErrorCode, KafkaError
from barnabas.metadata.image import BrokerEndpoint
from barnabas.net.deferred import Deferred
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from barnabas.server.auto_topic_creation import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC, topic_on_demand
from barnabas.server.dispatch import Handler
from barnabas.server.request import CLUSTER, Operation, RequestContext, Resource

FIRST_BATCHED_VERSION = 4
GROUP, TRANSACTION, SHARE = 0, 1, 2
TOPICS = {GROUP: GROUP_METADATA_TOPIC, TRANSACTION: TRANSACTION_STATE_TOPIC}

logger = logging.getLogger(__name__)


def handle_find_coordinator(
    context: RequestContext, request: FindCoordinatorRequest
) -> FindCoordinatorResponse | Deferred[FindCoordinatorResponse]:
    topic = TOPICS.get(request.key_type)
    if topic is None:
        is_denied = request.key_type == SHARE and not context.may(Operation.CLUSTER_ACTION, CLUSTER)
        error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED if is_denied else ErrorCode.INVALID_REQUEST
        return fail_find_coordinator(context, request, error)
    keys = request.coordinator_keys if context.version >= FIRST_BATCHED_VERSION else [request.key]
    if context.broker.cluster.image.topic(topic) is None and any(_denial(context, topic, key) is None for key in keys):
        return context.run(_create_and_respond(context, request, topic))
    return context.in_slices(_respond(context, request, topic))


async def _create_and_respond(
    context: RequestContext, request: FindCoordinatorRequest, topic: str
) -> FindCoordinatorResponse:
    broker = context.broker
    image = broker.cluster.image
    wanted = topic_on_demand(topic, broker.config, image)
    if wanted.replication_factor <= len(image.brokers):
        await broker.auto_topic_creation.create(wanted)
    else:
        logger.info("%s is created once %d brokers are there", topic, wanted.replication_factor)
    response = context.in_slices(_respond(context, request, topic))
    return await response if isinstance(response, Deferred) else response


def _respond(
    context: RequestContext, request: FindCoordinatorRequest, topic: str
) -> Generator[None, None, FindCoordinatorResponse]:
    if context.version >= FIRST_BATCHED_VERSION:
        coordinators = []
        for key in request.coordinator_keys:
            coordinators.append(_coordinator(context, topic, key))
            yield
        return FindCoordinatorResponse(coordinators=coordinators)
    if (denial := _denial(context, topic, request.key)) is not None:
        return fail_find_coordinator(context, request, denial)
    node_id, endpoint = _look_up(context, topic, request.key)
    if endpoint is None:
        return fail_find_coordinator(context, request, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return FindCoordinatorResponse(
        error_code=ErrorCode.NONE,
        error_message=ErrorCode.NONE.name,
        node_id=node_id,
        host=endpoint.host,
        port=endpoint.port,
    )


def _look_up(context: RequestContext, topic: str, key: str) -> tuple[int, BrokerEndpoint | None]:
    """The leader of the key's partition and its address on the listener of the request."""
    broker = context.broker
    coordinator = broker.groups if topic == GROUP_METADATA_TOPIC else broker.transactions
    image = broker.cluster.image
    partition = image.partition(topic, coordinator.partition_for(key))
    if partition is None:
        return -1, None
    leader = image.brokers.get(partition.leader)
    if leader is None or (leader.node_id == broker.node_id and not _has_log(context, topic, partition.partition)):
        return -1, None
    return leader.node_id, leader.endpoint(context.listener.name)


def _has_log(context: RequestContext, topic: str, partition: int) -> bool:
    try:
        context.broker.replicas.find(topic, partition)
    except KafkaError:
        return False
    return True


def _denial(context: RequestContext, topic: str, key: str) -> ErrorCode | None:
    """Why the client may not know; None if it may."""
    if topic == GROUP_METADATA_TOPIC:
        allowed = context.may(Operation.DESCRIBE, Resource.group(key))
        return None if allowed else ErrorCode.GROUP_AUTHORIZATION_FAILED
    allowed = context.may(Operation.DESCRIBE, Resource.transactional_id(key))
    return None if allowed else ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def _coordinator(context: RequestContext, topic: str, key: str) -> Coordinator:
    if (denial := _denial(context, topic, key)) is not None:
        return _missing(key, denial)
    node_id, endpoint = _look_up(context, topic, key)
    if endpoint is None:
        return _missing(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return Coordinator(
        key=key, node_id=node_id, host=endpoint.host, port=endpoint.port, error_code=ErrorCode.NONE, error_message=""
    )


def _missing(key: str, error: ErrorCode) -> Coordinator:
    return Coordinator(key=key, node_id=-1, host="", port=-1, error_code=error, error_message=error.text)


def fail_find_coordinator(
    context: RequestContext, request: FindCoordinatorRequest, error: ErrorCode
) -> FindCoordinatorResponse:
    if context.version < FIRST_BATCHED_VERSION:
        return FindCoordinatorResponse(error_code=error, error_message=error.text, node_id=-1, host="", port=-1)
    return FindCoordinatorResponse(coordinators=[_missing(key, error) for key in request.coordinator_keys])


HANDLER = Handler(
    api_key=ApiKey.FIND_COORDINATOR,
    min_version=0,
    max_version=6,
    request=FindCoordinatorRequest,
    handle=handle_find_coordinator,
    fail=fail_find_coordinator,
    checks_access=True,
)
