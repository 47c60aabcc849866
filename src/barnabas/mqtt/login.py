"""Who an MQTT client is: by its certificate, by user name and password, or nobody.

The users are the cluster's: those of PLAIN that the listener has (`listener.name.NAME.plain.sasl.jaas.config`), and
those with SCRAM credentials, whose password is derived again and compared. That is a thread's work, and done for users
that do not exist as well, so that names cannot be told apart by time.
"""

import hashlib
import hmac
import secrets
from collections.abc import Callable
from ipaddress import ip_address
from typing import Final

from barnabas.config.broker import BrokerConfig
from barnabas.config.mqtt import ALLOW_ANONYMOUS, ON_LOOPBACK
from barnabas.config.security_rules import plain_users
from barnabas.machines.sasl.scram import HASHES, LEAST_ITERATIONS, salted_password
from barnabas.machines.sasl.scram_server import ScramCredential
from barnabas.metadata.image import ClusterImage
from barnabas.mqtt.packets import Connect
from barnabas.mqtt.reason_codes import MqttError, ReasonCode
from barnabas.server.record_work import RecordWork
from barnabas.server.request import ANONYMOUS, Principal
from barnabas.server.scram_users import credentials_of

PREFERRED: Final = "SCRAM-SHA-512"
NOBODY: Final = b"\0"
"""Compared with in place of a password that is not there."""


class Login:
    """One per listener."""

    def __init__(
        self, config: BrokerConfig, listener: str, host: str, image: Callable[[], ClusterImage], work: RecordWork
    ) -> None:
        self._plain = plain_users(config, listener)
        self._image = image
        self._work = work
        given = config.listener_overrides.get(f"listener.name.{listener.lower()}.{ALLOW_ANONYMOUS}")
        setting = config.mqtt.mqtt_allow_anonymous if given is None else given
        self.allows_anonymous = is_loopback(host) if setting == ON_LOOPBACK else setting == "true"
        self._fake_key = secrets.token_bytes(32)

    def without_password(self, connect: Connect, by_certificate: Principal) -> Principal | None:
        """Whose packet this is, if that needs no password. Raises MqttError."""
        if connect.username is not None:
            return None
        if connect.password is not None:
            raise MqttError(ReasonCode.BAD_USER_NAME_OR_PASSWORD, "a password without a user name")
        if by_certificate == ANONYMOUS and not self.allows_anonymous:
            raise MqttError(ReasonCode.NOT_AUTHORIZED, "this listener demands a user name and password")
        return by_certificate

    async def by_password(self, connect: Connect) -> Principal:
        """Raises MqttError, the same for whatever is wrong."""
        username, password = connect.username or "", connect.password or b""
        credentials = credentials_of(self._image(), username)
        mechanism = next((each for each in (PREFERRED, *credentials) if each in credentials), PREFERRED)
        credential = credentials.get(mechanism)
        is_scram = await self._work.run(_matches, mechanism, credential, password, self._fake_salt(username))
        known = self._plain.get(username)
        is_plain = hmac.compare_digest(NOBODY if known is None else known.encode(), password) and known is not None
        if not (is_scram or is_plain):
            raise MqttError(ReasonCode.BAD_USER_NAME_OR_PASSWORD, "wrong user name or password")
        return Principal("User", username)

    def _fake_salt(self, username: str) -> bytes:
        return hmac.digest(self._fake_key, username.encode(), "sha256")[:20]


def _matches(mechanism: str, credential: ScramCredential | None, password: bytes, fake_salt: bytes) -> bool:
    hash_name = HASHES[mechanism]
    salt = fake_salt if credential is None else credential.salt
    iterations = LEAST_ITERATIONS if credential is None else credential.iterations
    salted = salted_password(hash_name, password, salt, iterations)
    client_key = hmac.digest(salted, b"Client Key", hash_name)
    stored = bytes(hashlib.new(hash_name).digest_size) if credential is None else credential.stored_key
    return hmac.compare_digest(hashlib.new(hash_name, client_key).digest(), stored) and credential is not None


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address that was bound to; an empty host is every interface."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
