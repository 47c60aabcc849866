"""Records that were deleted before they were read: the cause, by topic id and first offset."""

from barnabas.client.consumer.consumer import Consumer
from barnabas.client.errors import OffsetOutOfRangeError, UnknownTopicError
from barnabas.errors import ErrorCode, KafkaError
from barnabas.spark.planning import OffsetRange
from barnabas.types import NO_TOPIC_ID, TopicPartition, topic_id_text

_GONE = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.INCONSISTENT_TOPIC_ID)
HINT = "to continue with the remaining records, set failOnDataLoss to false (pipeline run: --skip-lost)"


class DataLossError(RuntimeError):
    """The text says which offsets were lost and why."""


def explain_loss(
    consumer: Consumer,
    tp: TopicPartition,
    position: int,
    wanted: OffsetRange,
    topic_id: str,
    error: KafkaError,
    fail_on_data_loss: bool,
) -> int:
    """Where to continue reading; raises DataLossError if losses end the query, or `error` if nothing was lost."""
    lost = f"{tp} offsets {position} to {wanted.end - 1}"
    if isinstance(error, UnknownTopicError) or error.code in _GONE:
        return _give_up(f"{lost} are lost: the topic was deleted", wanted.end, fail_on_data_loss)
    if not isinstance(error, OffsetOutOfRangeError):
        raise error
    known = consumer.list_topics().get(tp.topic)
    if known is None:
        return _give_up(f"{lost} are lost: the topic was deleted", wanted.end, fail_on_data_loss)
    if is_another(topic_id, known.topic_id):
        return _give_up(f"{lost} are lost: the topic was deleted and recreated", wanted.end, fail_on_data_loss)
    first = consumer.beginning_offsets([tp])[tp]
    if position < first:
        until = min(first, wanted.end)
        why = f"{tp} offsets {position} to {until - 1} are lost: retention or DeleteRecords removed them"
        return _give_up(why, until, fail_on_data_loss)
    raise error


def explain_silence(
    consumer: Consumer, tp: TopicPartition, position: int, wanted: OffsetRange, topic_id: str, fail_on_data_loss: bool
) -> int:
    """Called after a while without records, because a consumer waits for a deleted topic. Where to continue reading."""
    known = consumer.list_topics().get(tp.topic)
    if known is not None and not is_another(topic_id, known.topic_id):
        return position
    what = "deleted" if known is None else "deleted and recreated"
    lost = f"{tp} offsets {position} to {wanted.end - 1} are lost: the topic was {what}"
    return _give_up(lost, wanted.end, fail_on_data_loss)


def is_another(topic_id: str, now: bytes) -> bool:
    """Whether a topic is not the one in the checkpoint; brokers before 2.8 have no ids."""
    unknown = topic_id_text(NO_TOPIC_ID)
    return topic_id not in ("", unknown) and now != NO_TOPIC_ID and topic_id != topic_id_text(now)


def _give_up(what: str, go_on_at: int, fail_on_data_loss: bool) -> int:
    if fail_on_data_loss:
        raise DataLossError(f"{what}; {HINT}")
    import logging

    logging.getLogger(__name__).warning("%s; reading continues, since failOnDataLoss is false", what)
    return go_on_at
