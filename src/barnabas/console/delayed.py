"""Which topics are intakes of delayed messages; what waits in them is read by the client package."""

import time

from barnabas.client.admin.aio import Admin
from barnabas.client.admin.types import ConfigResource
from barnabas.client.pending_deliveries import TARGET_SETTING
from barnabas.console.clients import Credentials
from barnabas.console.login.actor import current_actor
from barnabas.errors import ErrorCode, KafkaError

KNOWN_SECONDS = 30.0


class Intakes:
    """Asked once in a while for those that somebody looks at, with the rights of each."""

    def __init__(self) -> None:
        self._known: dict[tuple[Credentials | None, str], tuple[float, str | None]] = {}

    async def target(self, admin: Admin, topic: str) -> str | None:
        """Where the topic's records are delivered; None for no intake, and for users who may not see its settings."""
        actor, now = current_actor(), time.monotonic()
        key = actor.credentials if actor else None, topic
        until, target = self._known.get(key, (0.0, None))
        if now >= until:
            target = await _target(admin, ConfigResource.topic(topic))
            self._known = {each: known for each, known in self._known.items() if known[0] > now}
            self._known[key] = (time.monotonic() + KNOWN_SECONDS, target)
        return target


async def _target(admin: Admin, resource: ConfigResource) -> str | None:
    try:
        entry = (await admin.describe_configs([resource], names=[TARGET_SETTING]))[resource].get(TARGET_SETTING)
    except KafkaError as error:
        if error.code is not ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            raise
        return None
    return entry.value if entry and entry.value else None
