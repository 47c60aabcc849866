"""A request as its handler sees it: who sent it, and what may be asked and charged on its behalf.

`dispatch` makes one `RequestContext` per request, except for requests that a fast path takes (see dispatch). It is the
one place where authorization (`may`), quotas (`charge`), memory accounting (`hold`) and request metrics attach.
Names of operations and resources are Kafka's (AclOperation, ResourceType).
"""

from collections.abc import Callable, Coroutine, Generator
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from barnabas.errors import ErrorCode, KafkaError, ProtocolError
from barnabas.machines.controller.acls import CLUSTER_NAME, Operation, SecuredType
from barnabas.net.connection import Connection
from barnabas.net.deferred import Deferred
from barnabas.net.reply import Parts
from barnabas.net.settings import Listener
from barnabas.protocol.api import ApiKey
from barnabas.protocol.headers import RequestHeader
from barnabas.server.metrics.requests import RequestMeter
from barnabas.types import TopicId

if TYPE_CHECKING:
    from barnabas.server.broker import Broker
    from barnabas.server.client_quotas import Limits

__all__ = [
    "ANONYMOUS",
    "CLUSTER",
    "Operation",
    "Origin",
    "Principal",
    "Quota",
    "RequestContext",
    "Resource",
    "SecuredType",
]

T = TypeVar("T")


class Resource(NamedTuple):
    type: SecuredType
    name: str

    @classmethod
    def topic(cls, name: str) -> "Resource":
        return cls(SecuredType.TOPIC, name)

    @classmethod
    def group(cls, group_id: str) -> "Resource":
        return cls(SecuredType.GROUP, group_id)

    @classmethod
    def transactional_id(cls, name: str) -> "Resource":
        return cls(SecuredType.TRANSACTIONAL_ID, name)


RESPONSE_MAX_BYTES = 104_857_600
"""The default of `socket.request.max.bytes`, about what librdkafka takes. A larger setting raises this bound too."""

CLUSTER = Resource(SecuredType.CLUSTER, CLUSTER_NAME)


class Principal(NamedTuple):
    type: str
    name: str

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


_REQUEST_NAMES = {int(each): "".join(map(str.capitalize, each.name.split("_"))) for each in ApiKey}

ANONYMOUS = Principal("User", "ANONYMOUS")


def principal_of(connection: Connection) -> Principal:
    """Who has authenticated on the connection."""
    session = connection.session
    return ANONYMOUS if session is None else session.principal


class Quota(IntEnum):
    """What a client can be throttled by: bytes written and read, time of the loop, changes of partitions (KIP-599)."""

    PRODUCE_BYTES = 1
    FETCH_BYTES = 2
    REQUEST_TIME = 3
    CONTROLLER_MUTATIONS = 4


class Origin(NamedTuple):
    """Who sent a request that another broker has passed on to the controller."""

    principal: Principal
    host: str


