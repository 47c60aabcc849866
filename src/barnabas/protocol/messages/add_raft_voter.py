"""AddRaftVoter (key 80), v0: a voter for the metadata quorum (KIP-853)."""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import INT16, INT32, STRING, TEXT, UINT16, UUID, array, field, message, struct


@struct
class Listener:
    name: str = field(STRING)
    host: str = field(STRING)
    port: int = field(UINT16)


@message(api_key=ApiKey.ADD_RAFT_VOTER, versions=(0, 0), flexible=0)
class AddRaftVoterRequest:
    cluster_id: str | None = field(STRING, nullable=0)
    timeout_ms: int = field(INT32)
    voter_id: int = field(INT32)
    voter_directory_id: bytes = field(UUID)
    listeners: list[Listener] = field(array(Listener))


@message(api_key=ApiKey.ADD_RAFT_VOTER, versions=(0, 0), flexible=0)
class AddRaftVoterResponse:
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(TEXT, nullable=0)
