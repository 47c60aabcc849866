"""RemoveRaftVoter (key 81), v0: a voter leaves the metadata quorum (KIP-853)."""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import INT16, INT32, STRING, TEXT, UUID, field, message


@message(api_key=ApiKey.REMOVE_RAFT_VOTER, versions=(0, 0), flexible=0)
class RemoveRaftVoterRequest:
    cluster_id: str | None = field(STRING, nullable=0)
    voter_id: int = field(INT32)
    voter_directory_id: bytes = field(UUID)


@message(api_key=ApiKey.REMOVE_RAFT_VOTER, versions=(0, 0), flexible=0)
class RemoveRaftVoterResponse:
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(TEXT, nullable=0)
