"""Plays the transcripts of transactions (`tests/transcripts/txn`).

    time 3000                                       timers up to then fire, in order
    init a [version=5] [timeout=60000] [producer=1000/0]
    add a t-0 t-1 [version=5] [verify]
    add-offsets a [version=4]                       the group belongs to __consumer_offsets-7
    end a commit|abort [version=5]
    written a [t-0 ...] [old]                       markers stand; without partitions: all; old: of the request before
    describe a b
    list [states=Empty,Ongoing] [producers=1000] [duration=500] [pattern=a.*]
    log a Ongoing 1000/5 [t-0 ...] [version=0] [start=0]    a record that somebody else has written; then reload
    no-ids | ids                                    the broker has no producer ids at hand, or has again
    reload

`a` is a transactional id, `''` the empty one. A request carries the producer id and epoch that its transactional id was
told last, or `producer=`. Producer ids are given from 1000 on, times are those of the driver's monotonic clock.
"""

import re
from typing import Any

from machine_driver import WALL_MS, Entry, MachineDriver

from barnabas.errors import ErrorCode
from barnabas.machines.coordinator import ApplyContext, CoordinatorDecision, CoordinatorRecord
from barnabas.machines.txn import commands
from barnabas.machines.txn.metadata import TransactionMetadata
from barnabas.machines.txn.settings import TransactionSettings
from barnabas.machines.txn.shard import TransactionShard
from barnabas.machines.txn.state import STATES_BY_TEXT
from barnabas.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnResult
from barnabas.protocol.messages.end_txn import EndTxnRequest
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from barnabas.types import NO_TIMESTAMP, TopicPartition

SETTINGS = TransactionSettings(max_timeout_ms=900_000, id_expiration_ms=5_000_000, expiry_check_interval_ms=1_000_000)
Options = dict[str, str]


class Player:
    def __init__(self) -> None:
        self._next_id = 1000
        self._has_ids = True
        self._told: dict[str, tuple[int, int]] = {}
        self._sent: dict[str, list[commands.SendMarkers]] = {}
        self._driver = MachineDriver(lambda: TransactionShard(5, SETTINGS, self._take_producer_id))

    def _take_producer_id(self) -> int | None:
        if not self._has_ids:
            return None
        self._next_id += 1
        return self._next_id - 1

    def play(self, line: str) -> list[str]:
        verb, *words = line.split()
        options = dict(word.split("=", 1) for word in words if "=" in word)
        plain = ["" if word == "''" else word for word in words if "=" not in word]
        trace: list[str] = getattr(self, "_" + verb.replace("-", "_"))(plain, options)
        return [f"  {each}" for each in trace]

    # ---- input

    def _init(self, plain: list[str], options: Options) -> list[str]:
        producer_id, epoch = _producer(options["producer"]) if "producer" in options else (-1, -1)
        request = InitProducerIdRequest(
            transactional_id=plain[0],
            transaction_timeout_ms=int(options.get("timeout", 60_000)),
            producer_id=producer_id,
            producer_epoch=epoch,
        )
        return self._submit(plain[0], commands.InitProducerId(request, int(options.get("version", 5))))

    def _add(self, plain: list[str], options: Options) -> list[str]:
        partitions = tuple(_partition(word) for word in plain[1:] if word != "verify")
        command = commands.AddPartitionsToTxn(
            plain[0], *self._producer(plain[0], options), partitions, int(options.get("version", 5)), "verify" in plain
        )
        return self._submit(plain[0], command)

    def _add_offsets(self, plain: list[str], options: Options) -> list[str]:
        producer_id, epoch = self._producer(plain[0], options)
        request = AddOffsetsToTxnRequest(transactional_id=plain[0], producer_id=producer_id, producer_epoch=epoch)
        partition = TopicPartition("__consumer_offsets", 7)
        return self._submit(plain[0], commands.AddOffsetsToTxn(request, int(options.get("version", 4)), partition))

    def _end(self, plain: list[str], options: Options) -> list[str]:
        producer_id, epoch = self._producer(plain[0], options)
        committed = {"commit": True, "abort": False}[plain[1]]
        request = EndTxnRequest(
            transactional_id=plain[0], producer_id=producer_id, producer_epoch=epoch, committed=committed
        )
        return self._submit(plain[0], commands.EndTxn(request, int(options.get("version", 5))))

    def _written(self, plain: list[str], options: Options) -> list[str]:
        request = self._sent[plain[0]][-2 if "old" in plain else -1]
        partitions = tuple(_partition(word) for word in plain[1:] if word != "old") or request.partitions
        token = object()
        decision = self._driver.submit(commands.MarkersWritten(request, partitions), token)
        del self._driver.asked[token]
        return self._show(decision)

    def _describe(self, plain: list[str], options: Options) -> list[str]:
        return self._submit("", commands.DescribeTransactions(tuple(plain)))

    def _list(self, plain: list[str], options: Options) -> list[str]:
        request = ListTransactionsRequest(
            state_filters=_words(options.get("states")),
            producer_id_filters=[int(each) for each in _words(options.get("producers"))],
            duration_filter=int(options.get("duration", -1)),
        )
        matches = re.compile(options["pattern"]).fullmatch if "pattern" in options else None
        return self._submit("", commands.ListTransactions(request, matches))

    def _time(self, plain: list[str], options: Options) -> list[str]:
        fired = self._driver.advance_to(int(plain[0]))
        return [line for key, decision in fired for line in (f"{key} fires", *self._show(decision))]

    def _log(self, plain: list[str], options: Options) -> list[str]:
        producer_id, epoch = _producer(plain[2])
        metadata = TransactionMetadata(
            plain[0],
            producer_id,
            epoch,
            60_000,
            STATES_BY_TEXT[plain[1]],
            self._driver.now.wall_ms,
            NO_TIMESTAMP if plain[1] == "Empty" else int(options.get("start", 0)) + WALL_MS,
            {_partition(word): None for word in plain[3:]},
            client_transaction_version=int(options.get("version", 2)),
        )
        record = metadata.record()
        self._driver.log.append(Entry(record.key, record.value, ApplyContext(len(self._driver.log), 0)))
        return self._reload([], {})

    def _reload(self, plain: list[str], options: Options) -> list[str]:
        before, asked = len(self._driver.log), len(self._driver.requests)
        self._driver.load()
        records = [_record(CoordinatorRecord(each.key, each.value)) for each in self._driver.log[before:]]
        timers = [f"{key} at {deadline_ms}" for key, deadline_ms in self._driver.timers.items()]
        return records + timers + [self._marker(each) for each in self._driver.requests[asked:]]

    def _no_ids(self, plain: list[str], options: Options) -> list[str]:
        self._has_ids = False
        return []

    def _ids(self, plain: list[str], options: Options) -> list[str]:
        self._has_ids = True
        return []

    # ---- trace

    def _producer(self, transactional_id: str, options: Options) -> tuple[int, int]:
        return _producer(options["producer"]) if "producer" in options else self._told.get(transactional_id, (0, 0))

    def _submit(self, transactional_id: str, command: Any) -> list[str]:
        decision = self._driver.submit(command, object())
        for _, reply in decision.replies:
            producer = getattr(reply, "producer_id", -1), getattr(reply, "producer_epoch", -1)
            if producer[0] >= 0:
                self._told[transactional_id] = producer
        return self._show(decision)

    def _show(self, decision: CoordinatorDecision) -> list[str]:
        return [
            *(_record(each) for each in decision.records),
            *(line for _, reply in decision.replies for line in _reply(reply)),
            *(f"{key} at {deadline_ms}" for key, deadline_ms in decision.timers),
            *(self._marker(each) for each in decision.requests),
        ]

    def _marker(self, request: commands.SendMarkers) -> str:
        self._sent.setdefault(request.transactional_id, []).append(request)
        verb = "commit" if request.committed else "abort"
        partitions = " ".join(map(str, request.partitions))
        producer = f"{request.producer_id}/{request.producer_epoch}"
        return f"markers {verb} {producer} coordinator={request.coordinator_epoch} {partitions}"


