"""Producers and consumers of a command, made from its options, and how they end.

Imports the clients: only a command that runs imports this.
"""

import argparse
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from barnabas.cli.command import key_values
from barnabas.cli.connection import NOTHING, client_config
from barnabas.cli.log_level import log_level
from barnabas.client.consumer import Consumer
from barnabas.client.options import ConsumerOptions, ProducerOptions
from barnabas.client.producer import Producer

CLOSE_S = 5.0
"""How long a consumer tries to commit and to leave its group at the end of a command."""
Words = Mapping[str, str | None]


@contextmanager
def producer_client(options: argparse.Namespace, own: Words, defaults: Words = NOTHING) -> Iterator[Producer]:
    """`own` is what the command's flags say, `defaults` what it takes unless somebody says otherwise: both by Kafka's
    names, None is not set."""
    config = client_config(options, ProducerOptions, own, defaults)
    if options.timeout is not None:
        typed = key_values(options.client_options, "-X")
        config.update((key, value) for key, value in _patience(config, options.timeout).items() if key not in typed)
    with log_level(logging.INFO if options.verbose else None), producer_of(config) as producer:
        yield producer


@contextmanager
def consumer_client(options: argparse.Namespace, own: Words, defaults: Words = NOTHING) -> Iterator[Consumer]:
    if options.timeout is not None:
        own = {"default.api.timeout.ms": str(int(options.timeout * 1000)), **own}
    config = client_config(options, ConsumerOptions, own, defaults)
    with log_level(logging.INFO if options.verbose else None), Consumer.from_config(config) as consumer:
        try:
            yield consumer
        except KeyboardInterrupt:
            consumer.close(0, commit=False)
            raise


@contextmanager
def producer_of(config: Mapping[str, str]) -> Iterator[Producer]:
    """At the end all is sent. Ctrl-C ends it at once, also while that is waited for: what is on its way then fails."""
    producer = Producer.from_config(config)
    try:
        try:
            yield producer
        except Exception:
            producer.flush()
            raise
        # Not left to close(), which cannot be hurried once it has begun.
        producer.flush()
    except KeyboardInterrupt:
        producer.close(0)
        raise
    finally:
        producer.close()


def _patience(config: Mapping[str, str], timeout_s: float) -> dict[str, str]:
    """For a producer that gives up on a record after this time, wherever it is by then.

    A delivery cannot take less than the wait for a batch and one request together: both give way.
    """
    timeout_ms = int(timeout_s * 1000)
    patience = {"max.block.ms": timeout_ms, "delivery.timeout.ms": timeout_ms}
    left_ms = timeout_ms
    for name, most_ms in (("linger.ms", timeout_ms // 2), ("request.timeout.ms", timeout_ms)):
        try:
            wanted_ms = int(config.get(name, ProducerOptions.settings[name].default))
        except ValueError:
            continue  # the producer says what is wrong with it
        patience[name] = min(wanted_ms, most_ms, left_ms)
        left_ms -= patience[name]
    return {name: str(value) for name, value in patience.items()}
