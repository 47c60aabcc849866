"""AddOffsetsToTxn (key 25), v0-v4: a group whose offsets a transaction is about to commit.

Adds the group's partition of `__consumer_offsets` to the transaction. v2 PRODUCER_FENCED; v4 TRANSACTION_ABORTABLE.
"""

from functools import partial

from barnabas.errors import ErrorCode
from barnabas.machines.txn.commands import AddOffsetsToTxn
from barnabas.net.deferred import Deferred
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from barnabas.server.auto_topic_creation import GROUP_METADATA_TOPIC
from barnabas.server.dispatch import Handler
from barnabas.server.request import Operation, RequestContext, Resource
from barnabas.types import TopicPartition


def handle_add_offsets_to_txn(
    context: RequestContext, request: AddOffsetsToTxnRequest
) -> AddOffsetsToTxnResponse | Deferred[AddOffsetsToTxnResponse]:
    if not context.may(Operation.WRITE, Resource.transactional_id(request.transactional_id)):
        return fail_add_offsets_to_txn(context, request, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not context.may(Operation.READ, Resource.group(request.group_id)):
        return fail_add_offsets_to_txn(context, request, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    broker = context.broker
    partition = TopicPartition(GROUP_METADATA_TOPIC, broker.groups.partition_for(request.group_id))
    return broker.transactions.submit(
        request.transactional_id,
        AddOffsetsToTxn(request, context.version, partition),
        partial(fail_add_offsets_to_txn, context, request),
    )


def fail_add_offsets_to_txn(
    context: RequestContext, request: AddOffsetsToTxnRequest, error: ErrorCode
) -> AddOffsetsToTxnResponse:
    return AddOffsetsToTxnResponse(error_code=error)


HANDLER = Handler(
    api_key=ApiKey.ADD_OFFSETS_TO_TXN,
    min_version=0,
    max_version=4,
    request=AddOffsetsToTxnRequest,
    handle=handle_add_offsets_to_txn,
    fail=fail_add_offsets_to_txn,
    checks_access=True,
)
