"""Removes delegation tokens that have expired, while this broker is controller.

`delegation.token.expiry.check.interval.ms`. Nobody can log in with an expired token meanwhile: brokers look at its time
(`delegation_tokens.py`). While the metadata engine is away nothing is removed; the next round tries again.
"""

import asyncio
import logging
from collections.abc import Callable

from barnabas.clock import Clock
from barnabas.config.broker import BrokerConfig
from barnabas.errors import KafkaError
from barnabas.server.cluster_membership import ClusterMembership
from barnabas.server.controller_client import ControllerClient

logger = logging.getLogger(__name__)


class TokenExpiry:
    def __init__(
        self,
        config: Callable[[], BrokerConfig],
        cluster: ClusterMembership,
        controller: ControllerClient,
        clock: Clock,
    ) -> None:
        self._config = config
        self._cluster = cluster
        self._controller = controller
        self._clock = clock
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self._config().delegation_token_secret_key is not None:
            self._task = asyncio.get_running_loop().create_task(self._run(), name="expiry of delegation tokens")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._config().delegation_token_expiry_check_interval_ms / 1000)
            await self.remove_expired()

    async def remove_expired(self) -> None:
        now_ms = self._clock.now_ms()
        tokens = self._cluster.image.tokens.values()
        if not self._cluster.is_controller or not any(token.has_expired(now_ms) for token in tokens):
            return
        try:
            removed = await self._controller.remove_expired_tokens()
        except KafkaError as error:
            logger.info("expired delegation tokens were not removed: %s", error)
        else:
            logger.info("%d expired delegation token(s) removed", removed)