def _producer(text: str) -> tuple[int, int]:
    producer_id, _, epoch = text.partition("/")
    return int(producer_id), int(epoch)


def _partition(word: str) -> TopicPartition:
    topic, _, partition = word.rpartition("-")
    return TopicPartition(topic, int(partition))


def _words(text: str | None) -> list[str]:
    return text.split(",") if text else []


def _record(record: CoordinatorRecord) -> str:
    name = record.key.transactional_id
    if record.value is None:
        return f"record {name} tombstone"
    metadata = TransactionMetadata.of(name, record.value)
    words = [f"record {name} {metadata.state.text} {metadata.producer_id}/{metadata.producer_epoch}"]
    if metadata.previous_producer_id >= 0:
        words.append(f"previous={metadata.previous_producer_id}")
    if metadata.next_producer_id >= 0:
        words.append(f"next={metadata.next_producer_id}")
    if metadata.start_ms >= 0:
        words.append(f"start={metadata.start_ms - WALL_MS}")
    words.append(f"updated={metadata.last_update_ms - WALL_MS} timeout={metadata.timeout_ms}")
    words.append(f"version={metadata.client_transaction_version}")
    if record.value.transaction_partitions is None:
        words.append("null")
    return " ".join(words + [str(each) for each in metadata.partitions])


def _reply(reply: Any) -> list[str]:
    if isinstance(reply, AddPartitionsToTxnResult):
        parts = [
            f"{topic.name}-{each.partition_index}={ErrorCode(each.partition_error_code).name}"
            for topic in reply.topic_results
            for each in topic.results_by_partition
        ]
        return [" ".join(["reply", *parts])]
    if isinstance(reply, ListTransactionsResponse):
        unknown = f" unknown={','.join(reply.unknown_state_filters)}" if reply.unknown_state_filters else ""
        states = [f"{each.transactional_id}:{each.transaction_state}" for each in reply.transaction_states]
        return [" ".join(["reply", *states]) + unknown]
    if isinstance(reply, list):
        return [f"reply {_described(each)}" for each in reply]
    text = f"reply {ErrorCode(reply.error_code).name}"
    producer_id = getattr(reply, "producer_id", -1)
    return [text if producer_id < 0 else f"{text} {producer_id}/{reply.producer_epoch}"]


def _described(state: Any) -> str:
    if state.error_code:
        return f"{state.transactional_id or repr('')} {ErrorCode(state.error_code).name}"
    topics = " ".join(f"{each.topic}-{','.join(map(str, each.partitions))}" for each in state.topics)
    producer = f"{state.producer_id}/{state.producer_epoch}"
    start_ms = state.transaction_start_time_ms
    start = start_ms if start_ms < 0 else start_ms - WALL_MS
    text = f"{state.transactional_id} {state.transaction_state} {producer} timeout={state.transaction_timeout_ms}"
    return f"{text} start={start} {topics}".rstrip()
