"""All sessions that one partition of the log of sessions has, as every broker rebuilds them from it. Pure.

Any broker may append. Who has a session is decided by the order of the log alone: a record counts if its generation is
higher than what is known, or if it comes from the connection that has the session. So of two connections that take a
session at once the first one has it, and what the owner before still writes is ignored by all brokers alike.
"""

from collections.abc import Iterator
from enum import Enum, auto
from typing import NamedTuple

from barnabas.machines.mqtt.session import Intent, Session, decode_intent, decode_session, split_key


class Applied(Enum):
    TAKEN = auto()
    """Another connection has the session now."""
    UPDATED = auto()
    REMOVED = auto()
    IGNORED = auto()
    """From a connection that does not have the session any more."""


class Duty(Enum):
    """What the leader of the partition has to see to."""

    MARK_ENDED = auto()
    """Its broker is gone, and so is the connection."""
    PUBLISH_WILL = auto()
    REMOVE = auto()


class Due(NamedTuple):
    duty: Duty
    session: Session


class SessionTable:
    def __init__(self) -> None:
        self.sessions: dict[str, Session] = {}
        self._intents: dict[str, dict[int, Intent]] = {}

    def clear(self) -> None:
        self.sessions.clear()
        self._intents.clear()

    def apply(self, key: bytes, value: bytes | None) -> tuple[Applied, str]:
        """One record, in the order of the log, and whose it is. Raises ValueError if it cannot be read."""
        client_id, packet_id = split_key(key)
        if packet_id is not None:
            return self._apply_intent(client_id, packet_id, value), client_id
        if value is None:
            # Written by the leader alone, which has seen everything before it.
            self.sessions.pop(client_id, None)
            self._intents.pop(client_id, None)
            return Applied.REMOVED, client_id
        return self._apply_session(decode_session(client_id, value)), client_id

    def _apply_session(self, session: Session) -> Applied:
        known = self.sessions.get(session.client_id)
        if known is not None and (known.generation, known.nonce) == (session.generation, session.nonce):
            self.sessions[session.client_id] = session
            return Applied.UPDATED
        if known is not None and session.generation <= known.generation:
            return Applied.IGNORED
        self.sessions[session.client_id] = session
        return Applied.TAKEN

    def _apply_intent(self, client_id: str, packet_id: int, value: bytes | None) -> Applied:
        intents = self._intents.setdefault(client_id, {})
        if value is None:
            intents.pop(packet_id, None)
            if not intents:
                del self._intents[client_id]
            return Applied.REMOVED
        intent = decode_intent(packet_id, value)
        session = self.sessions.get(client_id)
        if session is not None and intent.generation < session.generation:
            if not intents:
                del self._intents[client_id]
            return Applied.IGNORED
        intents[packet_id] = intent
        return Applied.UPDATED

    def has_intent(self, client_id: str, intent: Intent) -> bool:
        return self._intents.get(client_id, {}).get(intent.packet_id) == intent

    def packet_ids(self, client_id: str) -> list[int]:
        return list(self._intents.get(client_id, ()))

    def intents(self, client_id: str) -> tuple[set[int], dict[int, Intent]]:
        """Packet ids of messages that are stored for certain, and the others, which may be."""
        intents = self._intents.get(client_id, {})
        last: dict[int, int] = {}
        for each in intents.values():
            last[each.producer_id] = max(last.get(each.producer_id, 0), each.group)
        stored = {each.packet_id for each in intents.values() if each.group < last[each.producer_id]}
        return stored, {number: each for number, each in intents.items() if number not in stored}

    def due(self, now_ms: int, live_brokers: dict[int, int]) -> Iterator[Due]:
        """`live_brokers`: node id -> broker epoch."""
        for session in list(self.sessions.values()):
            if session.connected:
                if live_brokers.get(session.node_id) != session.broker_epoch:
                    yield Due(Duty.MARK_ENDED, session)
            elif session.will_is_due(now_ms):
                yield Due(Duty.PUBLISH_WILL, session)
            elif session.is_over(now_ms):
                yield Due(Duty.REMOVE, session)
