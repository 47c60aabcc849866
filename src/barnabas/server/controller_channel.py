"""Messages to whichever broker is controller, again and again until it has responded or the time is up.

For requests that a broker makes itself (`controller_client.py`) and those that it passes on (`forwarding.py`). Where
the controller has moved, cannot be reached or is not elected yet, a message is sent again: it may be carried out twice.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from barnabas.clock import Clock
from barnabas.errors import ErrorCode, KafkaError
from barnabas.metadata.image import NO_CONTROLLER, ClusterImage, Delta
from barnabas.net.link import LinkError
from barnabas.server.broker_links import BrokerLinks, LinkUse
from barnabas.types import NodeId

logger = logging.getLogger(__name__)

FIRST_PAUSE_MS = 20
LONGEST_PAUSE_MS = 500


class ControllerChannel:
    def __init__(self, node_id: NodeId, links: BrokerLinks, image: Callable[[], ClusterImage], clock: Clock) -> None:
        self._node_id = node_id
        self._links = links
        self._image = image
        self._clock = clock
        self._waiting: list[asyncio.Future[None]] = []
        self._stopped = False

    def on_delta(self, delta: Delta) -> None:
        """A new controller, or one that came back: whoever waits tries again."""
        if delta.controller_changed or delta.brokers_changed:
            self._wake()

    def stop(self) -> None:
        """Whoever waits gets NOT_CONTROLLER; clients ask another broker then."""
        self._stopped = True
        self._wake()

    async def request(self, message: Any, use: LinkUse, timeout_ms: int) -> Any | None:
        """The response, whose error code is not NOT_CONTROLLER; None if this broker is controller itself.

        Raises KafkaError: REQUEST_TIMED_OUT, NOT_CONTROLLER where this broker stops.
        """
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        pause_ms = FIRST_PAUSE_MS
        while True:
            controller_id = self._image().controller_id
            if controller_id == self._node_id:
                return None
            if self._stopped:
                raise KafkaError(ErrorCode.NOT_CONTROLLER, "The broker is shutting down.")
            left_ms = deadline_ms - self._clock.monotonic_ms()
            if left_ms <= 0:
                raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, "the controller could not be reached in time")
            if controller_id != NO_CONTROLLER:
                try:
                    response = await self._links.to(controller_id, use).request(message, timeout_ms=left_ms)
                except LinkError as error:
                    # What is denied has been reported once, by the link, and may go on for long.
                    level = logging.DEBUG if error.denied else logging.INFO
                    logger.log(level, "the controller could not be reached: %s", error)
                else:
                    # CreateTopics has no code of its own: who is no longer controller passes it on.
                    if getattr(response, "error_code", ErrorCode.NONE) != ErrorCode.NOT_CONTROLLER:
                        return response
            await self._pause(min(pause_ms, left_ms))
            pause_ms = min(2 * pause_ms, LONGEST_PAUSE_MS)

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    async def _pause(self, pause_ms: int) -> None:
        """Until the pause is over, or something is known about controllers that was not."""
        changed = asyncio.get_running_loop().create_future()
        self._waiting.append(changed)
        try:
            await asyncio.wait_for(changed, pause_ms / 1000)
        except TimeoutError:
            if changed in self._waiting:
                self._waiting.remove(changed)
