"""Metadata (key 3), v0-v13: brokers, topics, partitions and their leaders.

A broker is listed with its address on the listener that the request came in on. Unknown topics are created in the
background if the broker and the request allow it; the first response says UNKNOWN_TOPIC_OR_PARTITION, as in Kafka 4.1.
v0 an empty list requests all topics (later: null), and replicas that are down are left out; v6 LISTENER_NOT_FOUND;
v12 topics by id (KIP-516). v13's error for the whole response is never needed here.
"""

from collections.abc import Callable, Generator, Iterable, Sequence
from functools import partial
from typing import TypeVar

from barnabas.errors import ErrorCode
from barnabas.machines.controller.topic_name import INTERNAL_TOPICS, fault_of_topic_name
from barnabas.metadata.image import BrokerEndpoint, ClusterImage, PartitionImage, TopicImage
from barnabas.net.deferred import Deferred
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from barnabas.server.authorized_operations import NOT_ASKED, authorized_cluster_operations, authorized_operations
from barnabas.server.auto_topic_creation import topic_on_demand
from barnabas.server.dispatch import Handler
from barnabas.server.forwarding import controller_for_clients
from barnabas.server.request import CLUSTER, Operation, RequestContext, Resource
from barnabas.types import NO_LEADER, NO_TOPIC_ID, TopicId

T = TypeVar("T")

FIRST_LISTENER_ERROR_VERSION = 6
FIRST_TOPIC_ID_VERSION = 12
ITEMS_PER_STEP = 1000


def handle_metadata(context: RequestContext, request: MetadataRequest) -> MetadataResponse | Deferred[MetadataResponse]:
    return context.in_slices(_describe(context, request))


def _describe(context: RequestContext, request: MetadataRequest) -> Generator[None, None, MetadataResponse]:
    image = context.broker.cluster.image
    listener = context.listener.name
    brokers = _brokers(image, listener)
    response = MetadataResponse(
        brokers=brokers,
        cluster_id=image.cluster_id,
        controller_id=controller_for_clients(image, [broker.node_id for broker in brokers]),
        topics=(yield from _topics(context, request, image)),
    )
    if request.include_topic_authorized_operations:
        for topic in response.topics:
            if topic.name is not None and topic.error_code != ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                topic.topic_authorized_operations = authorized_operations(context, Resource.topic(topic.name))
            yield
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = authorized_cluster_operations(context)
    return response


def _topics(
    context: RequestContext, request: MetadataRequest, image: ClusterImage
) -> Generator[None, None, list[MetadataResponseTopic]]:
    """A topic that is named more than once is described once, as in Kafka."""
    view = _View(image, context.listener.name, context.version)
    if request.topics is None or (context.version == 0 and not request.topics):
        return (yield from _each(view.describe, _visible(context, image)))
    if context.version < FIRST_TOPIC_ID_VERSION and any(
        each.name is None or each.topic_id != NO_TOPIC_ID for each in request.topics
    ):
        return fail_metadata(context, request, ErrorCode.INVALID_REQUEST).topics
    topic_ids = yield from _unique(each.topic_id for each in request.topics if each.topic_id != NO_TOPIC_ID)
    if topic_ids:
        return (yield from _each(partial(_by_id, context, view), topic_ids))
    names = yield from _unique(each.name for each in request.topics if each.name is not None)
    denied: list[str] = []
    if context.broker.authorizer is not None:
        denied = yield from _denied(context, Operation.DESCRIBE, names)
        for name in denied:
            del names[name]
    described = yield from _each(view.describe, [image.topics[name] for name in names if name in image.topics])
    unknown = [name for name in names if name not in image.topics]
    if unknown:
        described += yield from _missing(context, request, unknown)
    # Whether a topic exists is not said to those who may not describe it.
    return described + (yield from _each(partial(_unauthorized, is_internal=False), denied))


def _visible(context: RequestContext, image: ClusterImage) -> Iterable[TopicImage]:
    topics: Iterable[TopicImage] = image.topics.values()
    if context.broker.authorizer is None:
        return topics
    may = context.may
    return (each for each in topics if may(Operation.DESCRIBE, Resource.topic(each.name), log_denied=False))


def _denied(context: RequestContext, operation: Operation, names: Iterable[str]) -> Generator[None, None, list[str]]:
    denied = []
    for name in names:
        if not context.may_topic(operation, name):
            denied.append(name)
        yield
    return denied


def _unauthorized(name: str, is_internal: bool) -> MetadataResponseTopic:
    error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return MetadataResponseTopic(error_code=error, name=name, topic_id=NO_TOPIC_ID, is_internal=is_internal)


def _unique(items: Iterable[T]) -> Generator[None, None, dict[T, None]]:
    unique: dict[T, None] = {}
    for index, item in enumerate(items):
        unique[item] = None
        if index % ITEMS_PER_STEP == ITEMS_PER_STEP - 1:
            yield
    return unique


def _each(
    describe: Callable[[T], MetadataResponseTopic], items: Iterable[T]
) -> Generator[None, None, list[MetadataResponseTopic]]:
    described = []
    for item in items:
        described.append(describe(item))
        yield
    return described


