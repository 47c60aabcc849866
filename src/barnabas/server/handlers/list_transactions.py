"""ListTransactions (key 66), v0-v2: transactions that this broker coordinates (KIP-664).

While any of its shards loads, the response is COORDINATOR_LOAD_IN_PROGRESS, as in Kafka. v1 filter by duration
(KIP-994); v2 filter by a pattern of the transactional id (KIP-1152), in the syntax of RE2.
"""

import string
from functools import partial

from barnabas.errors import ErrorCode
from barnabas.machines.group.consumer.regex import RegexError, compile_regex
from barnabas.machines.txn.commands import ListTransactions
from barnabas.net.deferred import Deferred, then, when_all
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from barnabas.server.dispatch import Handler
from barnabas.server.request import Operation, RequestContext, Resource

Listed = ListTransactionsResponse | ErrorCode


class IdPattern:
    """Matches transactional ids, which may hold any character: the expression is compiled for those that occur."""

    __slots__ = ("_alphabet", "_compiled", "_regex", "is_invalid")

    def __init__(self, regex: str) -> None:
        self._regex = regex
        self._alphabet = frozenset(string.printable)
        self.is_invalid = False
        self._compile()

    def __call__(self, transactional_id: str) -> bool:
        if not self._alphabet.issuperset(transactional_id):
            self._alphabet |= set(transactional_id)
            self._compile()
        try:
            return not self.is_invalid and self._compiled.matches(transactional_id)
        except RegexError:
            self.is_invalid = True
            return False

    def _compile(self) -> None:
        try:
            self._compiled = compile_regex(self._regex, self._alphabet)
        except RegexError:
            self.is_invalid = True


def handle_list_transactions(
    context: RequestContext, request: ListTransactionsRequest
) -> ListTransactionsResponse | Deferred[ListTransactionsResponse]:
    pattern = None
    if request.transactional_id_pattern:
        pattern = IdPattern(request.transactional_id_pattern)
        if pattern.is_invalid:
            return fail_list_transactions(context, request, ErrorCode.INVALID_REGULAR_EXPRESSION)
    command = ListTransactions(request, pattern)
    lists = context.in_slices(context.broker.transactions.runtime.submit_to_all(command, _error))
    merged = then(lists, lambda lists: when_all(lists, partial(_merge, pattern)))
    return merged if context.broker.authorizer is None else then(merged, partial(_visible, context))


def _visible(context: RequestContext, response: ListTransactionsResponse) -> ListTransactionsResponse:
    response.transaction_states = [
        each
        for each in response.transaction_states
        if context.may(Operation.DESCRIBE, Resource.transactional_id(each.transactional_id), log_denied=False)
    ]
    return response


def _error(error: ErrorCode) -> Listed:
    return error


def _merge(pattern: IdPattern | None, listings: list[Listed]) -> ListTransactionsResponse:
    if pattern is not None and pattern.is_invalid:
        listings = [ErrorCode.INVALID_REGULAR_EXPRESSION]  # it took too long
    response = ListTransactionsResponse(error_code=ErrorCode.NONE, unknown_state_filters=[], transaction_states=[])
    for listing in listings:
        if not isinstance(listing, ErrorCode):
            response.unknown_state_filters = listing.unknown_state_filters
            response.transaction_states += listing.transaction_states
        elif listing is not ErrorCode.NOT_COORDINATOR:  # that shard has just moved away: another broker lists it
            return ListTransactionsResponse(error_code=listing, unknown_state_filters=[], transaction_states=[])
    return response


def fail_list_transactions(
    context: RequestContext, request: ListTransactionsRequest, error: ErrorCode
) -> ListTransactionsResponse:
    return ListTransactionsResponse(error_code=error, unknown_state_filters=[], transaction_states=[])


HANDLER = Handler(
    api_key=ApiKey.LIST_TRANSACTIONS,
    min_version=0,
    max_version=2,
    request=ListTransactionsRequest,
    handle=handle_list_transactions,
    fail=fail_list_transactions,
    checks_access=True,
)
