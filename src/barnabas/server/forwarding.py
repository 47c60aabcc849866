"""Requests that only the controller can carry out, passed on to it by whichever broker received them (KIP-590).

Dispatch calls `forward` for rows with `forwards`. The request travels as it came, in an Envelope with the client's
principal and address; the controller's response has the client's correlation id already and goes back as it is. As in
Kafka, a request whose response was lost may be carried out twice, and reports TOPIC_ALREADY_EXISTS then.
"""

import logging
import struct
from collections.abc import Sequence
from typing import Any

from barnabas.errors import ErrorCode, KafkaError
from barnabas.metadata.image import NO_CONTROLLER, ClusterImage
from barnabas.protocol.api import ApiKey
from barnabas.protocol.compiler import decode
from barnabas.protocol.headers import decode_response_header, encode_request
from barnabas.protocol.message_types import response_type
from barnabas.protocol.messages.envelope import EnvelopeResponse
from barnabas.server.broker_links import LinkUse
from barnabas.server.controller_channel import ControllerChannel
from barnabas.server.envelope import seal
from barnabas.server.request import RequestContext

logger = logging.getLogger(__name__)

SHORTEST_TIMEOUT_MS = 1000
"""A request that allows less is still tried once."""
LONGEST_TIMEOUT_MS = 60_000
LARGEST_BYTES = 64 * 1024 * 1024
"""A larger request is refused: it would not pass the controller's own limit."""
SIZE_PREFIX = 4
_SIZE = struct.Struct(">i")


def controller_for_clients(image: ClusterImage, listed: Sequence[int]) -> int:
    """Whom clients send requests for the controller to: any broker takes them, so somebody can always be named."""
    if image.controller_id in listed:
        return image.controller_id
    return listed[0] if listed else NO_CONTROLLER


class Forwarding:
    def __init__(self, channel: ControllerChannel) -> None:
        self._channel = channel

    async def forward(self, context: RequestContext, frame: bytes, timeout_ms: int) -> bytes | None:
        """The controller's response, a whole frame; None if this broker has become controller itself.

        Raises KafkaError: REQUEST_TIMED_OUT, or what the controller has against the envelope.
        """
        if len(frame) > LARGEST_BYTES:
            raise KafkaError(ErrorCode.POLICY_VIOLATION, "the request is too large to be passed on to the controller")
        timeout_ms = min(max(timeout_ms, SHORTEST_TIMEOUT_MS), LONGEST_TIMEOUT_MS)
        response: EnvelopeResponse | None = await self._channel.request(
            seal(context, frame), LinkUse.FORWARDING, timeout_ms
        )
        if response is None:
            return None
        if response.error_code != ErrorCode.NONE or response.response_data is None:
            # A fault between the two brokers, of which the client must not think that it is its own.
            logger.error("the controller refused an envelope: error %d", response.error_code)
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the controller refused to take the request")
        return _SIZE.pack(len(response.response_data)) + response.response_data

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
