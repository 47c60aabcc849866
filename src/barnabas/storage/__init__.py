"""Synchronous files in Kafka's formats: segments, indexes, logs, checkpoints and log directories.

`log_directories.LogDirectories` is the way in for the broker; `log.Log` is one partition's log. Whatever changes a log
runs on the event-loop thread. Safe from any thread: `Log.flush`, loading before the broker serves, reads of closed
segments by the cleaner, and `DeletionQueue.delete_due`.
"""
