"""From CONNECT to a client with rights and a session: login, takeover, and the session that was there before."""

import asyncio
import dataclasses
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.mqtt.session import NEVER, Session, StoredWill, intent_key
from barnabas.mqtt.access import Access
from barnabas.mqtt.codec import encode_publish
from barnabas.mqtt.egress import Egress
from barnabas.mqtt.exactly_once import ExactlyOnce
from barnabas.mqtt.live_session import LiveSession, ended
from barnabas.mqtt.packets import V5, V311, Connect, Publish, Will
from barnabas.mqtt.properties import Properties, Property
from barnabas.mqtt.reason_codes import MqttError, ReasonCode
from barnabas.mqtt.session_store import SESSIONS, SessionPartition
from barnabas.server.request import Principal

if TYPE_CHECKING:
    from barnabas.mqtt.connection import MqttConnection
    from barnabas.mqtt.gateway import Gateway

logger = logging.getLogger(__name__)

ATTEMPTS: Final = 5


@dataclass(slots=True)
class Established:
    access: Access
    live: LiveSession
    egress: Egress
    exactly_once: ExactlyOnce | None
    session_present: bool
    keep_alive_seconds: int
    properties: Properties


async def establish(gateway: "Gateway", connection: "MqttConnection", connect: Connect) -> Established:
    """Raises MqttError with the code for CONNACK, and KafkaError if the session cannot be read or stored."""
    if Property.AUTHENTICATION_METHOD in connect.properties:
        raise MqttError(ReasonCode.BAD_AUTHENTICATION_METHOD, "no authentication method is supported")
    if connect.version == V311 and not connect.clean_start and not connect.client_id:
        raise MqttError(ReasonCode.CLIENT_IDENTIFIER_NOT_VALID, "a session that is kept needs a client id")
    principal = await _log_in(gateway, connection, connect)
    config = gateway.config
    properties: Properties = {
        Property.RECEIVE_MAXIMUM: config.mqtt_receive_maximum,
        Property.MAXIMUM_PACKET_SIZE: config.mqtt_max_packet_bytes,
        Property.TOPIC_ALIAS_MAXIMUM: config.mqtt_topic_alias_maximum,
    }
    if not connect.client_id:
        connect.client_id = gateway.new_client_id()
        properties[Property.ASSIGNED_CLIENT_IDENTIFIER] = connect.client_id
    keep_alive = min(connect.keep_alive or config.mqtt_keep_alive_max_seconds, config.mqtt_keep_alive_max_seconds)
    if keep_alive != connect.keep_alive:
        properties[Property.SERVER_KEEP_ALIVE] = keep_alive
    wanted = _expiry_of(connect)
    expiry = min(wanted, config.mqtt_session_expiry_max_seconds)
    if expiry != wanted:
        properties[Property.SESSION_EXPIRY_INTERVAL] = expiry
    access = Access(gateway.broker, principal, connection.peer_host, connect.client_id)
    live, is_present = await _session_for(gateway, connect, access, expiry)
    receive_maximum = connect.properties.get(Property.RECEIVE_MAXIMUM, config.mqtt_receive_maximum)
    max_bytes = connect.properties.get(Property.MAXIMUM_PACKET_SIZE, 1 << 30)
    window = min(receive_maximum, config.mqtt_receive_maximum)
    egress = Egress(gateway, connection, live, access, window, max_bytes)
    if is_present:
        await egress.restore()
    exactly_once = ExactlyOnce(gateway, live) if live.is_durable else None
    return Established(access, live, egress, exactly_once, is_present, keep_alive, properties)


async def _log_in(gateway: "Gateway", connection: "MqttConnection", connect: Connect) -> Principal:
    login = gateway.login_of(connection.listener)
    try:
        return login.without_password(connect, connection.principal) or await login.by_password(connect)
    except MqttError:
        # Late, so that guessing is slow.
        await asyncio.sleep(gateway.broker.config.connection_failed_authentication_delay_ms / 1000)
        raise


def _expiry_of(connect: Connect) -> int:
    if connect.version == V5:
        seconds: int = connect.properties.get(Property.SESSION_EXPIRY_INTERVAL, 0)
        return seconds
    return 0 if connect.clean_start else NEVER


async def _session_for(gateway: "Gateway", connect: Connect, access: Access, expiry: int) -> tuple[LiveSession, bool]:
    """The session, and whether it was there before."""
    client_id, principal = connect.client_id, access.principal
    await ended(gateway.take_over(client_id))
    node_id, broker_epoch = gateway.identity
    for _ in range(ATTEMPTS):
        partition = await _partition_for(gateway, client_id, expiry)
        before = None if partition is None else partition.table.sessions.get(client_id)
        is_present = before is not None and _may_resume(gateway, before, connect, principal)
        session = Session(
            client_id=client_id,
            generation=max(gateway.now_ms(), 1 if before is None else before.generation + 1),
            nonce=uuid4().hex,
            user=str(principal),
            host=access.host,
            node_id=node_id,
            broker_epoch=broker_epoch,
            expiry_seconds=expiry,
            will=stored_will(connect.will),
        )
        if before is not None and is_present:
            session = dataclasses.replace(
                before,
                generation=session.generation,
                host=access.host,
                nonce=session.nonce,
                node_id=node_id,
                broker_epoch=broker_epoch,
                expiry_seconds=expiry,
                connected=True,
                ended_ms=0,
                will=session.will,
            )
        if partition is None:
            return LiveSession(gateway, session, None), False
        old = (
            []
            if is_present
            else [(intent_key(client_id, each), None) for each in partition.table.packet_ids(client_id)]
        )
        if await gateway.store.take(partition, session, old):
            return LiveSession(gateway, session, partition), is_present
        logger.info("the session of %s was taken by another connection at once", client_id)
    raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS, "other connections take the session again and again")


async def _partition_for(gateway: "Gateway", client_id: str, expiry: int) -> SessionPartition | None:
    """None if nobody else can ask for the session: it is clean, new, and there is one broker."""
    if not expiry and gateway.is_alone:
        if not gateway.is_known(SESSIONS):
            return None
        partition = await gateway.store.current(client_id)
        return partition if client_id in partition.table.sessions else None
    return await gateway.store.current(client_id)


def _may_resume(gateway: "Gateway", session: Session, connect: Connect, principal: Principal) -> bool:
    """Nobody gets another user's session: it is over then."""
    if connect.clean_start or session.is_over(gateway.now_ms()) or session.user != str(principal):
        return False
    # An owner whose broker is gone has ended too, when the keeper has not seen to it yet.
    return session.expiry_seconds > 0


def message_of(will: Will) -> Publish:
    properties: Properties = {
        name: value for name, value in will.properties.items() if name is not Property.WILL_DELAY_INTERVAL
    }
    return Publish(
        topic=will.topic,
        payload=will.payload,
        qos=will.qos,
        retain=will.retain,
        packet_id=1 if will.qos else 0,
        properties=properties,
    )


def stored_will(will: Will | None) -> StoredWill | None:
    if will is None:
        return None
    return StoredWill(encode_publish(message_of(will), V5), will.properties.get(Property.WILL_DELAY_INTERVAL, 0))
