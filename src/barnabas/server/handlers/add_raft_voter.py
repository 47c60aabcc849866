"""AddRaftVoter (key 80), v0: a voter joins the metadata quorum (KIP-853).

There is no Raft quorum: the controller is elected through the metadata store, and every broker may become it. So it is
UNSUPPORTED_VERSION, as from Kafka with the feature kraft.version at 0.
"""

from barnabas.errors import ErrorCode
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from barnabas.server.dispatch import Handler
from barnabas.server.request import RequestContext

NO_QUORUM = "The controller is elected through the metadata store: there is no quorum to add a voter to."


def handle_add_raft_voter(context: RequestContext, request: AddRaftVoterRequest) -> AddRaftVoterResponse:
    return _refuse(request, ErrorCode.UNSUPPORTED_VERSION, NO_QUORUM)


def fail_add_raft_voter(
    context: RequestContext, request: AddRaftVoterRequest, error: ErrorCode
) -> AddRaftVoterResponse:
    return _refuse(request, error, error.text)


def _refuse(request: AddRaftVoterRequest, error: ErrorCode, message: str) -> AddRaftVoterResponse:
    return AddRaftVoterResponse(error_code=error, error_message=message)


HANDLER = Handler(
    api_key=ApiKey.ADD_RAFT_VOTER,
    min_version=0,
    max_version=0,
    request=AddRaftVoterRequest,
    handle=handle_add_raft_voter,
    fail=fail_add_raft_voter,
)
