"""Headers and whole frames; kio's header classes are the judge of the bytes."""

import struct
from dataclasses import dataclass
from importlib import import_module

import pytest
from kio_twin import kio_bytes

from barnabas.protocol import (
    decode,
    decode_request_header,
    decode_response_header,
    encode,
    encode_request,
    encode_response,
    encode_response_parts,
)
from barnabas.protocol.message_types import declared_apis, request_type, response_type
from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.protocol.messages.offset_commit_record import OffsetCommitKey
from barnabas.protocol.schema import Records


def _kio_header(kind: str, version: int) -> type:
    name = "RequestHeader" if kind == "request" else "ResponseHeader"
    found: type = getattr(import_module(f"kio.schema.{kind}_header.v{version}.header"), name)
    return found


@pytest.mark.parametrize("client_id", ["client-ä", "", None])
@pytest.mark.parametrize(("version", "header_version"), [(3, 1), (4, 2)])
def test_request_frames(version: int, header_version: int, client_id: str | None) -> None:
    frame = encode_request(HeartbeatRequest(group_id="g"), version, 77, client_id)
    header = _kio_header("request", header_version)(
        request_api_key=12, request_api_version=version, correlation_id=77, client_id=client_id
    )
    body = encode(HeartbeatRequest(group_id="g"), version)
    assert frame[4:] == kio_bytes(header) + body
    assert struct.unpack_from(">i", frame) == (len(frame) - 4,)
    decoded = decode_request_header(memoryview(frame)[4:])
    assert decoded == (12, version, 77, client_id, len(frame) - 4 - len(body))


@pytest.mark.parametrize(("version", "header_version"), [(3, 0), (4, 1)])
def test_response_frames(version: int, header_version: int) -> None:
    frame = encode_response(HeartbeatResponse(error_code=27), version, 78)
    header = kio_bytes(_kio_header("response", header_version)(correlation_id=78))
    assert frame[4:] == header + encode(HeartbeatResponse(error_code=27), version)
    assert struct.unpack_from(">i", frame) == (len(frame) - 4,)
    assert decode_response_header(HeartbeatResponse, version, frame[4:]) == (78, len(header))


def test_api_versions_always_responds_with_the_short_header() -> None:
    frame = encode_response(ApiVersionsResponse(), 3, 5)
    assert frame[4:] == struct.pack(">i", 5) + encode(ApiVersionsResponse(), 3)
    assert decode_response_header(ApiVersionsResponse, 3, frame[4:]) == (5, 4)
    assert decode_request_header(encode_request(ApiVersionsRequest(), 3, 5, "c")[4:]).body_position == 12


def test_unknown_keys_and_versions_pass_through() -> None:
    assert decode_request_header(struct.pack(">hhih", 999, 7, 1, -1)) == (999, 7, 1, None, 10)
    assert decode_request_header(struct.pack(">hhih", -3, -1, 1, -1)) == (-3, -1, 1, None, 10)
    assert decode_request_header(struct.pack(">hhih", 18, 99, 1, -1) + b"\x00rest") == (18, 99, 1, None, 11)


def test_the_first_flexible_version_is_that_of_the_messages() -> None:
    for key in declared_apis():
        for cls in (request_type(key), response_type(key)):
            assert cls.__schema__.flexible == key.first_flexible_version, cls
            assert cls.__schema__.api_key == key
            assert cls.__name__.startswith("".join(part.capitalize() for part in key.name.split("_")))


DECLARED = """
    PRODUCE FETCH LIST_OFFSETS METADATA CONTROLLED_SHUTDOWN OFFSET_COMMIT OFFSET_FETCH FIND_COORDINATOR JOIN_GROUP
    HEARTBEAT LEAVE_GROUP SYNC_GROUP DESCRIBE_GROUPS LIST_GROUPS SASL_HANDSHAKE API_VERSIONS CREATE_TOPICS DELETE_TOPICS
    DELETE_RECORDS
    INIT_PRODUCER_ID OFFSET_FOR_LEADER_EPOCH ADD_PARTITIONS_TO_TXN ADD_OFFSETS_TO_TXN END_TXN WRITE_TXN_MARKERS
    TXN_OFFSET_COMMIT DESCRIBE_ACLS CREATE_ACLS DELETE_ACLS DESCRIBE_CONFIGS ALTER_CONFIGS ALTER_REPLICA_LOG_DIRS
    DESCRIBE_LOG_DIRS SASL_AUTHENTICATE CREATE_PARTITIONS CREATE_DELEGATION_TOKEN RENEW_DELEGATION_TOKEN
    EXPIRE_DELEGATION_TOKEN DESCRIBE_DELEGATION_TOKEN DELETE_GROUPS ELECT_LEADERS INCREMENTAL_ALTER_CONFIGS
    ALTER_PARTITION_REASSIGNMENTS LIST_PARTITION_REASSIGNMENTS OFFSET_DELETE DESCRIBE_CLIENT_QUOTAS
    ALTER_CLIENT_QUOTAS DESCRIBE_USER_SCRAM_CREDENTIALS ALTER_USER_SCRAM_CREDENTIALS DESCRIBE_QUORUM ALTER_PARTITION
    UPDATE_FEATURES ENVELOPE DESCRIBE_CLUSTER DESCRIBE_PRODUCERS UNREGISTER_BROKER DESCRIBE_TRANSACTIONS
    LIST_TRANSACTIONS ALLOCATE_PRODUCER_IDS
    CONSUMER_GROUP_HEARTBEAT CONSUMER_GROUP_DESCRIBE GET_TELEMETRY_SUBSCRIPTIONS PUSH_TELEMETRY LIST_CONFIG_RESOURCES
    DESCRIBE_TOPIC_PARTITIONS
    SHARE_GROUP_HEARTBEAT SHARE_GROUP_DESCRIBE SHARE_FETCH SHARE_ACKNOWLEDGE ADD_RAFT_VOTER REMOVE_RAFT_VOTER
    DESCRIBE_SHARE_GROUP_OFFSETS ALTER_SHARE_GROUP_OFFSETS DELETE_SHARE_GROUP_OFFSETS
"""


def test_the_declared_apis() -> None:
    assert [key.name for key in declared_apis()] == DECLARED.split()


def test_a_coordinator_record_is_not_a_request() -> None:
    with pytest.raises(ValueError, match="not a request"):
        encode_request(OffsetCommitKey(), 0, 1, None)


def _fetched(*records: Records) -> FetchResponse:
    partitions = [PartitionData(partition_index=index, records=part) for index, part in enumerate(records)]
    return FetchResponse(responses=[FetchableTopicResponse(partitions=partitions)])


@dataclass(frozen=True)
class Region:
    length: int


def test_regions_of_files_stay_out_of_the_encoded_parts() -> None:
    regions = [Region(5), Region(300)]
    partitions = [
        PartitionData(partition_index=0, records=regions[0]),
        PartitionData(partition_index=1, records=b"abc"),
    ]
    partitions.append(PartitionData(partition_index=2, records=regions[1]))
    response = FetchResponse(responses=[FetchableTopicResponse(partitions=partitions)])
    for version in (4, 12):
        parts = encode_response_parts(response, version, 9)
        assert [part for part in parts if isinstance(part, Region)] == regions
        frame = b"".join(bytes(part) if isinstance(part, memoryview) else b"x" * part.length for part in parts)
        assert frame == encode_response(_fetched(b"x" * 5, b"abc", b"x" * 300), version, 9)
        assert decode(FetchResponse, version, frame, 4 + (4 if version < 12 else 5))[1] == len(frame)
    with pytest.raises(ValueError, match="parts"):
        encode_response(response, 4, 9)
