"""The clients of the console: its own, and one admin client per user who logged in with a password of the cluster.

Changes go through the client of whoever makes them, so that the cluster decides what they may do.
"""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from barnabas.client.admin.aio import Admin
from barnabas.client.consumer.aio import Consumer
from barnabas.client.consumer.consumer import Consumer as BlockingConsumer
from barnabas.client.options import AdminOptions, ConsumerOptions, ProducerOptions
from barnabas.client.producer.aio import Producer

CLIENT_ID = "barnabas-console"
CALL_SECONDS = 10.0
"""How long one call of the page may take."""
_SCAN = {
    "enable.auto.commit": "false",
    "auto.offset.reset": "earliest",
    "allow.auto.create.topics": "false",
    "check.crcs": "true",
}
PASSWORD_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_OWN_LOGIN = ("sasl.jaas.config", "sasl.username", "sasl.password", "sasl.oauthbearer.", "sasl.login.")
"""Options that say who the console itself is: never those of a user who has logged in."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """A user of the cluster: SASL name and password, for as long as the session lasts."""

    user: str
    password: str = field(repr=False)
    mechanism: str

    def as_config(self) -> dict[str, str]:
        return {"sasl.mechanism": self.mechanism, "sasl.username": self.user, "sasl.password": self.password}


class Clients:
    """Makes clients from one set of client options, Kafka's names."""

    def __init__(self, config: Mapping[str, str]) -> None:
        self._config = dict(config)
        self._admins: dict[Credentials | None, Admin] = {}

    @property
    def bootstrap(self) -> str:
        return self._config["bootstrap.servers"]

    @property
    def uses_sasl(self) -> bool:
        return self._config.get("security.protocol", "PLAINTEXT").startswith("SASL")

    @property
    def mechanism(self) -> str:
        """By which users log in: the console's own, unless that has no password."""
        own = self._config.get("sasl.mechanism", "")
        return own if own in PASSWORD_MECHANISMS else "SCRAM-SHA-512"

    @property
    def users(self) -> int:
        return sum(1 for credentials in self._admins if credentials is not None)

    async def try_login(self, credentials: Credentials) -> None:
        """Over a new connection. Raises AuthenticationError, or another KafkaError; then nothing of it is kept."""
        admin = self._make_admin(credentials)
        try:
            await admin.describe_cluster(timeout=CALL_SECONDS)
        except BaseException:
            await admin.close()
            raise
        if self._admins.setdefault(credentials, admin) is not admin:
            await admin.close()

    def admin(self, credentials: Credentials | None = None) -> Admin:
        """One per user, kept."""
        if credentials not in self._admins:
            self._admins[credentials] = self._make_admin(credentials)
        return self._admins[credentials]

    def _make_admin(self, credentials: Credentials | None) -> Admin:
        own = {"default.api.timeout.ms": str(int(CALL_SECONDS * 1000))}
        return Admin.from_config(self._options(AdminOptions, credentials, own))

    def consumer(self, credentials: Credentials | None = None, **own: str) -> Consumer:
        """For assigned partitions; the caller closes it."""
        return Consumer.from_config(self._options(ConsumerOptions, credentials, _SCAN | own))

    def blocking_consumer(self, credentials: Credentials | None = None, **own: str) -> BlockingConsumer:
        """The same for a thread."""
        return BlockingConsumer.from_config(self._options(ConsumerOptions, credentials, _SCAN | own))

    def producer(self, credentials: Credentials | None = None) -> Producer:
        own = {"acks": "all", "delivery.timeout.ms": "15000", "request.timeout.ms": "10000", "linger.ms": "0"}
        return Producer.from_config(self._options(ProducerOptions, credentials, own))

    def _options(
        self,
        kind: type[AdminOptions] | type[ConsumerOptions] | type[ProducerOptions],
        credentials: Credentials | None,
        own: Mapping[str, str],
    ) -> dict[str, str]:
        login = credentials.as_config() if credentials else {}
        replaced = _OWN_LOGIN if login else ()
        given = {
            key: value
            for key, value in self._config.items()
            if key in kind.settings and not (replaced and key.startswith(replaced))
        }
        return {
            "client.id": CLIENT_ID,
            **given,
            **login,
            **{key.replace("_", "."): value for key, value in own.items()},
        }

    async def forget(self, credentials: Credentials) -> None:
        """After the last session of a user has ended."""
        admin = self._admins.pop(credentials, None)
        if admin is not None:
            with contextlib.suppress(Exception):
                await admin.close()

    async def close(self) -> None:
        while self._admins:
            _, admin = self._admins.popitem()
            with contextlib.suppress(Exception):
                await admin.close()
