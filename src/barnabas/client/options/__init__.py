"""Every option of Kafka 4.1's producer, consumer and admin client: name, type, default, check, and one line of doc.

`ProducerOptions.of("localhost:9092", linger_ms=5)` takes the names with underscores, as the constructors do;
`ProducerOptions.from_config({"bootstrap.servers": ...})` takes Kafka's. Either raises `ConfigError` with every fault at
once. The `...Kwargs` are the same tables for type checkers and editors.
"""

from barnabas.client.options.admin import AdminOptions
from barnabas.client.options.common import CommonOptions
from barnabas.client.options.consumer import ConsumerOptions
from barnabas.client.options.kwargs import AdminKwargs, CommonKwargs, ConsumerKwargs, ProducerKwargs
from barnabas.client.options.producer import ProducerOptions

__all__ = [
    "AdminKwargs",
    "AdminOptions",
    "CommonKwargs",
    "CommonOptions",
    "ConsumerKwargs",
    "ConsumerOptions",
    "ProducerKwargs",
    "ProducerOptions",
]
