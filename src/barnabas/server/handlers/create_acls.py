"""CreateAcls (key 30), v1-v3: new access rules, written by the controller.

Without an authorizer SECURITY_DISABLED, as in Kafka. A rule that is there already is no error. Differs from Kafka 4.1:
a host may be a network (KIP-1276), and the rules of one resource have a size limit.
"""

from barnabas.errors import ErrorCode, KafkaError
from barnabas.net.deferred import Deferred
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse
from barnabas.server.acl_messages import NO_AUTHORIZER, acl_of
from barnabas.server.dispatch import Handler
from barnabas.server.request import CLUSTER, Operation, RequestContext


def handle_create_acls(
    context: RequestContext, request: CreateAclsRequest
) -> CreateAclsResponse | Deferred[CreateAclsResponse]:
    if not context.may(Operation.ALTER, CLUSTER):
        return fail_create_acls(context, request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if context.broker.authorizer is None:
        return _refuse(request, ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)
    acls = [acl_of(creation) for creation in request.creations]

    async def create() -> CreateAclsResponse:
        try:
            results = await context.broker.controller.create_acls(acls)
        except KafkaError as error:
            return _refuse(request, error.code, error.message)
        return CreateAclsResponse(
            results=[AclCreationResult(error_code=each.error, error_message=each.message) for each in results]
        )

    return context.run(create())


def _refuse(request: CreateAclsRequest, error: ErrorCode, message: str | None) -> CreateAclsResponse:
    results = [AclCreationResult(error_code=error, error_message=message) for _ in request.creations]
    return CreateAclsResponse(results=results)


def fail_create_acls(context: RequestContext, request: CreateAclsRequest, error: ErrorCode) -> CreateAclsResponse:
    return _refuse(request, error, error.text)


HANDLER = Handler(
    api_key=ApiKey.CREATE_ACLS,
    min_version=1,
    max_version=3,
    request=CreateAclsRequest,
    handle=handle_create_acls,
    fail=fail_create_acls,
    forwards=True,
    checks_access=True,
)
