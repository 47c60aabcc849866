"""The session of one MQTT client, and its record in the log of sessions. Pure.

A session is one record under the client's id, as JSON. A message with QoS 2 that was published over it has a record of
its own, an intent, under the client's id and the packet id, until the client releases it.
"""

import base64
import json
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

VERSION: Final = 1
NEVER: Final = 0xFFFF_FFFF
"""The expiry of a session that lasts forever."""
SEPARATOR: Final = b"\0"
"""Between client id and packet id; no client id has it."""

Place = tuple[str, int]
"""Topic and partition."""


class StoredSubscription(NamedTuple):
    qos: int = 0
    no_local: bool = False
    retain_as_published: bool = False
    retain_handling: int = 0
    identifier: int | None = None


class StoredWill(NamedTuple):
    """`message` is the whole PUBLISH packet, as MQTT 5 writes it."""

    message: bytes
    delay_seconds: int


class Delivery(NamedTuple):
    """A message that the client has not acknowledged. `expects` is the type of the packet that comes next."""

    packet_id: int
    topic: str
    partition: int
    offset: int
    expects: int


@dataclass(slots=True, kw_only=True)
class Session:
    client_id: str
    generation: int
    """Grows with every connection that takes the session."""
    nonce: str
    """Distinguishes two connections that took it at once."""
    user: str
    host: str = ""
    """Where the client connected from, for the rights of its will."""
    node_id: int
    broker_epoch: int
    expiry_seconds: int = 0
    connected: bool = True
    ended_ms: int = 0
    """Wall time of the end of its connection."""
    will: StoredWill | None = None
    subscriptions: dict[str, StoredSubscription] = field(default_factory=dict)
    topic_ids: dict[str, str] = field(default_factory=dict)
    positions: dict[Place, int] = field(default_factory=dict)
    """Where to read on: everything before it is acknowledged."""
    acknowledged: dict[Place, list[int]] = field(default_factory=dict)
    """Offsets after the position that are acknowledged as well."""
    deliveries: list[Delivery] = field(default_factory=list)

    def is_over(self, now_ms: int) -> bool:
        if self.connected or self.expiry_seconds == NEVER:
            return False
        return now_ms >= self.ended_ms + self.expiry_seconds * 1000

    def will_is_due(self, now_ms: int) -> bool:
        if self.connected or self.will is None:
            return False
        return now_ms >= self.ended_ms + min(self.will.delay_seconds, self.expiry_seconds) * 1000


class Intent(NamedTuple):
    """A message with QoS 2 as it is appended: by which producer, with which sequence, where."""

    packet_id: int
    generation: int
    producer_id: int
    sequence: int
    topic: str
    partition: int
    group: int
    """Intents of one producer are carried out group by group, so all before the last group are stored."""


def session_key(client_id: str) -> bytes:
    return client_id.encode()


def intent_key(client_id: str, packet_id: int) -> bytes:
    return client_id.encode() + SEPARATOR + b"%d" % packet_id


def split_key(key: bytes) -> tuple[str, int | None]:
    """(client id, packet id of an intent). Raises ValueError."""
    client_id, separator, packet_id = key.partition(SEPARATOR)
    return client_id.decode(), int(packet_id) if separator else None


def encode_session(session: Session) -> bytes:
    content: dict[str, Any] = {
        "v": VERSION,
        "generation": session.generation,
        "nonce": session.nonce,
        "user": session.user,
        "host": session.host,
        "node": session.node_id,
        "epoch": session.broker_epoch,
        "expiry": session.expiry_seconds,
        "connected": session.connected,
        "ended": session.ended_ms,
        "subscriptions": {text: list(each) for text, each in session.subscriptions.items()},
        "topics": session.topic_ids,
        "positions": _by_topic(session.positions),
        "acknowledged": _by_topic(session.acknowledged),
        "deliveries": [list(each) for each in session.deliveries],
    }
    if session.will is not None:
        content["will"] = [base64.b64encode(session.will.message).decode(), session.will.delay_seconds]
    return json.dumps(content, separators=(",", ":")).encode()


def decode_session(client_id: str, data: bytes) -> Session:
    """Raises ValueError."""
    try:
        content = json.loads(data)
        if content["v"] != VERSION:
            raise ValueError(f"a session of version {content['v']}")
        will = content.get("will")
        return Session(
            client_id=client_id,
            generation=content["generation"],
            nonce=content["nonce"],
            user=content["user"],
            host=content["host"],
            node_id=content["node"],
            broker_epoch=content["epoch"],
            expiry_seconds=content["expiry"],
            connected=content["connected"],
            ended_ms=content["ended"],
            will=None if will is None else StoredWill(base64.b64decode(will[0]), will[1]),
            subscriptions={text: StoredSubscription(*each) for text, each in content["subscriptions"].items()},
            topic_ids=content["topics"],
            positions=_by_place(content["positions"]),
            acknowledged=_by_place(content["acknowledged"]),
            deliveries=[Delivery(*each) for each in content["deliveries"]],
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"no session: {error!r}") from error


def encode_intent(intent: Intent) -> bytes:
    return json.dumps([VERSION, *intent[1:]], separators=(",", ":")).encode()


def decode_intent(packet_id: int, data: bytes) -> Intent:
    """Raises ValueError."""
    try:
        version, *fields = json.loads(data)
        if version != VERSION:
            raise ValueError(f"an intent of version {version}")
        return Intent(packet_id, *fields)
    except TypeError as error:
        raise ValueError(f"no intent: {error}") from error


def _by_topic(values: dict[Place, Any]) -> dict[str, dict[str, Any]]:
    topics: dict[str, dict[str, Any]] = {}
    for (topic, partition), value in values.items():
        topics.setdefault(topic, {})[str(partition)] = value
    return topics


def _by_place(topics: dict[str, dict[str, Any]]) -> dict[Place, Any]:
    return {(topic, int(number)): value for topic, values in topics.items() for number, value in values.items()}
