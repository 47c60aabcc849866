"""Listeners of other protocols than Kafka's, loaded only if there is such a listener.

They stand above the server, which therefore knows them by name: `barnabas.mqtt.gateway`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Protocol

from barnabas.config.listeners import MQTT_PROTOCOLS
from barnabas.config.listeners import Listener as ConfiguredListener
from barnabas.metadata.image import Delta
from barnabas.net.context import ConnectionContext, ServedConnection
from barnabas.net.settings import Listener
from barnabas.transport.channel import Channel

if TYPE_CHECKING:
    from barnabas.server.broker import Broker


class Gateway(Protocol):
    publish_count: int
    delivery_count: int

    @property
    def connection_count(self) -> int: ...
    @property
    def in_flight_count(self) -> int: ...
    @property
    def session_count(self) -> int: ...

    def connect(
        self, context: ConnectionContext, channel: Channel, peer: tuple[str, int], listener: Listener, /
    ) -> ServedConnection: ...

    def on_delta(self, delta: Delta, /) -> None: ...
    async def stop(self) -> None: ...


def mqtt_gateway(broker: "Broker", listeners: tuple[ConfiguredListener, ...]) -> Gateway | None:
    if not any(each.protocol in MQTT_PROTOCOLS for each in listeners):
        return None
    gateway: Gateway = import_module("barnabas.mqtt.gateway").Gateway(broker)
    return gateway
