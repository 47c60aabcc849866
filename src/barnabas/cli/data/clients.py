"""Producers and consumers of a command, made from its options.

Imports the clients: only a command that runs imports this.
"""

import argparse
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from barnabas.cli.connection import client_config
from barnabas.cli.log_level import log_level
from barnabas.client.consumer import Consumer
from barnabas.client.producer import Producer


@contextmanager
def producer_client(options: argparse.Namespace, own: Mapping[str, object]) -> Iterator[Producer]:
    """`own` are options by Kafka's names that the command sets; None is not set. -X goes before them."""
    config = _config(options, own)
    if options.timeout is not None:
        config.setdefault("max.block.ms", int(options.timeout * 1000))
    with log_level(logging.INFO if options.verbose else None), Producer.from_config(config) as producer:
        yield producer


@contextmanager
def consumer_client(options: argparse.Namespace, own: Mapping[str, object]) -> Iterator[Consumer]:
    config = _config(options, own)
    if options.timeout is not None:
        config.setdefault("default.api.timeout.ms", int(options.timeout * 1000))
    with log_level(logging.INFO if options.verbose else None), Consumer.from_config(config) as consumer:
        yield consumer


def _config(options: argparse.Namespace, own: Mapping[str, object]) -> dict[str, object]:
    return {**{key: value for key, value in own.items() if value is not None}, **client_config(options)}
