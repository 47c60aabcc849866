"""Names of other libraries for Kafka (librdkafka, kafka-python, aiokafka), and what they are called here.

For people who bring their options along. A value with a blank is advice instead of a name.
"""

from collections.abc import Mapping
from types import MappingProxyType

SPELLED_ELSEWHERE: Mapping[str, str] = MappingProxyType(
    {
        "api.version": "leave it out, versions are found out by asking the broker",
        "api.version.request": "leave it out, versions are found out by asking the broker",
        "broker.version.fallback": "leave it out, versions are found out by asking the broker",
        "compression.codec": "compression.type",
        "consumer.timeout.ms": "use batches(timeout=..., stop_when_idle=True)",
        "debug": "set the level of the logger barnabas.client",
        "enable.auto.offset.store": "set enable_auto_commit=False and commit what is done",
        "enable.partition.eof": "compare position() with end_offsets()",
        "error.cb": "errors are raised by the calls, and logged by barnabas.client",
        "fetch.message.max.bytes": "max.partition.fetch.bytes",
        "fetch.wait.max.ms": "fetch.max.wait.ms",
        "go.events.channel.enable": "leave it out",
        "logger": "use the loggers below barnabas.client",
        "max.in.flight": "max.in.flight.requests.per.connection",
        "message.max.bytes": "max.request.size",
        "message.send.max.retries": "retries",
        "message.timeout.ms": "delivery.timeout.ms",
        "metadata.broker.list": "bootstrap.servers",
        "partitioner": "partitioner.class",
        "queue.buffering.max.kbytes": "use buffer_memory, in bytes",
        "queue.buffering.max.messages": "use buffer_memory, in bytes",
        "queue.buffering.max.ms": "linger.ms",
        "request.required.acks": "acks",
        "sasl.mechanisms": "sasl.mechanism",
        "sasl.plain.password": "sasl.password",
        "sasl.plain.username": "sasl.username",
        "socket.receive.buffer.bytes": "receive.buffer.bytes",
        "socket.send.buffer.bytes": "send.buffer.bytes",
        "socket.timeout.ms": "request.timeout.ms",
        "ssl.ca.location": "ssl.truststore.location",
        "ssl.ca.pem": "ssl.truststore.certificates",
        "ssl.cafile": "ssl.truststore.location",
        "ssl.certfile": "ssl.keystore.location (one PEM file with the key and the certificates)",
        "ssl.certificate.location": "ssl.keystore.location (one PEM file with the key and the certificates)",
        "ssl.check.hostname": "set ssl_endpoint_identification_algorithm to '' to switch the check off",
        "ssl.context": "use the ssl_... options with PEM files",
        "ssl.key.location": "ssl.keystore.location (one PEM file with the key and the certificates)",
        "ssl.keyfile": "ssl.keystore.location (one PEM file with the key and the certificates)",
        "ssl.password": "ssl.key.password",
        "statistics.interval.ms": "read metrics() when you want them",
        "topic.metadata.refresh.interval.ms": "metadata.max.age.ms",
    }
)
