"""The record codec of the clients in plain Python: what codec.py takes where the compiled twin is missing.

Must return the same bytes, records and errors as `_native`; one test suite runs over both.
"""

from barnabas.records._pure.arrow_reader import ArrowReader
from barnabas.records._pure.batch_buffer import BatchBuffer
from barnabas.records._pure.batch_span import batch_span
from barnabas.records._pure.consumer_record import ConsumerRecord
from barnabas.records._pure.partition import murmur2, partition_for_key
from barnabas.records._pure.record_reader import RecordReader

__all__ = ["ArrowReader", "BatchBuffer", "ConsumerRecord", "RecordReader", "batch_span", "murmur2", "partition_for_key"]
