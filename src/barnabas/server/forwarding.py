"""Requests that only the controller can carry out, passed on to it by whichever broker received them (KIP-590).

Dispatch calls `forward` for rows with `forwards`. The request travels as it came, in an Envelope with the client's
principal and address; the controller's response has the client's correlation id already and goes back as it is. Where
the controller has moved, cannot be reached or is not elected yet, the request is sent again until its time is up: as in
Kafka, one whose response was lost may be carried out twice, and reports TOPIC_ALREADY_EXISTS then.
"""

import asyncio
import logging
import struct
from collections.abc import Callable
from typing import Any

from barnabas.clock import Clock
from barnabas.errors import ErrorCode, KafkaError
from barnabas.metadata.image import NO_CONTROLLER, ClusterImage, Delta
from barnabas.net.link import LinkError
from barnabas.protocol.api import ApiKey
from barnabas.protocol.compiler import decode
from barnabas.protocol.headers import decode_response_header, encode_request
from barnabas.protocol.message_types import response_type
from barnabas.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from barnabas.server.broker_links import BrokerLinks, LinkUse
from barnabas.server.envelope import seal
from barnabas.server.request import RequestContext
from barnabas.types import NodeId

logger = logging.getLogger(__name__)

FIRST_PAUSE_MS = 20
LONGEST_PAUSE_MS = 500
SHORTEST_TIMEOUT_MS = 1000
"""A request that allows less is still tried once."""
LONGEST_TIMEOUT_MS = 60_000
LARGEST_BYTES = 64 * 1024 * 1024
"""A larger request is refused: it would not pass the controller's own limit."""
SIZE_PREFIX = 4
_SIZE = struct.Struct(">i")


class Forwarding:
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
        """Clients ask another broker."""
        self._stopped = True
        self._wake()

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    async def forward(self, context: RequestContext, frame: bytes, timeout_ms: int) -> bytes | None:
        """The controller's response, a whole frame; None if this broker has become controller itself.

        Raises KafkaError: REQUEST_TIMED_OUT, or what the controller has against the envelope.
        """
        if len(frame) > LARGEST_BYTES:
            raise KafkaError(ErrorCode.POLICY_VIOLATION, "the request is too large to be passed on to the controller")
        envelope = seal(context, frame)
        deadline_ms = self._clock.monotonic_ms() + min(max(timeout_ms, SHORTEST_TIMEOUT_MS), LONGEST_TIMEOUT_MS)
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
                data = await self._try(controller_id, envelope, left_ms)
                if data is not None:
                    return _SIZE.pack(len(data)) + data
            await self._pause(min(pause_ms, left_ms))
            pause_ms = min(2 * pause_ms, LONGEST_PAUSE_MS)

    async def forward_message(self, context: RequestContext, message: Any, timeout_ms: int) -> Any:
        """The controller's response to a request that this broker has made out of the client's. Raises KafkaError."""
        header = context.header
        frame = encode_request(message, header.api_version, header.correlation_id, header.client_id)[SIZE_PREFIX:]
        response = await self.forward(context, frame, timeout_ms)
        if response is None:
            return None
        response_class = response_type(ApiKey(header.api_key))  # type: ignore[call-arg]
        body = memoryview(response)[SIZE_PREFIX:]
        _, position = decode_response_header(response_class, header.api_version, body)
        return decode(response_class, header.api_version, body, position)[0]

    async def _try(self, controller_id: int, envelope: EnvelopeRequest, timeout_ms: int) -> bytes | None:
        """None: worth another attempt."""
        try:
            link = self._links.to(controller_id, LinkUse.FORWARDING)
            response: EnvelopeResponse = await link.request(envelope, timeout_ms=timeout_ms)
        except LinkError as error:
            logger.info("a request could not be passed on to the controller: %s", error)
            return None
        if response.error_code == ErrorCode.NOT_CONTROLLER:
            return None
        if response.error_code != ErrorCode.NONE or response.response_data is None:
            # A fault between the two brokers, of which the client must not think that it is its own.
            logger.error("the controller refused an envelope: error %d", response.error_code)
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the controller refused to take the request")
        return response.response_data

    async def _pause(self, pause_ms: int) -> None:
        """Until the pause is over, or something is known about controllers that was not."""
        changed = asyncio.get_running_loop().create_future()
        self._waiting.append(changed)
        try:
            await asyncio.wait_for(changed, pause_ms / 1000)
        except TimeoutError:
            if changed in self._waiting:
                self._waiting.remove(changed)
