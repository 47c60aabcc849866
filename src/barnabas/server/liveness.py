"""Notices that another broker's process is gone, long before its session with the metadata store ends.

The controller keeps a connection to every broker, and every broker one to the controller. When one breaks and the
address then refuses connections, the process is dead: its registration is removed, and the usual way elects leaders or
a controller. Broker and leader epochs keep that safe even if it was wrong: a broker that lives registers again. An
address that never took a connection is not judged by a refusal, since it may just be wrong. Idle connections cost
nothing: nothing is sent on them.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial

from barnabas.metadata.image import ClusterImage, Delta
from barnabas.net.deferred import Deferred
from barnabas.net.link import Link, LinkError
from barnabas.server.broker_links import BrokerLinks, LinkUse
from barnabas.types import NodeId

logger = logging.getLogger(__name__)

RemoveBroker = Callable[[NodeId, int], Awaitable[None]]


class Liveness:
    """`on_delta` must be called after that of the links, which closes those to brokers that are gone."""

    def __init__(self, node_id: NodeId, links: BrokerLinks, remove_broker: RemoveBroker) -> None:
        self._node_id = node_id
        self._links = links
        self._remove_broker = remove_broker
        self._watched: dict[int, _Watched] = {}
        self._removals: set[asyncio.Task[None]] = set()
        self._stopped = False

    def on_delta(self, delta: Delta) -> None:
        if self._stopped or not (delta.brokers_changed or delta.controller_changed):
            return
        wanted = self._wanted(delta.image)
        for node_id, watched in list(self._watched.items()):
            if wanted.get(node_id) != watched.epoch:
                self._watched.pop(node_id).end()
        for node_id, epoch in wanted.items():
            if node_id not in self._watched:
                link = self._links.to(node_id, LinkUse.LIVENESS)
                self._watched[node_id] = _Watched(link, epoch, partial(self._on_gone, node_id))

    async def stop(self) -> None:
        self._stopped = True
        for watched in self._watched.values():
            watched.end()
        self._watched.clear()
        for removal in self._removals:
            removal.cancel()
        await asyncio.gather(*self._removals, return_exceptions=True)

    def _wanted(self, image: ClusterImage) -> dict[int, int]:
        if image.controller_id == self._node_id:
            return {each: broker.epoch for each, broker in image.brokers.items() if each != self._node_id}
        controller = image.brokers.get(image.controller_id)
        return {} if controller is None else {controller.node_id: controller.epoch}

    def _on_gone(self, node_id: int) -> None:
        epoch = self._watched.pop(node_id).epoch
        logger.warning("the process of broker %d is gone: its address refuses connections", node_id)
        removal = asyncio.get_running_loop().create_task(self._remove(node_id, epoch))
        self._removals.add(removal)
        removal.add_done_callback(self._removals.discard)

    async def _remove(self, node_id: int, epoch: int) -> None:
        try:
            await self._remove_broker(NodeId(node_id), epoch)
        except Exception as error:
            # Its session with the store will end all the same.
            logger.warning("broker %d could not be removed: %s", node_id, error)


class _Watched:
    """One broker, in one epoch of it."""

    def __init__(self, link: Link, epoch: int, on_gone: Callable[[], None]) -> None:
        self.epoch = epoch
        self._link = link
        self._on_gone: Callable[[], None] | None = on_gone
        self._was_connected = False
        link.on_lost = self._on_lost
        self._connect()

    def end(self) -> None:
        self._on_gone = None
        self._link.on_lost = None

    def _connect(self) -> None:
        self._link.ping().when_done(self._on_pinged)

    def _on_pinged(self, response: Deferred[None]) -> None:
        """A failure is reported to `_on_lost`."""
        self._was_connected = self._was_connected or response.completed

    def _on_lost(self, error: LinkError) -> None:
        on_gone = self._on_gone
        if on_gone is None:
            return
        if error.refused and self._was_connected:
            self.end()
            on_gone()
        else:
            # After the link's own pause. Not from here: the link is in the middle of failing.
            asyncio.get_running_loop().call_soon(self._connect_again)

    def _connect_again(self) -> None:
        if self._on_gone is not None:
            self._connect()
