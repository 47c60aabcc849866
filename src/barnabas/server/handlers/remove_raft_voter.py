"""RemoveRaftVoter (key 81), v0: a voter leaves the metadata quorum (KIP-853).

There is no Raft quorum: the controller is elected through the metadata store, and every broker may become it. So it is
UNSUPPORTED_VERSION, as from Kafka with the feature kraft.version at 0.
"""

from barnabas.errors import ErrorCode
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from barnabas.server.dispatch import Handler
from barnabas.server.request import RequestContext

NO_QUORUM = "The controller is elected through the metadata store: there is no quorum to remove a voter from."


def handle_remove_raft_voter(context: RequestContext, request: RemoveRaftVoterRequest) -> RemoveRaftVoterResponse:
    return _refuse(request, ErrorCode.UNSUPPORTED_VERSION, NO_QUORUM)


def fail_remove_raft_voter(
    context: RequestContext, request: RemoveRaftVoterRequest, error: ErrorCode
) -> RemoveRaftVoterResponse:
    return _refuse(request, error, error.text)


def _refuse(request: RemoveRaftVoterRequest, error: ErrorCode, message: str) -> RemoveRaftVoterResponse:
    return RemoveRaftVoterResponse(error_code=error, error_message=message)


HANDLER = Handler(
    api_key=ApiKey.REMOVE_RAFT_VOTER,
    min_version=0,
    max_version=0,
    request=RemoveRaftVoterRequest,
    handle=handle_remove_raft_voter,
    fail=fail_remove_raft_voter,
)
