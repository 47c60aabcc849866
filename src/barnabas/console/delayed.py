"""Which topics are intakes of delayed messages; what waits in them is read by the client package."""

import time

from barnabas.client.admin.aio import Admin
from barnabas.client.admin.types import ConfigResource
from barnabas.client.pending_deliveries import TARGET_SETTING

KNOWN_SECONDS = 30.0


class Intakes:
    """Asked once in a while for those that somebody looks at."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[float, str | None]] = {}

    async def target(self, admin: Admin, topic: str) -> str | None:
        """Where the topic's records are delivered; None for a topic that is no intake."""
        until, target = self._known.get(topic, (0.0, None))
        if time.monotonic() >= until:
            resource = ConfigResource.topic(topic)
            entry = (await admin.describe_configs([resource], names=[TARGET_SETTING]))[resource].get(TARGET_SETTING)
            target = entry.value if entry and entry.value else None
            self._known[topic] = (time.monotonic() + KNOWN_SECONDS, target)
        return target
