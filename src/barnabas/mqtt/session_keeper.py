"""What becomes of sessions that nobody is connected to: the leader of each partition of their log sees to it.

It acts only on what it has read to the end of its log, and appends in the same turn, so nothing can come in between.
"""

import asyncio
import dataclasses
import logging
from typing import TYPE_CHECKING, Final

from barnabas.errors import KafkaError
from barnabas.machines.mqtt.session import Session, StoredWill, encode_session, intent_key, session_key
from barnabas.machines.mqtt.table import Due, Duty
from barnabas.mqtt.codec import decode
from barnabas.mqtt.packets import V5, Publish
from barnabas.mqtt.reason_codes import MqttError
from barnabas.mqtt.session_store import SESSIONS, SessionPartition, SessionStore

if TYPE_CHECKING:
    from barnabas.mqtt.gateway import Gateway

logger = logging.getLogger(__name__)

INTERVAL_SECONDS: Final = 0.5
PER_TURN: Final = 500


class SessionKeeper:
    def __init__(self, gateway: "Gateway", store: SessionStore) -> None:
        self._gateway = gateway
        self._store = store
        self._wills: set[str] = set()
        """Clients whose wills are being published."""

    async def run(self) -> None:
        while True:
            await asyncio.sleep(INTERVAL_SECONDS)
            for partition in self._store.partitions:
                try:
                    await self._look_at(partition)
                except KafkaError as error:
                    logger.info("%s-%d: %s", SESSIONS, partition.number, error)

    async def _look_at(self, partition: SessionPartition) -> None:
        if not self._gateway.leads(SESSIONS, partition.number):
            return
        now_ms, brokers = self._gateway.now_ms(), self._gateway.live_brokers()
        for index, due in enumerate(partition.table.due(now_ms, brokers)):
            if self._gateway.is_at_end(SESSIONS, partition.number, partition.position):
                self._see_to(partition, due)
                await self._store.catch_up(partition)
            if index % PER_TURN == PER_TURN - 1:
                await asyncio.sleep(0)

    def _see_to(self, partition: SessionPartition, due: Due) -> None:
        """Appends at once if this broker leads, as `is_at_end` has made sure."""
        session = partition.table.sessions.get(due.session.client_id)
        if session is not due.session:
            return
        if due.duty is Duty.MARK_ENDED:
            ended = dataclasses.replace(session, connected=False, ended_ms=self._gateway.now_ms())
            self._store.append(partition, session_key(session.client_id), encode_session(ended))
        elif due.duty is Duty.PUBLISH_WILL and session.will is not None:
            if session.client_id not in self._wills:
                self._wills.add(session.client_id)
                self._gateway.run(self._publish_will(partition, session, session.will))
        elif due.duty is Duty.REMOVE:
            for packet_id in partition.table.packet_ids(session.client_id):
                self._store.append(partition, intent_key(session.client_id, packet_id), None)
            self._store.append(partition, session_key(session.client_id), None)
        self._gateway.flush()

    async def _publish_will(self, partition: SessionPartition, session: Session, will: StoredWill) -> None:
        """If the broker ends in between, the will is published once more."""
        try:
            packet = decode(memoryview(will.message), V5)
            assert isinstance(packet, Publish)
            await self._gateway.publish_will(session, packet)
        except MqttError as fault:
            logger.warning("the will of %s is not published: %s", session.client_id, fault)
        finally:
            self._wills.discard(session.client_id)
        without = dataclasses.replace(session, will=None)
        # Does not count if the client has connected meanwhile.
        self._store.append(partition, session_key(session.client_id), encode_session(without))
