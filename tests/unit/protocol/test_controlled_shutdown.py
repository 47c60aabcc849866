"""ControlledShutdown against bytes written by hand from Kafka 3's definition: kio no longer knows it."""

from barnabas.protocol import decode, encode
from barnabas.protocol.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    RemainingPartition,
)


def test_the_request() -> None:
    message = ControlledShutdownRequest(broker_id=3, broker_epoch=258)
    wire = bytes.fromhex("00000003000000000000010200")
    assert encode(message, 3) == wire
    assert decode(ControlledShutdownRequest, 3, wire) == (message, len(wire))


def test_the_response() -> None:
    message = ControlledShutdownResponse(
        error_code=11, remaining_partitions=[RemainingPartition(topic_name="ab", partition_index=7)]
    )
    wire = bytes.fromhex("000b02036162000000070000")
    assert encode(message, 3) == wire
    assert decode(ControlledShutdownResponse, 3, wire) == (message, len(wire))
