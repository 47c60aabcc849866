"""Questions to a transaction coordinator elsewhere: one request at a time, whatever waits goes with the next."""

from types import SimpleNamespace
from typing import Any, cast

from barnabas.errors import ErrorCode
from barnabas.machines.txn.commands import AddPartitionsToTxn
from barnabas.net.deferred import Deferred
from barnabas.net.link import LinkError
from barnabas.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from barnabas.server.broker_links import BrokerLinks
from barnabas.server.remote_verification import RemoteVerification
from barnabas.types import TopicPartition


class Links:
    def __init__(self) -> None:
        self.sent: list[tuple[int, AddPartitionsToTxnRequest, Deferred[Any]]] = []

    def to(self, node_id: int, use: object) -> Any:
        def request(message: Any, version: int, *, timeout_ms: int) -> Deferred[Any]:
            self.sent.append((node_id, message, Deferred()))
            return self.sent[-1][2]

        return SimpleNamespace(request=request)

    @property
    def ids(self) -> list[list[str]]:
        return [[each.transactional_id for each in message.transactions] for _, message, _ in self.sent]


def verification(links: Links) -> RemoteVerification:
    return RemoteVerification(cast(BrokerLinks, links))


def question(transactional_id: str, *partitions: int) -> AddPartitionsToTxn:
    wanted = tuple(TopicPartition("t", each) for each in partitions)
    return AddPartitionsToTxn(transactional_id, 7, 1, wanted, version=5, verify_only=True)


def result(transactional_id: str, error: ErrorCode = ErrorCode.NONE) -> AddPartitionsToTxnResult:
    row = AddPartitionsToTxnPartitionResult(partition_index=0, partition_error_code=error)
    topic = AddPartitionsToTxnTopicResult(name="t", results_by_partition=[row])
    return AddPartitionsToTxnResult(transactional_id=transactional_id, topic_results=[topic])


def test_what_comes_up_meanwhile_goes_with_the_next_request() -> None:
    links = Links()
    asked = verification(links)
    first = asked.ask(2, question("a", 0, 1))
    second, third = asked.ask(2, question("b", 0)), asked.ask(2, question("c", 0))
    elsewhere = asked.ask(3, question("d", 0))
    assert [node_id for node_id, _, _ in links.sent] == [2, 3]
    transaction = links.sent[0][1].transactions[0]
    assert (transaction.producer_id, transaction.producer_epoch, transaction.verify_only) == (7, 1, True)
    assert [(topic.name, topic.partitions) for topic in transaction.topics] == [("t", [0, 1])]
    links.sent[0][2].complete(AddPartitionsToTxnResponse(results_by_transaction=[result("a")]))
    assert first.value == result("a")
    assert links.ids == [["a"], ["d"], ["b", "c"]]
    answers = [result("c", ErrorCode.INVALID_TXN_STATE), result("b")]
    links.sent[2][2].complete(AddPartitionsToTxnResponse(results_by_transaction=answers))
    assert (second.value, third.value) == (answers[1], answers[0])
    assert not elsewhere.done
    asked.ask(2, question("e", 0))
    assert links.ids[-1] == ["e"], "nothing is under way: it goes at once"


def test_a_transaction_is_asked_about_once_per_request() -> None:
    links = Links()
    asked = verification(links)
    asked.ask(2, question("x", 0))
    waiting = [asked.ask(2, question(each, 0)) for each in ("a", "b", "a", "c")]
    links.sent[0][2].complete(AddPartitionsToTxnResponse(results_by_transaction=[result("x")]))
    links.sent[1][2].complete(AddPartitionsToTxnResponse(results_by_transaction=[result("a"), result("b")]))
    assert links.ids == [["x"], ["a", "b"], ["a", "c"]]
    assert [each.done for each in waiting] == [True, True, False, False]


def test_a_lost_connection_and_a_refusal_are_answers() -> None:
    links = Links()
    asked = verification(links)
    lost, refused = asked.ask(2, question("a", 0)), asked.ask(2, question("b", 0))
    links.sent[0][2].fail(LinkError("gone"))
    assert lost.value is ErrorCode.NETWORK_EXCEPTION
    error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    links.sent[1][2].complete(AddPartitionsToTxnResponse(error_code=error, results_by_transaction=[]))
    assert refused.value is error
