"""Files that an interrupted deletion or compaction left in a partition's folder, put in order before the log is opened.

.deleted and .cleaned files were on their way out or not finished: they go. A .swap segment is complete: the segments
that it stands for go, and it takes its place.
"""

import logging
import os

from barnabas.storage.file_names import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    LOG_SUFFIX,
    SEGMENT_SUFFIXES,
    SWAP_SUFFIX,
    file_name,
    parse_file_name,
)
from barnabas.storage.log import Log

logger = logging.getLogger(__name__)

Parsed = list[tuple[int, str, str]]


def remove_leftovers(log: Log, now_ms: int) -> bool:
    """Whether anything had to be done. Every step may be interrupted by a crash and is then repeated."""
    parsed = _parsed_names(log)
    if not any(state for _, _, state in parsed):
        return False
    cleaned_from = min((offset for offset, _, state in parsed if state == CLEANED_SUFFIX), default=None)
    for offset, suffix, state in parsed:
        unfinished = state == SWAP_SUFFIX and cleaned_from is not None and offset >= cleaned_from
        if state in (DELETED_SUFFIX, CLEANED_SUFFIX) or unfinished:
            log.files.remove(os.path.join(log.directory, file_name(offset, suffix) + state))
    _finish_swaps(log, _parsed_names(log), now_ms)
    return True


def _finish_swaps(log: Log, parsed: Parsed, now_ms: int) -> None:
    swapped = [offset for offset, suffix, state in parsed if state == SWAP_SUFFIX and suffix == LOG_SUFFIX]
    if swapped:
        start, end = min(swapped), max(_next_offset(log, offset, now_ms) for offset in swapped)
        for offset, suffix, state in parsed:
            if not state and suffix in SEGMENT_SUFFIXES and start <= offset < end:
                logger.info("removing %s of %s: it was compacted", file_name(offset, suffix), log.topic_partition)
                log.files.remove(os.path.join(log.directory, file_name(offset, suffix)))
    for offset, suffix, state in sorted(parsed, key=lambda name: name[1] != LOG_SUFFIX):
        if state == SWAP_SUFFIX:
            path = os.path.join(log.directory, file_name(offset, suffix))
            log.files.rename(path + SWAP_SUFFIX, path)


def _next_offset(log: Log, base_offset: int, now_ms: int) -> int:
    segment = log.segment_list.new(base_offset, now_ms, SWAP_SUFFIX)
    segment.size = segment.file.size()
    return max(segment.next_offset(), base_offset + 1)


def _parsed_names(log: Log) -> Parsed:
    names = [parse_file_name(name) for name in log.files.names(log.directory)]
    return [name for name in names if name is not None]