class RequestContext:
    """Lives as long as its request."""

    __slots__ = (
        "_held_bytes",
        "_parked",
        "_response_bytes",
        "broker",
        "connection",
        "deadline_ms",
        "handled_ns",
        "header",
        "is_long",
        "limits",
        "meter",
        "origin",
        "started",
        "started_ns",
        "throttled_until_ms",
    )

    def __init__(
        self, broker: "Broker", connection: Connection, header: RequestHeader, origin: Origin | None = None
    ) -> None:
        self.broker = broker
        self.connection = connection
        self.header = header
        self.origin = origin
        self.deadline_ms: int | None = None
        """Monotonic time by which the client wants a response; None if the request names no time-out."""
        self.is_long = False
        """Whether some of the work went on in later slices: then the response is encoded in slices too."""
        self.meter: RequestMeter | None = None
        """Where the request is counted; None for one inside an Envelope, which is counted where it came in."""
        self.started_ns = 0
        self.handled_ns = 0
        """When the handler began, and when it returned without a response."""
        self.limits: Limits | None = None
        """The quotas of the client; None if it has none."""
        self.started = 0.0
        """By the stopwatch of the quotas, if the client has one on the time its requests take. 0: it is charged."""
        self.throttled_until_ms = 0
        self._held_bytes: int | None = None
        self._parked: Deferred[Parts] | None = None
        self._response_bytes = 0

    @property
    def version(self) -> int:
        return self.header.api_version

    @property
    def listener(self) -> Listener:
        return self.connection.listener

    @property
    def principal(self) -> Principal:
        """Who sent the request, as the connection's handshake has shown."""
        return principal_of(self.connection) if self.origin is None else self.origin.principal

    @property
    def client_id(self) -> str:
        return self.header.client_id or ""

    @property
    def client_host(self) -> str:
        """As Kafka writes it in descriptions of groups."""
        return f"/{self.host}"

    @property
    def host(self) -> str:
        """The address that the request came from, before any broker passed it on."""
        return self.connection.peer_host if self.origin is None else self.origin.host

    def may(self, operation: Operation, resource: Resource, *, log_denied: bool = True) -> bool:
        """Whether the principal may do this. Without an authorizer everybody may do everything.

        `log_denied` is False where a denial only means less in the response, or that another right may do instead.
        """
        authorizer = self.broker.authorizer
        if authorizer is None:
            return True
        request = _REQUEST_NAMES[self.header.api_key]
        return authorizer.authorize(
            str(self.principal), self.host, operation, resource.type, resource.name, request, log_denied=log_denied
        )

    def may_topic(self, operation: Operation, topic: str | TopicId) -> bool:
        """The same for a topic by name or id. An id that is unknown is nobody's secret: True, it fails elsewhere."""
        if self.broker.authorizer is None:
            return True
        if isinstance(topic, bytes):
            found = self.broker.cluster.image.topic_by_id(topic)
            if found is None:
                return True
            topic = found.name
        return self.may(operation, Resource.topic(topic))

    def may_any(self, operation: Operation, resource_type: SecuredType) -> bool:
        """Whether there is any resource of that kind that the principal may do this to (KIP-679)."""
        authorizer = self.broker.authorizer
        return authorizer is None or authorizer.authorize_any(str(self.principal), self.host, operation, resource_type)

    def may_act_as_broker(self) -> bool:
        """Whether this is a broker, so that what it claims about itself and its replicas is believed.

        Without an authorizer whoever comes in on the listener of brokers is one. With one a broker has cluster rights,
        too; a super user may use any listener, so that brokers can be moved from one listener to another, one by one.
        """
        broker = self.broker
        is_own_listener = self.connection.listener.name == broker.inter_broker_listener
        if broker.authorizer is None:
            return is_own_listener
        return self.may(Operation.CLUSTER_ACTION, CLUSTER) and (is_own_listener or self.is_super_user)

    @property
    def is_super_user(self) -> bool:
        """Whether the principal may do everything, whatever the access rules say."""
        authorizer = self.broker.authorizer
        return authorizer is None or authorizer.is_super_user(str(self.principal))

    def charge(self, quota: Quota, amount: float) -> int:
        """Count this against the client's quota; returns for how many milliseconds the client is throttled."""
        limits = self.limits
        if limits is None:
            return 0
        limit = {
            Quota.PRODUCE_BYTES: limits.produce,
            Quota.FETCH_BYTES: limits.fetch,
            Quota.REQUEST_TIME: limits.request_time,
        }.get(quota)
        throttle_ms = 0 if limit is None else limit.charge(amount)
        self._throttle(throttle_ms)
        return throttle_ms

    def charge_time(self) -> int:
        """Count the time that the request has taken of the loop, once."""
        if not self.started:
            return 0
        taken = self.broker.client_quotas.stopwatch() - self.started
        self.started = 0.0
        return self.charge(Quota.REQUEST_TIME, taken * 100)

    def may_fetch(self, byte_count: int) -> bool:
        """Whether a Fetch may respond with this much. If not, what it has read does not count (KIP-219)."""
        if self.limits is None:
            return True
        is_throttled = self.charge_time() > 0
        fetch = self.limits.fetch
        if fetch is not None and byte_count:
            is_throttled = self.charge(Quota.FETCH_BYTES, byte_count) > 0 or is_throttled
            if is_throttled:
                fetch.take_back(byte_count)
        return not is_throttled

    def fetch_max_bytes(self, max_bytes: int) -> int:
        """More at once would always be throttled, so that a consumer would never get anything."""
        if self.limits is None or self.limits.fetch is None:
            return max_bytes
        return int(min(max_bytes, self.limits.fetch.burst))

    def mutation_charge(self, first_strict_version: int) -> Callable[[int], None] | None:
        """Counts partitions that are created or deleted (KIP-599); None if the client has no quota for it.

        From that version on it raises THROTTLING_QUOTA_EXCEEDED once the quota is used up; before, clients only pause.
        """
        limit = None if self.limits is None else self.limits.mutations
        if limit is None:
            return None

        def charge(count: int) -> None:
            if self.version >= first_strict_version and (throttle_ms := limit.throttle_ms()):
                self._throttle(throttle_ms)
                raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
            limit.take(count)
            if self.version < first_strict_version:
                self._throttle(limit.throttle_ms())

        return charge

    def _throttle(self, throttle_ms: int) -> None:
        if throttle_ms > 0:
            until_ms = self.broker.clock.monotonic_ms() + throttle_ms
            self.throttled_until_ms = max(self.throttled_until_ms, until_ms)

    @property
    def throttle_ms(self) -> int:
        """For how much longer the client has to pause."""
        if not self.throttled_until_ms:
            return 0
        return max(0, self.throttled_until_ms - self.broker.clock.monotonic_ms())

    def expires_after(self, timeout_ms: int) -> int:
        """Set the deadline from a time-out in the request; returns the time-out, 0 if it is negative."""
        timeout_ms = max(0, timeout_ms)
        self.deadline_ms = self.broker.clock.monotonic_ms() + timeout_ms
        return timeout_ms

    def hold(self, memory_bytes: int) -> None:
        """While the request is parked it holds this much, in place of the size of its frame."""
        self._held_bytes = memory_bytes
        if self._parked is not None:
            self._parked.hold(memory_bytes)

    def park(self, response: Deferred[Parts], frame_bytes: int) -> None:
        """Called by dispatch with a response that is not there yet: counts what the request holds until it is."""
        response.memory_bytes = frame_bytes if self._held_bytes is None else self._held_bytes
        self._parked = response

    def run(self, work: Coroutine[Any, Any, T]) -> Deferred[T]:
        """The response of a coroutine, for handlers that wait for threads or for the metadata store."""
        return self.broker.dispatcher.run(work)

    def in_slices(self, work: Generator[None, None, T]) -> T | Deferred[T]:
        """The response of work that can be long: it yields wherever others may be served in between.

        While it goes on the connection reads no further requests, so they keep their order, and one connection has one
        long request at a time.
        """
        result = self.broker.dispatcher.slices.run(work)
        if not isinstance(result, Deferred):
            return result
        self.is_long = True
        connection = self.connection
        connection.pause_for_long_request()

        def resume(value: T) -> T:
            connection.resume_after_long_request()
            return value

        return result.then(resume)

    def count_response(self, byte_count: int) -> None:
        """Count what a response will take, for handlers whose response can be much larger than the request.

        A response that would be larger than `RESPONSE_MAX_BYTES` closes the connection, as too large a request does.
        """
        self._response_bytes += byte_count
        self.check_response_size(self._response_bytes)

    def check_response_size(self, byte_count: int) -> None:
        if byte_count > RESPONSE_MAX_BYTES:
            max_bytes = max(RESPONSE_MAX_BYTES, self.broker.config.socket_request_max_bytes)
            if byte_count > max_bytes:
                raise ProtocolError(f"the response would have more than {max_bytes} bytes")
