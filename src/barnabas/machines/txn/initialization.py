"""InitProducerId: which id and epoch a producer gets, and whom that fences.

Part of `TransactionShard`, which aborts an ongoing transaction first: here there is none. Holds the soft state that
distinguishes a retry from a replaced producer: the epoch before the current one.
"""

from collections.abc import Callable

from barnabas.errors import ErrorCode
from barnabas.machines.coordinator import ProducerIdAndEpoch
from barnabas.machines.txn.metadata import TransactionMetadata, is_exhausted
from barnabas.machines.txn.state import TransactionLogState
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.types import NO_PRODUCER_EPOCH, NO_PRODUCER_ID

TakeProducerId = Callable[[], int | None]
"""The next unused producer id, or None while the driver has none."""


def check_request(request: InitProducerIdRequest, max_timeout_ms: int) -> ErrorCode:
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_PRODUCER_EPOCH):
        return ErrorCode.INVALID_REQUEST
    if not request.transactional_id:
        return ErrorCode.INVALID_REQUEST
    if not 0 < request.transaction_timeout_ms <= max_timeout_ms:
        return ErrorCode.INVALID_TRANSACTION_TIMEOUT
    return ErrorCode.NONE


def expected_of(request: InitProducerIdRequest) -> ProducerIdAndEpoch | None:
    """The id and epoch that the producer had so far, if it continues instead of starting (v3, KIP-360)."""
    if request.producer_id == NO_PRODUCER_ID:
        return None
    return ProducerIdAndEpoch(request.producer_id, request.producer_epoch)


class Initialization:
    def __init__(self, take_producer_id: TakeProducerId) -> None:
        self.take_producer_id = take_producer_id
        self._last_epochs: dict[str, int] = {}

    def remember(self, metadata: TransactionMetadata) -> None:
        """The end of a transaction is about to bump the epoch."""
        self._last_epochs[metadata.transactional_id] = metadata.producer_epoch

    def forget(self, transactional_id: str) -> None:
        self._last_epochs.pop(transactional_id, None)

    def first(self, transactional_id: str, timeout_ms: int, now_ms: int) -> TransactionMetadata | ErrorCode:
        producer_id = self.take_producer_id()
        if producer_id is None:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return TransactionMetadata(transactional_id, producer_id, 0, timeout_ms, TransactionLogState.EMPTY, now_ms)

    def again(
        self, metadata: TransactionMetadata, expected: ProducerIdAndEpoch | None, timeout_ms: int, now_ms: int
    ) -> TransactionMetadata | ErrorCode:
        transactional_id, epoch = metadata.transactional_id, metadata.producer_epoch
        if expected is not None and expected.producer_epoch != epoch:
            # The epoch before the current one: the response was lost, so repeat it. That fences nobody by mistake,
            # since another producer's InitProducerId would have had the last epoch forgotten.
            if expected.producer_epoch != self._last_epochs.get(transactional_id):
                return ErrorCode.PRODUCER_FENCED
            return metadata.initialized(epoch, timeout_ms, now_ms)
        step = metadata.initialized(epoch + 1, timeout_ms, now_ms)
        if is_exhausted(epoch):
            producer_id = self.take_producer_id()
            if producer_id is None:
                return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            step = metadata.rotated(producer_id, timeout_ms, now_ms)
        if expected is None:
            self.forget(transactional_id)
        else:
            self.remember(metadata)
        return step
