"""Rows, an Arrow record batch, of one large fetch: its values stay in the buffer that they were received in.

Made by the user's thread when it comes to the fetch; or ahead of that, by the I/O thread that has just received it,
where making them is little more than checking them. To hand such bytes to another thread costs more than the work: they
are in this processor's cache, and three busy threads on two processors (broker, I/O, user) get in each other's way. And
the user's thread, or event loop, is for the user's work. Small records are left to the user's thread: taking them
apart takes longer than receiving them, and both can be done at a time. So are compressed ones, which would grow while
they wait, and all where there is no native codec, which would hold up everything else on the I/O thread.
"""

import logging
from typing import Final

from barnabas.client.consumer.fetch_buffer import CompletedFetch, FetchBuffer
from barnabas.errors import KafkaError
from barnabas.records.codec import NATIVE, ArrowReader
from barnabas.records.header import read_header

logger = logging.getLogger("barnabas.client.consumer")

LARGE_RECORD_BYTES: Final = 256


def make_rows(reader: ArrowReader, fetch: CompletedFetch, offset: int) -> None:
    """From this offset on. A fault at the first record raises KafkaError, and would the next time: nothing has been
    written over. After any other exception the bytes cannot be read any more.
    """
    topic, partition = fetch.state.topic_partition
    try:
        offset = reader.add(fetch.records, topic, partition, offset, aborted=fetch.aborted, in_place=True)
        epoch = reader.leader_epoch
        fetch.rows = reader.finish()
    except KafkaError:
        reader.finish()
        raise
    fetch.is_cut_short = offset < fetch.next_offset  # there is a fault; fetched again, it comes first
    fetch.next_offset = offset
    fetch.last_epoch = -1 if epoch is None else epoch


class RowsAhead:
    """Owned by the fetcher."""

    def __init__(self, buffer: FetchBuffer, *, check_crcs: bool) -> None:
        self._buffer = buffer
        self._check_crcs = check_crcs
        self._reader: ArrowReader | None = None

    def make(self, fetch: CompletedFetch) -> bool:
        """Where it is worth it. False if the bytes were lost over it and have to be fetched again."""
        if not NATIVE or not self._buffer.reads_columns or fetch.is_stale or not _is_light(fetch):
            return True
        if self._reader is None:
            self._reader = ArrowReader(check_crcs=self._check_crcs)
        try:
            make_rows(self._reader, fetch, fetch.first_offset)
        except KafkaError:
            pass  # the user's thread will come to it
        except Exception as error:
            logger.info("%s: no columns could be made ahead: %r", fetch.state.topic_partition, error)
            self._reader = None
            self._buffer.reads_columns = False  # the user's thread shall try, and raises what comes of it
            return False
        return True


def _is_light(fetch: CompletedFetch) -> bool:
    """By its first batch."""
    if not fetch.is_large:
        return False
    header = read_header(fetch.records)
    return (
        header.magic == 2
        and not header.compression
        and header.size_in_bytes >= LARGE_RECORD_BYTES * header.record_count
    )
