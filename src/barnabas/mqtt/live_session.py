"""The session of a connected client: how much of it is stored, and when.

A session that nobody else could ask for (a clean one, on a lone broker) is never stored. Positions are stored at most
a second late, since a message with QoS 1 may come twice; what decides about QoS 2 is stored before it takes effect.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from barnabas.errors import KafkaError
from barnabas.machines.mqtt.session import Session, StoredWill, encode_session, session_key
from barnabas.mqtt.session_store import SessionPartition

if TYPE_CHECKING:
    from barnabas.mqtt.gateway import Gateway

SAVE_AFTER_MS: Final = 1000


class LiveSession:
    def __init__(self, gateway: "Gateway", session: Session, partition: SessionPartition | None) -> None:
        """No partition: it is not stored."""
        self._gateway = gateway
        self.session = session
        self.partition = partition
        self.fill: Callable[[Session], None] = lambda session: None
        """Puts subscriptions, positions and deliveries of this moment into the session."""
        self.is_lost = False
        """Whether another connection has taken it."""
        self._will_save = False
        self._ended = False

    @property
    def is_stored(self) -> bool:
        return self.partition is not None

    @property
    def is_durable(self) -> bool:
        """Whether it outlives its connection."""
        return self.partition is not None and self.session.expiry_seconds > 0

    def save_soon(self) -> None:
        if self.is_durable and not self._will_save:
            self._will_save = True
            self._gateway.call_after(SAVE_AFTER_MS, self._on_timer)

    async def save(self) -> None:
        """Raises KafkaError."""
        if self.is_durable and not self.is_lost and not self._ended:
            await self._append()

    def end(self, will: StoredWill | None) -> None:
        """The connection is closed. `will` is what the keeper of the session publishes later."""
        if self._ended:
            return
        if self.partition is not None and not self.is_lost:
            session = self.session
            session.connected, session.ended_ms, session.will = False, self._gateway.now_ms(), will
            written = self._append()
            self._gateway.on_ending(session.client_id, written)
        self._ended = True

    def _on_timer(self) -> None:
        self._will_save = False
        if not self._ended and not self.is_lost:
            self._append()

    def _append(self) -> "asyncio.Future[None]":
        assert self.partition is not None
        self.fill(self.session)
        store, key = self._gateway.store, session_key(self.session.client_id)
        return store.append(self.partition, key, encode_session(self.session))


async def ended(written: "asyncio.Future[None] | None") -> None:
    """Waits until the connection before has stored what it had."""
    if written is not None:
        try:
            await asyncio.shield(written)
        except KafkaError:
            pass
