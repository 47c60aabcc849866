"""Whether a partition belongs to the transaction that writes to it (KIP-890), checked before the first such write.

Produce and TxnOffsetCommit call it. The transaction coordinator, here or on another broker, either confirms that the
producer has added the partition, or, for clients that no longer do so themselves, adds it. Without that, records of a
producer whose transaction has ended in the meantime would open one that nobody ever ends, and no consumer could read
on.

A write that waits for the coordinator leaves a mark, which a marker written meanwhile removes: the response then says
of a transaction that is over. The mark also keeps the lowest sequence number seen, for while the first batch of a
transaction is refused and tried again, a later one must not get ahead of it.
"""

from barnabas.errors import ErrorCode
from barnabas.machines.coordinator import ProducerIdAndEpoch
from barnabas.machines.txn.commands import AddPartitionsToTxn
from barnabas.net.deferred import Deferred
from barnabas.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnResult
from barnabas.server.hosted_partition import HostedPartition
from barnabas.server.remote_verification import BROKER_VERSION, RemoteVerification
from barnabas.server.runtime import CoordinatorRuntime
from barnabas.types import NO_LEADER, TopicPartition

MOST_MARKS = 10_000
CODES = {int(error): error for error in ErrorCode}

Errors = dict[TopicPartition, ErrorCode]


class Verification:
    """The mark of a first write that is under way."""

    __slots__ = ("lowest_sequence", "producer_epoch")

    def __init__(self, producer_epoch: int, lowest_sequence: int) -> None:
        self.producer_epoch = producer_epoch
        self.lowest_sequence = lowest_sequence

    def see(self, producer_epoch: int, sequence: int) -> None:
        if producer_epoch > self.producer_epoch:
            self.producer_epoch, self.lowest_sequence = producer_epoch, sequence
        elif producer_epoch == self.producer_epoch:
            self.lowest_sequence = min(self.lowest_sequence, sequence)


def is_ongoing(hosted: HostedPartition, producer_id: int, producer_epoch: int) -> bool:
    """The transaction has records in the partition and no marker yet: later ones need no verification."""
    entry = hosted.log.producers.producers.get(producer_id)
    return entry is not None and entry.current_txn_first_offset >= 0 and entry.epoch == producer_epoch


class TransactionVerification:
    def __init__(self, runtime: CoordinatorRuntime, remote: RemoteVerification) -> None:
        self._runtime = runtime
        self._remote = remote
        self._marks: dict[tuple[bytes, int, int], Verification] = {}

    def begin(self, hosted: HostedPartition, producer: ProducerIdAndEpoch, sequence: int) -> Verification | None:
        """The mark to hold against the end of the transaction, or None if its first write is done already."""
        if is_ongoing(hosted, *producer):
            return None
        key = (hosted.topic_id, hosted.partition, producer.producer_id)
        mark = self._marks.get(key)
        if mark is None:
            if len(self._marks) >= MOST_MARKS:
                del self._marks[next(iter(self._marks))]
            mark = self._marks[key] = Verification(producer.producer_epoch, sequence)
        else:
            mark.see(producer.producer_epoch, sequence)
        return mark

    def still_holds(self, hosted: HostedPartition, producer_id: int, mark: Verification) -> bool:
        return self._marks.get((hosted.topic_id, hosted.partition, producer_id)) is mark

    def end(self, hosted: HostedPartition, producer_id: int) -> None:
        """The first write is done, or the transaction is."""
        self._marks.pop((hosted.topic_id, hosted.partition, producer_id), None)

    def verify(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: tuple[TopicPartition, ...],
        *,
        adds: bool,
        knows_abortable: bool,
    ) -> Errors | Deferred[Errors]:
        """{partition: error} of those that do not belong to the transaction.

        `adds`: the client leaves adding to the broker; `knows_abortable`: it understands TRANSACTION_ABORTABLE.
        """
        command = AddPartitionsToTxn(
            transactional_id, *producer, partitions, version=BROKER_VERSION, verify_only=not adds
        )

        def errors_of(result: AddPartitionsToTxnResult | ErrorCode) -> Errors:
            return _errors(result, partitions, knows_abortable)

        leader = self._runtime.leader_for(transactional_id)
        result: AddPartitionsToTxnResult | ErrorCode | Deferred[AddPartitionsToTxnResult | ErrorCode]
        if leader == self._runtime.node_id:
            result = self._runtime.submit(transactional_id, command, _refused)
        elif leader == NO_LEADER:
            result = ErrorCode.COORDINATOR_NOT_AVAILABLE
        else:
            result = self._remote.ask(leader, command)
        return result.then(errors_of) if isinstance(result, Deferred) else errors_of(result)


def _refused(error: ErrorCode) -> AddPartitionsToTxnResult | ErrorCode:
    return error


def _errors(
    result: AddPartitionsToTxnResult | ErrorCode, partitions: tuple[TopicPartition, ...], knows_abortable: bool
) -> Errors:
    if isinstance(result, ErrorCode):
        return dict.fromkeys(partitions, _for_client(result, knows_abortable))
    return {
        TopicPartition(topic.name, each.partition_index): _for_client(CODES[each.partition_error_code], knows_abortable)
        for topic in result.topic_results
        for each in topic.results_by_partition
        if each.partition_error_code
    }


def _for_client(error: ErrorCode, knows_abortable: bool) -> ErrorCode:
    """Producers expect these codes where the coordinator speaks of others."""
    if error is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if error is ErrorCode.TRANSACTION_ABORTABLE and not knows_abortable:
        return ErrorCode.INVALID_TXN_STATE
    return error
