"""ListTransactions (key 66), v0-v1: transactions that this broker coordinates (KIP-664).

While any of its shards loads, the answer is COORDINATOR_LOAD_IN_PROGRESS, as in Kafka. v1 filter by duration
(KIP-994).
"""

from typing import Any

from barnabas.errors import ErrorCode
from barnabas.machines.txn.commands import ListTransactions
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from barnabas.server.answers import when_all
from barnabas.server.dispatch import Handler, RequestContext


def handle_list_transactions(context: RequestContext, request: ListTransactionsRequest) -> Any:
    command = ListTransactions(request)
    return when_all((shard.submit(command, _error) for shard in context.broker.transactions.shards()), _merge)


def _error(error: ErrorCode) -> ErrorCode:
    return error


def _merge(answers: list[Any]) -> ListTransactionsResponse:
    response = ListTransactionsResponse(error_code=ErrorCode.NONE, unknown_state_filters=[], transaction_states=[])
    for answer in answers:
        if not isinstance(answer, ErrorCode):
            response.unknown_state_filters = answer.unknown_state_filters
            response.transaction_states += answer.transaction_states
        elif answer is not ErrorCode.NOT_COORDINATOR:  # that shard has just moved away: another broker lists it
            return ListTransactionsResponse(error_code=answer, unknown_state_filters=[], transaction_states=[])
    return response


def fail_list_transactions(
    context: RequestContext, request: ListTransactionsRequest, error: ErrorCode
) -> ListTransactionsResponse:
    return ListTransactionsResponse(error_code=error, unknown_state_filters=[], transaction_states=[])


HANDLER = Handler(
    api_key=ApiKey.LIST_TRANSACTIONS,
    min_version=0,
    max_version=1,
    request=ListTransactionsRequest,
    handle=handle_list_transactions,
    fail=fail_list_transactions,
)
