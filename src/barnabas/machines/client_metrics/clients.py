"""The clients that a broker knows by their instance ids, and Kafka's rules for what they ask and push.

Kept while the connection is open; without a word for three intervals a client is forgotten as well. Of more than
`CLIENTS` the one that was silent longest is. Differs from Kafka: after its last push a client's values stay for a
minute, so that they can still be scraped; and a client that may ask at once because its subscription has changed may
then also push at once. What comes a tenth of the interval early is on time: the way takes longer at one time than at
another, and what a refused push held is lost.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Final

from barnabas.errors import ErrorCode
from barnabas.machines.client_metrics.series import ClientSeries, SeriesTable
from barnabas.machines.client_metrics.subscription import Subscription, Wanted, wanted_of
from barnabas.protocol.otlp_metrics import PushedMetrics

NO_ID: Final = bytes(16)
RESERVED_IDS: Final = frozenset((NO_ID, bytes(15) + b"\x01"))
CLIENTS = 10_000
EXPIRY_MS = 60_000
LINGER_MS = 60_000
INTERVALS_KEPT = 3
EARLY = 10
"""One part in so many of the interval."""
ASKS_AT_ONCE = (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
"""After these a client asks for its subscription without waiting."""
RESOURCE: Final = ("client_rack", "group_id", "group_instance_id", "group_member_id", "transactional_id")
"""What is kept of what a client says of itself, each up to `LONGEST` characters."""
LONGEST: Final = 256
COMPRESSION_TYPES = (0, 1, 2, 3, 4)


class Client:
    def __init__(self, instance_id: bytes, attributes: Mapping[str, str], principal: str) -> None:
        self.instance_id = instance_id
        self.attributes = attributes
        self.principal = principal
        self.wanted = Wanted(0, (), 0)
        self.version = -1
        """Of the subscriptions that `wanted` is from."""
        self.asked_ms: int | None = None
        self.pushed_ms: int | None = None
        self.last_error = ErrorCode.NONE
        self.has_terminated = False
        self.expires_ms = 0
        self.connection: Hashable = None
        """The one that it was last heard on."""
        self.series = ClientSeries()
        self.resource: dict[str, str] = {}
        """What it has pushed of itself."""


class Clients:
    """`text_of_id` makes the text of an instance id that patterns are matched with."""

    def __init__(self, text_of_id: Callable[[bytes], str]) -> None:
        self.series = SeriesTable()
        self.throttled = 0
        self.unknown_subscriptions = 0
        self.pushes = 0
        self.failed_pushes = 0
        self._text_of_id = text_of_id
        self._subscriptions: Sequence[Subscription] = ()
        self._version = 0
        self._clients: OrderedDict[bytes, Client] = OrderedDict()
        self._by_connection: dict[Hashable, bytes] = {}

    def __len__(self) -> int:
        return len(self._clients)

    def __iter__(self) -> Iterator[Client]:
        return iter(list(self._clients.values()))

    def subscribe(self, subscriptions: Sequence[Subscription]) -> None:
        self._subscriptions = subscriptions
        self._version += 1

    def client(
        self, instance_id: bytes, connection: Hashable, attributes: Mapping[str, str], principal: str, now_ms: int
    ) -> Client:
        """The one with that id, new if need be, with what it is asked for at the moment."""
        client = self._clients.get(instance_id)
        if client is not None and client.principal != principal:
            client = None  # somebody else's id, or somebody else's values under this one
            self._remove(instance_id)
        if client is None:
            client = self._clients[instance_id] = Client(instance_id, attributes, principal)
            if len(self._clients) > CLIENTS:
                self._remove(next(iter(self._clients)))
        self._clients.move_to_end(instance_id)
        if client.version != self._version:
            described = {**attributes, "client_instance_id": self._text_of_id(instance_id)}
            client.wanted = wanted_of(self._subscriptions, described, instance_id)
            client.version = self._version
            client.asked_ms = client.pushed_ms = None
        client.expires_ms = now_ms + max(EXPIRY_MS, INTERVALS_KEPT * client.wanted.interval_ms)
        previous = self._by_connection.get(connection)
        if previous is not None and previous != instance_id:
            self._remove(previous)
        self._by_connection[connection] = instance_id
        client.connection = connection
        return client

    def may_ask(self, client: Client, now_ms: int) -> bool:
        """Whether the client may ask for its subscription now."""
        last_ms = max((each for each in (client.asked_ms, client.pushed_ms) if each is not None), default=None)
        if last_ms is not None and not _is_due(client, last_ms, now_ms) and client.last_error not in ASKS_AT_ONCE:
            self.throttled += 1
            return False
        client.asked_ms = now_ms
        client.last_error = ErrorCode.NONE
        return True

    def check_push(
        self, client: Client, subscription_id: int, compression: int, terminating: bool, now_ms: int
    ) -> ErrorCode:
        """Kafka's checks, in its order, but for the size."""
        error = self._push_fault(client, subscription_id, compression, terminating, now_ms)
        client.last_error = error
        client.has_terminated = terminating
        return error

    def _push_fault(
        self, client: Client, subscription_id: int, compression: int, terminating: bool, now_ms: int
    ) -> ErrorCode:
        if client.has_terminated:
            return ErrorCode.INVALID_REQUEST
        follows_question = client.asked_ms is not None and client.asked_ms >= (client.pushed_ms or 0)
        is_due = client.pushed_ms is None or _is_due(client, client.pushed_ms, now_ms)
        if follows_question or is_due:
            client.asked_ms, client.pushed_ms = None, now_ms
        elif not terminating:
            self.throttled += 1
            return ErrorCode.THROTTLING_QUOTA_EXCEEDED
        if subscription_id != client.wanted.subscription_id:
            self.unknown_subscriptions += 1
            return ErrorCode.UNKNOWN_SUBSCRIPTION_ID
        if compression not in COMPRESSION_TYPES:
            return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        return ErrorCode.NONE

    def take(self, client: Client, pushed: PushedMetrics, now_ms: int) -> None:
        """What a good push has brought. The client may have gone while it was looked into."""
        self.pushes += 1
        if self._clients.get(client.instance_id) is client:
            client.resource = {name: value[:LONGEST] for name, value in pushed.resource.items() if name in RESOURCE}
            self.series.take(client.series, pushed.points)
            if client.has_terminated:
                client.expires_ms = now_ms + LINGER_MS

    def fail(self, client: Client, error: ErrorCode) -> ErrorCode:
        """A push that passed the checks could not be used."""
        client.last_error = error
        self.failed_pushes += 1
        return error

    def on_closed(self, connection: Hashable) -> None:
        instance_id = self._by_connection.pop(connection, None)
        if instance_id is not None:
            client = self._clients.get(instance_id)
            if client is not None and client.connection is connection and not client.has_terminated:
                self._remove(instance_id)

    def expire(self, now_ms: int) -> None:
        """Called before anybody looks at the clients."""
        for instance_id, client in list(self._clients.items()):
            if client.expires_ms <= now_ms:
                self._remove(instance_id)

    def _remove(self, instance_id: bytes) -> None:
        client = self._clients.pop(instance_id, None)
        if client is not None:
            self.series.forget(client.series)


def _is_due(client: Client, last_ms: int, now_ms: int) -> bool:
    interval_ms = client.wanted.interval_ms
    return now_ms - last_ms >= interval_ms - interval_ms // EARLY
