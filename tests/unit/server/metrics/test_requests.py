from barnabas.errors import ErrorCode
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.heartbeat import HeartbeatResponse
from barnabas.protocol.messages.metadata import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic
from barnabas.server.metrics.requests import CODES_COUNTED, RequestMeter, error_codes, error_name, name_of


def test_names_are_kafkas() -> None:
    assert name_of(ApiKey.LIST_OFFSETS) == "ListOffsets"
    assert error_name(3) == "UNKNOWN_TOPIC_OR_PARTITION"
    assert error_name(9999) == "9999"


def test_codes_are_found_at_the_top_and_in_parts() -> None:
    assert error_codes(HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)) == [27]
    topics = [
        MetadataResponseTopic(error_code=3, partitions=[]),
        MetadataResponseTopic(error_code=0, partitions=[MetadataResponsePartition(error_code=5)]),
    ]
    assert [code for code in error_codes(MetadataResponse(topics=topics)) if code] == [3, 5]


def test_a_very_large_response_is_not_looked_at_as_a_whole() -> None:
    topics = [MetadataResponseTopic(error_code=3, partitions=[]) for _ in range(CODES_COUNTED + 50)]
    assert len(error_codes(MetadataResponse(topics=topics))) == CODES_COUNTED


def test_a_request_with_several_errors_failed_once() -> None:
    meter = RequestMeter("Metadata")
    meter.on_errors([0, 3, 3, 5])
    meter.on_errors([0])
    assert (meter.failed, meter.errors) == (1, {3: 2, 5: 1})