def _by_id(context: RequestContext, view: "_View", topic_id: TopicId) -> MetadataResponseTopic:
    topic = view.image.topic_by_id(topic_id)
    if topic is None:
        return MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id)
    if not context.may_topic(Operation.DESCRIBE, topic.name):
        return MetadataResponseTopic(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=None, topic_id=topic_id)
    return view.describe(topic)


def _missing(
    context: RequestContext, request: MetadataRequest, names: Sequence[str]
) -> Generator[None, None, list[MetadataResponseTopic]]:
    broker = context.broker
    creates = request.allow_auto_topic_creation and broker.config.auto_create_topics_enable
    denied: list[str] = []
    if creates and not context.may(Operation.CREATE, CLUSTER, log_denied=False):
        denied = yield from _denied(context, Operation.CREATE, names)
        hidden = set(denied)
        names = [name for name in names if name not in hidden]
    valid: dict[str, None] = {}
    for name in names:
        if fault_of_topic_name(name) is None:
            valid[name] = None
        yield
    if valid and creates:
        image = broker.cluster.image
        broker.auto_topic_creation.request(topic_on_demand(name, broker.config, image) for name in valid)

    def failed(name: str) -> MetadataResponseTopic:
        valid_name = name in valid
        return _failed(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if valid_name else ErrorCode.INVALID_TOPIC_EXCEPTION)

    unauthorized = [_unauthorized(name, name in INTERNAL_TOPICS) for name in denied]
    return (yield from _each(failed, names)) + unauthorized


def _failed(name: str | None, error: ErrorCode, topic_id: TopicId = NO_TOPIC_ID) -> MetadataResponseTopic:
    return MetadataResponseTopic(error_code=error, name=name, topic_id=topic_id, is_internal=name in INTERNAL_TOPICS)


def _brokers(image: ClusterImage, listener: str) -> list[MetadataResponseBroker]:
    brokers = []
    for broker in image.brokers.values():
        endpoint = broker.endpoint(listener)
        if endpoint is not None:
            brokers.append(
                MetadataResponseBroker(node_id=broker.node_id, host=endpoint.host, port=endpoint.port, rack=broker.rack)
            )
    return brokers


class _View:
    """The image as seen through one listener in one version of the API."""

    __slots__ = ("_endpoints", "_hides_dead_replicas", "_listener_error", "image")

    def __init__(self, image: ClusterImage, listener: str, version: int) -> None:
        self.image = image
        self._hides_dead_replicas = version == 0
        self._listener_error = (
            ErrorCode.LISTENER_NOT_FOUND if version >= FIRST_LISTENER_ERROR_VERSION else ErrorCode.LEADER_NOT_AVAILABLE
        )
        found = {broker.node_id: broker.endpoint(listener) for broker in image.brokers.values()}
        self._endpoints: dict[int, BrokerEndpoint] = {each: end for each, end in found.items() if end is not None}

    def describe(self, topic: TopicImage) -> MetadataResponseTopic:
        return MetadataResponseTopic(
            error_code=ErrorCode.NONE,
            name=topic.name,
            topic_id=topic.topic_id,
            is_internal=topic.name in INTERNAL_TOPICS,
            partitions=[self._partition(each) for each in topic.partitions],
            topic_authorized_operations=NOT_ASKED,
        )

    def _partition(self, partition: PartitionImage) -> MetadataResponsePartition:
        reachable = self._endpoints
        replicas, in_sync = list(partition.replicas), list(partition.in_sync_replicas)
        error = ErrorCode.NONE
        if self._hides_dead_replicas:
            replicas = [each for each in replicas if each in reachable]
            in_sync = [each for each in in_sync if each in reachable]
            if len(replicas) < len(partition.replicas):
                error = ErrorCode.REPLICA_NOT_AVAILABLE
        leader = partition.leader
        if leader not in reachable:
            error = self._listener_error if leader in self.image.brokers else ErrorCode.LEADER_NOT_AVAILABLE
            leader = NO_LEADER
        return MetadataResponsePartition(
            error_code=error,
            partition_index=partition.partition,
            leader_id=leader,
            leader_epoch=partition.leader_epoch,
            replica_nodes=replicas,
            isr_nodes=in_sync,
            offline_replicas=[each for each in partition.replicas if each not in reachable],
        )


def fail_metadata(context: RequestContext, request: MetadataRequest, error: ErrorCode) -> MetadataResponse:
    image = context.broker.cluster.image
    return MetadataResponse(
        brokers=_brokers(image, context.listener.name),
        cluster_id=image.cluster_id,
        controller_id=image.controller_id,
        topics=[
            _failed(each.name if context.version >= FIRST_TOPIC_ID_VERSION else each.name or "", error, each.topic_id)
            for each in request.topics or ()
        ],
        error_code=error,
    )


HANDLER = Handler(
    api_key=ApiKey.METADATA,
    min_version=0,
    max_version=13,
    request=MetadataRequest,
    handle=handle_metadata,
    fail=fail_metadata,
    checks_access=True,
)
