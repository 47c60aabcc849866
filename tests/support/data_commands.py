"""Kafka's command and ours of the same name, one after the other, for tests that compare what they do."""

from __future__ import annotations

import importlib
import io
import sys
from typing import NamedTuple

from kafka_process import run_tool

TOOLS = "org.apache.kafka.tools"
JAVA_CLASSES = {
    "console_producer": f"{TOOLS}.ConsoleProducer",
    "console_consumer": f"{TOOLS}.consumer.ConsoleConsumer",
    "producer_perf_test": f"{TOOLS}.ProducerPerformance",
    "consumer_perf_test": f"{TOOLS}.ConsumerPerformance",
    "verifiable_producer": f"{TOOLS}.VerifiableProducer",
    "verifiable_consumer": f"{TOOLS}.VerifiableConsumer",
    "e2e_latency": f"{TOOLS}.EndToEndLatency",
}


class Done(NamedTuple):
    status: int
    out: str
    err: str


def kafkas(command: str, *words: str, stdin: str = "") -> Done:
    done = run_tool(JAVA_CLASSES[command], *words, stdin=stdin, errors="surrogateescape")
    return Done(done.returncode, done.stdout, done.stderr)


def ours(command: str, *words: str, stdin: str = "") -> Done:
    """In this process, with stdin, stdout and stderr of its own."""
    streams = sys.stdin, sys.stdout, sys.stderr
    sys.stdin, sys.stdout, sys.stderr = (
        _text(content) for content in (stdin.encode("utf-8", "surrogateescape"), b"", b"")
    )
    try:
        status = importlib.import_module(f"barnabas.cli.kafka.{command}").main(list(words))
        out, err = sys.stdout, sys.stderr
        return Done(status, _content(out), _content(err))
    finally:
        sys.stdin, sys.stdout, sys.stderr = streams


def _text(content: bytes) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(content), encoding="utf-8", write_through=True)


def _content(stream: io.TextIOBase) -> str:
    assert isinstance(stream, io.TextIOWrapper)
    stream.flush()
    raw = stream.buffer
    assert isinstance(raw, io.BytesIO)
    return raw.getvalue().decode("utf-8", "surrogateescape")
