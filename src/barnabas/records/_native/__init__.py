"""The record codec of the clients, compiled. Importing this fails where the extensions were not built; see codec.py."""

from barnabas.records._native.arrow_reader import ArrowReader
from barnabas.records._native.batch_buffer import BatchBuffer
from barnabas.records._native.consumer_record import ConsumerRecord
from barnabas.records._native.fetched_batches import batch_span
from barnabas.records._native.partition import murmur2, partition_for_key
from barnabas.records._native.record_reader import RecordReader

__all__ = ["ArrowReader", "BatchBuffer", "ConsumerRecord", "RecordReader", "batch_span", "murmur2", "partition_for_key"]
