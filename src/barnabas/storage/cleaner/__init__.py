"""Log compaction: of each key, the last value stays.

    log_cleaner   the threads, the logs being cleaned, paused or skipped, and the checkpoint
    candidates    which logs may be cleaned, how far, and which is the filthiest
    cleaner       one cleaning: key map from the dirty part, then segments copied group by group and swapped
    batch_filter  what of one batch is kept
    transactions  which transactions are aborted, and when a marker has outlived its data
    offset_map    last offset of each key, in bounded memory
    throttle      log.cleaner.io.max.bytes.per.second

Cleaner threads read closed segments and write new files beside them. Everything that reads or changes the live log
(choosing, swapping) runs on the event loop, through the callable given to `LogCleaner`.
"""
