"""What one client may do: topics by access rules, bytes by client quotas, as on Kafka's listeners.

Publishing needs Write on the topic that an MQTT topic is mapped to, subscribing needs Read. The authorizer remembers
its rulings, so asking for every message is a look-up.
"""

from typing import TYPE_CHECKING

from barnabas.machines.controller.acls import CLUSTER_NAME, Operation, SecuredType
from barnabas.server.request import Principal

if TYPE_CHECKING:
    from barnabas.server.broker import Broker

PUBLISH, SUBSCRIBE, CREATE = "MqttPublish", "MqttSubscribe", "MqttCreateTopic"
"""As the audit log names the requests."""


class Access:
    __slots__ = ("_broker", "_client_id", "_name", "host", "principal")

    def __init__(self, broker: "Broker", principal: Principal, host: str, client_id: str) -> None:
        self._broker = broker
        self.principal = principal
        self._name = str(principal)
        self.host = host
        self._client_id = client_id

    def may_write(self, topic: str) -> bool:
        authorizer = self._broker.authorizer
        return authorizer is None or authorizer.authorize(
            self._name, self.host, Operation.WRITE, SecuredType.TOPIC, topic, PUBLISH
        )

    def may_read(self, topic: str, *, log_denied: bool = False) -> bool:
        authorizer = self._broker.authorizer
        return authorizer is None or authorizer.authorize(
            self._name, self.host, Operation.READ, SecuredType.TOPIC, topic, SUBSCRIBE, log_denied=log_denied
        )

    def may_read_any(self) -> bool:
        authorizer = self._broker.authorizer
        return authorizer is None or authorizer.authorize_any(self._name, self.host, Operation.READ, SecuredType.TOPIC)

    def may_join(self, group: str) -> bool:
        """For shared subscriptions, which are consumer groups."""
        authorizer = self._broker.authorizer
        return authorizer is None or authorizer.authorize(
            self._name, self.host, Operation.READ, SecuredType.GROUP, group, SUBSCRIBE
        )

    def may_create(self, topic: str) -> bool:
        """As in Kafka: Create on the cluster, or on the topic."""
        authorizer = self._broker.authorizer
        if authorizer is None or authorizer.authorize(
            self._name, self.host, Operation.CREATE, SecuredType.CLUSTER, CLUSTER_NAME, CREATE, log_denied=False
        ):
            return True
        return authorizer.authorize(self._name, self.host, Operation.CREATE, SecuredType.TOPIC, topic, CREATE)

    def charge_publish(self, byte_count: int) -> int:
        """For how many milliseconds the client has to pause."""
        quotas = self._broker.client_quotas
        limits = quotas.find(self.principal.name, self._client_id) if quotas.enabled else None
        return 0 if limits is None or limits.produce is None else limits.produce.charge(byte_count)

    def charge_delivery(self, byte_count: int) -> int:
        quotas = self._broker.client_quotas
        limits = quotas.find(self.principal.name, self._client_id) if quotas.enabled else None
        return 0 if limits is None or limits.fetch is None else limits.fetch.charge(byte_count)
