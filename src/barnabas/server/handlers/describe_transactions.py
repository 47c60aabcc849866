"""DescribeTransactions (key 65), v0: state of transactions by transactional id (KIP-664), each by its shard."""

from functools import partial

from barnabas.errors import ErrorCode
from barnabas.machines.txn.commands import DescribeTransactions
from barnabas.net.deferred import Deferred, when_all
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.describe_transactions import (
    DescribedTransaction,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from barnabas.server.dispatch import Handler
from barnabas.server.request import Operation, RequestContext, Resource


def handle_describe_transactions(
    context: RequestContext, request: DescribeTransactionsRequest
) -> DescribeTransactionsResponse | Deferred[DescribeTransactionsResponse]:
    def merge(lists: list[list[DescribedTransaction]]) -> DescribeTransactionsResponse:
        states = [state for some in lists for state in some]
        for state in states:
            state.topics = [each for each in state.topics if context.may_topic(Operation.DESCRIBE, each.topic)]
        return DescribeTransactionsResponse(transaction_states=states)

    return when_all((_describe(context, each) for each in dict.fromkeys(request.transactional_ids)), merge)


def _describe(
    context: RequestContext, transactional_id: str
) -> list[DescribedTransaction] | Deferred[list[DescribedTransaction]]:
    if not context.may(Operation.DESCRIBE, Resource.transactional_id(transactional_id)):
        return _failed(transactional_id, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    command = DescribeTransactions((transactional_id,))
    return context.broker.transactions.submit(transactional_id, command, partial(_failed, transactional_id))


def _failed(transactional_id: str, error: ErrorCode) -> list[DescribedTransaction]:
    return [
        DescribedTransaction(
            error_code=error,
            transactional_id=transactional_id,
            transaction_state="",
            transaction_timeout_ms=0,
            transaction_start_time_ms=0,
            producer_id=0,
            producer_epoch=0,
            topics=[],
        )
    ]


def fail_describe_transactions(
    context: RequestContext, request: DescribeTransactionsRequest, error: ErrorCode
) -> DescribeTransactionsResponse:
    states = [state for each in request.transactional_ids for state in _failed(each, error)]
    return DescribeTransactionsResponse(transaction_states=states)


HANDLER = Handler(
    api_key=ApiKey.DESCRIBE_TRANSACTIONS,
    min_version=0,
    max_version=0,
    request=DescribeTransactionsRequest,
    handle=handle_describe_transactions,
    fail=fail_describe_transactions,
    checks_access=True,
)
