"""DescribeTransactions and ListTransactions (KIP-664, KIP-994, KIP-1152), served from a shard's memory."""

from collections.abc import Callable, Iterable, Mapping

from barnabas.errors import ErrorCode
from barnabas.machines.txn.metadata import TransactionMetadata
from barnabas.machines.txn.state import STATES_BY_TEXT
from barnabas.protocol.messages import describe_transactions, list_transactions
from barnabas.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse


def describe(
    transactions: Mapping[str, TransactionMetadata], transactional_ids: Iterable[str]
) -> list[describe_transactions.DescribedTransaction]:
    return [_describe(transactions.get(each), each) for each in transactional_ids]


def _describe(
    metadata: TransactionMetadata | None, transactional_id: str
) -> describe_transactions.DescribedTransaction:
    if metadata is None:
        error = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND if transactional_id else ErrorCode.INVALID_REQUEST
        return describe_transactions.DescribedTransaction(error_code=error, transactional_id=transactional_id)
    return describe_transactions.DescribedTransaction(
        transactional_id=transactional_id,
        transaction_state=metadata.state.text,
        transaction_timeout_ms=metadata.timeout_ms,
        transaction_start_time_ms=metadata.start_ms,
        producer_id=metadata.producer_id,
        producer_epoch=metadata.producer_epoch,
        topics=[
            describe_transactions.TopicData(topic=topic, partitions=partitions)
            for topic, partitions in metadata.partitions_by_topic().items()
        ],
    )


def list_matching(
    transactions: Iterable[TransactionMetadata],
    request: ListTransactionsRequest,
    id_matches: Callable[[str], object] | None,
    now_ms: int,
) -> ListTransactionsResponse:
    """Without a filter everything matches; an unknown state matches nothing."""
    states = {STATES_BY_TEXT[text] for text in request.state_filters if text in STATES_BY_TEXT}
    producer_ids = set(request.producer_id_filters)

    def matches(metadata: TransactionMetadata) -> bool:
        if producer_ids and metadata.producer_id not in producer_ids:
            return False
        if request.state_filters and metadata.state not in states:
            return False
        # An id without a transaction (start -1) has run since the epoch began, as in Kafka.
        if request.duration_filter >= 0 and now_ms - metadata.start_ms <= request.duration_filter:
            return False
        return id_matches is None or bool(id_matches(metadata.transactional_id))

    return ListTransactionsResponse(
        unknown_state_filters=[text for text in request.state_filters if text not in STATES_BY_TEXT],
        transaction_states=[
            list_transactions.ListedTransaction(
                transactional_id=metadata.transactional_id,
                producer_id=metadata.producer_id,
                transaction_state=metadata.state.text,
            )
            for metadata in transactions
            if matches(metadata)
        ],
    )
