"""The coordinator of the transactions of one partition of `__transaction_state`.

Driven by `server/runtime.py`. Durable state is `_transactions`, written by `apply` alone. Soft state may get
lost: which markers are still to be written (all of them again after a reload), which timers are armed and when a
transaction is due, and the epoch before the current one.

Unlike Kafka there is no pending state: a decision is applied before the next one is made, so only a Prepare
state is ever in flight.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from barnabas.errors import ErrorCode
from barnabas.machines.controller.image import ClusterImage
from barnabas.machines.coordinator import NOTHING, ApplyContext, CoordinatorDecision, CoordinatorRecord, Now, Token
from barnabas.machines.txn import commands, invariants, replies, rules
from barnabas.machines.txn.alarms import EXPIRY, Alarms
from barnabas.machines.txn.initialization import Initialization, TakeProducerId, check_request, expected_of
from barnabas.machines.txn.listing import describe, list_matching
from barnabas.machines.txn.metadata import TransactionMetadata, is_exhausted
from barnabas.machines.txn.settings import TransactionSettings
from barnabas.machines.txn.state import AT_REST, PREPARED, TransactionLogState
from barnabas.protocol.messages.end_txn import EndTxnResponse
from barnabas.protocol.messages.transaction_log_record import TransactionLogKey, TransactionLogValue
from barnabas.types import NO_PRODUCER_ID, TopicPartition


class Unwritten(NamedTuple):
    request: commands.SendMarkers
    partitions: dict[TopicPartition, None]


class TransactionShard:
    def __init__(self, coordinator_epoch: int, settings: TransactionSettings, take_producer_id: TakeProducerId) -> None:
        """`coordinator_epoch` is the leader epoch of the partition: it goes into the markers."""
        self._coordinator_epoch = coordinator_epoch
        self._settings = settings
        self._transactions: dict[str, TransactionMetadata] = {}
        self._initialization = Initialization(take_producer_id)
        self._unwritten: dict[str, Unwritten] = {}
        self._alarms = Alarms(settings.expiry_check_interval_ms)
        self._table: dict[type, Callable[[Any, Token, Now], CoordinatorDecision]] = {
            commands.InitProducerId: self._init_producer_id,
            commands.AddPartitionsToTxn: self._add_partitions,
            commands.AddOffsetsToTxn: self._add_offsets,
            commands.EndTxn: self._end,
            commands.MarkersWritten: self._markers_written,
            commands.DescribeTransactions: self._describe,
            commands.ListTransactions: self._list,
        }

    def decide(self, command: Any, token: Token, now: Now) -> CoordinatorDecision:
        return self._table[type(command)](command, token, now)

    # ---- InitProducerId

    def _init_producer_id(self, command: commands.InitProducerId, token: Token, now: Now) -> CoordinatorDecision:
        request, version = command.request, command.version
        error = check_request(request, self._settings.max_timeout_ms)
        if error is not ErrorCode.NONE:
            return _reply(token, replies.init_failed(error, version))
        assert request.transactional_id is not None
        metadata = self._transactions.get(request.transactional_id)
        timeout_ms = request.transaction_timeout_ms
        if metadata is None:
            step = self._initialization.first(request.transactional_id, timeout_ms, now.wall_ms)
        else:
            expected = expected_of(request)
            error = rules.check_init(metadata, expected)
            if error is not ErrorCode.NONE:
                return _reply(token, replies.init_failed(error, version))
            if metadata.state is TransactionLogState.ONGOING:
                return self._fence(metadata, token, version, now)
            step = self._initialization.again(metadata, expected, timeout_ms, now.wall_ms)
        if isinstance(step, ErrorCode):
            return _reply(token, replies.init_failed(step, version))
        return CoordinatorDecision(
            records=(step.record(),),
            replies=((token, replies.initialized(step)),),
            timers=self._alarms.arm_expiry(now),
        )

    def _fence(self, metadata: TransactionMetadata, token: Token, version: int, now: Now) -> CoordinatorDecision:
        """Abort the transaction of the previous producer. The new one retries, and then gets its own epoch."""
        step = self._prepared(metadata, False, True, now)
        if step is None:
            return _reply(token, replies.init_failed(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, version))
        return self._carry_through(step, now, token, replies.init_failed(ErrorCode.CONCURRENT_TRANSACTIONS, version))

    # ---- AddPartitionsToTxn, AddOffsetsToTxn

    def _add_partitions(self, command: commands.AddPartitionsToTxn, token: Token, now: Now) -> CoordinatorDecision:
        if command.verify_only:
            return _reply(token, replies.partitions_added(command, self._verify(command)))
        transactional_id, producer = command.transactional_id, (command.producer_id, command.producer_epoch)
        error = self._check_add(transactional_id, *producer)
        reply = replies.partitions_added(command, dict.fromkeys(command.partitions, error))
        if error is not ErrorCode.NONE:
            return _reply(token, reply)
        # v4 and v5 come from brokers, on behalf of producers of transaction.version 2.
        return self._add(transactional_id, command.partitions, 2 if command.version > 3 else 0, token, reply, now)

    def _add_offsets(self, command: commands.AddOffsetsToTxn, token: Token, now: Now) -> CoordinatorDecision:
        request = command.request
        error = self._check_add(request.transactional_id, request.producer_id, request.producer_epoch)
        reply = replies.offsets_added(error, command.version)
        if error is not ErrorCode.NONE:
            return _reply(token, reply)
        return self._add(request.transactional_id, (command.offsets_partition,), 0, token, reply, now)

    def _check_add(self, transactional_id: str, producer_id: int, producer_epoch: int) -> ErrorCode:
        metadata = self._transactions.get(transactional_id)
        if metadata is None:
            return _not_found(transactional_id)
        return rules.check_add(metadata, producer_id, producer_epoch)

    def _add(
        self,
        transactional_id: str,
        partitions: tuple[TopicPartition, ...],
        client_transaction_version: int,
        token: Token,
        reply: Any,
        now: Now,
    ) -> CoordinatorDecision:
        metadata = self._transactions[transactional_id]
        is_ongoing = metadata.state is TransactionLogState.ONGOING
        if not partitions or (is_ongoing and all(each in metadata.partitions for each in partitions)):
            return _reply(token, reply)
        step = metadata.with_partitions(partitions, client_transaction_version, now.wall_ms)
        timers = () if is_ongoing else self._alarms.start_timeout(step, now)
        return CoordinatorDecision(
            (step.record(),), ((token, reply),), timers, if_too_large=ErrorCode.UNKNOWN_SERVER_ERROR
        )

    def _verify(self, command: commands.AddPartitionsToTxn) -> dict[TopicPartition, ErrorCode]:
        metadata = self._transactions.get(command.transactional_id)
        if metadata is None:
            return dict.fromkeys(command.partitions, _not_found(command.transactional_id))
        error = rules.check_verify(metadata, command.producer_id, command.producer_epoch)
        if error is not ErrorCode.NONE:
            return dict.fromkeys(command.partitions, error)
        return {
            each: ErrorCode.NONE if each in metadata.partitions else ErrorCode.TRANSACTION_ABORTABLE
            for each in command.partitions
        }

    # ---- EndTxn and what follows

    def _end(self, command: commands.EndTxn, token: Token, now: Now) -> CoordinatorDecision:
        request, version = command.request, command.version
        metadata = self._transactions.get(request.transactional_id)
        if metadata is None:
            return _reply(token, replies.end_failed(_not_found(request.transactional_id), version))
        verdict = rules.judge_end(metadata, request.producer_id, request.producer_epoch, request.committed, version)
        if isinstance(verdict, ErrorCode):
            return _reply(token, replies.end_failed(verdict, version))
        bumps = version >= rules.EPOCH_BUMP_SINCE_END_TXN
        if verdict is rules.EndTxnStep.REPEATED:
            return _reply(token, replies.ended(metadata) if bumps else EndTxnResponse())
        step = self._prepared(metadata, request.committed, bumps, now)
        if step is None:
            return _reply(token, replies.end_failed(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, version))
        # A new producer id takes effect with the last marker, but its producer needs to know it now.
        reply = replies.ended(step.completed(now.wall_ms)) if bumps else EndTxnResponse()
        return self._carry_through(step, now, token, reply)

    def _prepared(
        self, metadata: TransactionMetadata, committed: bool, bumps: bool, now: Now
    ) -> TransactionMetadata | None:
        """None: the epochs are used up and no new producer id is available yet."""
        if not bumps:
            return metadata.prepared(committed, now.wall_ms)
        next_producer_id = (
            self._initialization.take_producer_id() if is_exhausted(metadata.producer_epoch) else NO_PRODUCER_ID
        )
        if next_producer_id is None:
            return None
        self._initialization.remember(metadata)
        return metadata.prepared_with_bump(committed, next_producer_id, now.wall_ms)

    def _carry_through(
        self, step: TransactionMetadata, now: Now, token: Token = None, reply: Any = None
    ) -> CoordinatorDecision:
        """The outcome is decided: once this is written, it cannot change."""
        replies = () if reply is None else ((token, reply),)
        if not step.partitions:
            return CoordinatorDecision((step.record(), step.completed(now.wall_ms).record()), replies)
        return CoordinatorDecision((step.record(),), replies, requests=(self._send_markers(step),))

    def _send_markers(self, metadata: TransactionMetadata) -> commands.SendMarkers:
        request = commands.SendMarkers(
            metadata.transactional_id,
            metadata.producer_id,
            metadata.producer_epoch,
            metadata.state is TransactionLogState.PREPARE_COMMIT,
            tuple(metadata.partitions),
            self._coordinator_epoch,
        )
        self._unwritten[metadata.transactional_id] = Unwritten(request, dict(metadata.partitions))
        return request

    def _markers_written(self, command: commands.MarkersWritten, token: Token, now: Now) -> CoordinatorDecision:
        transactional_id = command.request.transactional_id
        unwritten = self._unwritten.get(transactional_id)
        if unwritten is None or unwritten.request is not command.request:
            return NOTHING
        for partition in command.partitions:
            unwritten.partitions.pop(partition, None)
        if unwritten.partitions:
            return NOTHING
        del self._unwritten[transactional_id]
        completed = self._transactions[transactional_id].completed(now.wall_ms)
        return CoordinatorDecision(records=(completed.record(),))

    # ---- timers

    def expire(self, key: str, now: Now) -> CoordinatorDecision:
        if key == EXPIRY:
            return self._remove_expired(now)
        transactional_id = self._alarms.on_timeout(key)
        metadata = self._transactions.get(transactional_id)
        if metadata is None or metadata.state is not TransactionLogState.ONGOING:
            self._alarms.forget_timeout(transactional_id)
            return NOTHING
        if not self._alarms.is_due(transactional_id, now):
            return CoordinatorDecision(timers=self._alarms.arm_timeout(transactional_id))
        step = self._prepared(metadata, False, True, now)
        if step is None:
            return CoordinatorDecision(timers=self._alarms.arm_timeout_again(transactional_id, now))
        self._alarms.forget_timeout(transactional_id)
        return self._carry_through(step, now)

    def _remove_expired(self, now: Now) -> CoordinatorDecision:
        self._alarms.on_expiry()
        limit_ms = now.wall_ms - self._settings.id_expiration_ms
        expired = tuple(
            CoordinatorRecord(TransactionLogKey(transactional_id=each.transactional_id), None)
            for each in self._transactions.values()
            if each.state in AT_REST and each.last_update_ms <= limit_ms
        )
        remain = len(expired) < len(self._transactions)
        return CoordinatorDecision(records=expired, timers=self._alarms.arm_expiry(now) if remain else ())

    # ---- queries

    def _describe(self, command: commands.DescribeTransactions, token: Token, now: Now) -> CoordinatorDecision:
        return _reply(token, describe(self._transactions, command.transactional_ids))

    def _list(self, command: commands.ListTransactions, token: Token, now: Now) -> CoordinatorDecision:
        listed = list_matching(self._transactions.values(), command.request, command.id_matches, now.wall_ms)
        return _reply(token, listed)

    # ---- the log

    def apply(self, key: TransactionLogKey, value: TransactionLogValue | None, context: ApplyContext) -> None:
        transactional_id = key.transactional_id
        if value is None:
            self._transactions.pop(transactional_id, None)
            self._initialization.forget(transactional_id)
        else:
            self._transactions[transactional_id] = TransactionMetadata.of(transactional_id, value)

    def apply_encoded(self, key: bytes, value: bytes, record_offset: int, timestamp: int) -> bool:
        return False

    def apply_marker(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        """Nothing in `__transaction_state` is ever written as part of a transaction."""

    def on_loaded(self, now: Now) -> CoordinatorDecision:
        """Complete what was decided before. Some of the markers may be written already; duplicates are harmless."""
        records: list[CoordinatorRecord] = []
        requests: list[commands.SendMarkers] = []
        timers: list[tuple[str, int | None]] = []
        for metadata in self._transactions.values():
            if metadata.state is TransactionLogState.ONGOING:
                timers.extend(self._alarms.resume_timeout(metadata, now))
            elif metadata.state in PREPARED and metadata.partitions:
                requests.append(self._send_markers(metadata))
            elif metadata.state in PREPARED:
                records.append(metadata.completed(now.wall_ms).record())
        if self._transactions:
            timers.extend(self._alarms.arm_expiry(now))
        return CoordinatorDecision(records=tuple(records), timers=tuple(timers), requests=tuple(requests))

    def on_image(self, image: ClusterImage, now: Now) -> CoordinatorDecision:
        """Deleted partitions with pending markers are handled by the code that writes the markers."""
        return NOTHING

    def check(self) -> None:
        unwritten = {each: list(markers.partitions) for each, markers in self._unwritten.items()}
        invariants.check(self._transactions, unwritten, self._alarms.timeouts)


def _not_found(transactional_id: str) -> ErrorCode:
    return ErrorCode.INVALID_PRODUCER_ID_MAPPING if transactional_id else ErrorCode.INVALID_REQUEST


def _reply(token: Token, response: Any) -> CoordinatorDecision:
    return CoordinatorDecision(replies=((token, response),))
