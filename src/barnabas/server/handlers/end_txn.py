"""EndTxn (key 26), v0-v5: commit or abort a transaction.

Responds once the outcome is in the log; the markers follow. v2 PRODUCER_FENCED; v4 TRANSACTION_ABORTABLE; v5 the epoch
goes up with every transaction, so the response carries producer id and epoch (KIP-890).
"""

from functools import partial

from barnabas.errors import ErrorCode
from barnabas.machines.txn.commands import EndTxn
from barnabas.net.deferred import Deferred
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from barnabas.server.dispatch import Handler
from barnabas.server.request import Operation, RequestContext, Resource


def handle_end_txn(context: RequestContext, request: EndTxnRequest) -> EndTxnResponse | Deferred[EndTxnResponse]:
    if not context.may(Operation.WRITE, Resource.transactional_id(request.transactional_id)):
        return fail_end_txn(context, request, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    return context.broker.transactions.submit(
        request.transactional_id, EndTxn(request, context.version), partial(fail_end_txn, context, request)
    )


def fail_end_txn(context: RequestContext, request: EndTxnRequest, error: ErrorCode) -> EndTxnResponse:
    return EndTxnResponse(error_code=error)


HANDLER = Handler(
    api_key=ApiKey.END_TXN,
    min_version=0,
    max_version=5,
    request=EndTxnRequest,
    handle=handle_end_txn,
    fail=fail_end_txn,
    checks_access=True,
)
