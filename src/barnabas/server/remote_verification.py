"""Questions to transaction coordinators on other brokers: do these partitions belong to the transaction? (KIP-890)

One AddPartitionsToTxn request per broker is under way; what comes up meanwhile goes with the next one, all in one. A
transaction appears once in a request, since its results are found by its id.
"""

import logging
from collections import deque
from typing import NamedTuple

from barnabas.errors import ErrorCode
from barnabas.machines.txn.commands import AddPartitionsToTxn
from barnabas.net.deferred import Deferred
from barnabas.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from barnabas.server.broker_links import BrokerLinks, LinkUse

logger = logging.getLogger(__name__)

BROKER_VERSION = 5
"""The version of AddPartitionsToTxn that brokers speak among themselves."""
MOST_TRANSACTIONS = 1000
TIMEOUT_MS = 10_000
CODES = {int(error): error for error in ErrorCode}

Result = AddPartitionsToTxnResult | ErrorCode


class Question(NamedTuple):
    command: AddPartitionsToTxn
    answer: Deferred[Result]


class RemoteVerification:
    def __init__(self, links: BrokerLinks) -> None:
        self._links = links
        self._waiting: dict[int, deque[Question]] = {}
        """By broker; there is an entry while a request to it is under way."""

    def ask(self, node_id: int, command: AddPartitionsToTxn) -> Deferred[Result]:
        """The coordinator's result, or the error that keeps it from giving one."""
        question = Question(command, Deferred())
        waiting = self._waiting.get(node_id)
        if waiting is None:
            self._waiting[node_id] = deque((question,))
            self._send(node_id)
        else:
            waiting.append(question)
        return question.answer

    def _send(self, node_id: int) -> None:
        questions = self._take(self._waiting[node_id])
        request = AddPartitionsToTxnRequest(transactions=[_transaction(each.command) for each in questions.values()])

        def on_done(response: Deferred[AddPartitionsToTxnResponse]) -> None:
            if response.failed:
                logger.info("broker %d could not be asked about transactions: %s", node_id, response.error)
                results: dict[str, Result] = dict.fromkeys(questions, ErrorCode.NETWORK_EXCEPTION)
            else:
                results = _results(response.value, list(questions))
            if self._waiting[node_id]:
                self._send(node_id)
            else:
                del self._waiting[node_id]
            for transactional_id, question in questions.items():
                question.answer.complete(results.get(transactional_id, ErrorCode.UNKNOWN_SERVER_ERROR))

        link = self._links.to(node_id, LinkUse.COORDINATION)
        link.request(request, BROKER_VERSION, timeout_ms=TIMEOUT_MS).when_done(on_done)

    @staticmethod
    def _take(waiting: deque[Question]) -> dict[str, Question]:
        """In order, up to the first that would appear for the second time."""
        taken: dict[str, Question] = {}
        while waiting and len(taken) < MOST_TRANSACTIONS and waiting[0].command.transactional_id not in taken:
            question = waiting.popleft()
            taken[question.command.transactional_id] = question
        return taken


def _transaction(command: AddPartitionsToTxn) -> AddPartitionsToTxnTransaction:
    topics: dict[str, list[int]] = {}
    for topic, partition in command.partitions:
        topics.setdefault(topic, []).append(partition)
    return AddPartitionsToTxnTransaction(
        transactional_id=command.transactional_id,
        producer_id=command.producer_id,
        producer_epoch=command.producer_epoch,
        verify_only=command.verify_only,
        topics=[AddPartitionsToTxnTopic(name=name, partitions=indexes) for name, indexes in topics.items()],
    )


def _results(response: AddPartitionsToTxnResponse, transactional_ids: list[str]) -> dict[str, Result]:
    if response.error_code != ErrorCode.NONE:
        error = CODES.get(response.error_code, ErrorCode.UNKNOWN_SERVER_ERROR)
        return dict.fromkeys(transactional_ids, error)
    return {result.transactional_id: result for result in response.results_by_transaction}
