"""Returns leadership to preferred replicas from time to time, while this broker is controller.

`auto.leader.rebalance.enable`, `leader.imbalance.check.interval.seconds`. One timer; what is moved is decided by
`machines/controller/leader_balance`.
"""

import asyncio
import logging
from collections.abc import Callable

from barnabas.config.broker import BrokerConfig
from barnabas.errors import KafkaError
from barnabas.server.cluster_membership import ClusterMembership
from barnabas.server.controller_client import ControllerClient

logger = logging.getLogger(__name__)


class LeaderBalancing:
    def __init__(
        self, config: Callable[[], BrokerConfig], cluster: ClusterMembership, controller: ControllerClient
    ) -> None:
        self._config = config
        self._cluster = cluster
        self._controller = controller
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run(), name="leader balancing")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._config().leader_imbalance_check_interval_seconds)
            if not self._config().auto_leader_rebalance_enable or not self._cluster.is_controller:
                continue
            try:
                moved = await self._controller.balance_leaders()
            except KafkaError as error:
                logger.info("leaders were not balanced: %s", error)
                continue
            if moved:
                logger.info("%d leader(s) moved to their preferred replicas", moved)
