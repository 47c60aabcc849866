"""A program that ends or drops its producer unclosed: what it sent arrives, or a warning names what did not."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path

import pytest
from confluent import read_partition
from faulty_proxy import FaultyProxy

from barnabas import Producer

SOURCE = Path(__file__).parents[4] / "src"
PROGRAM = """
import sys
from barnabas import Producer
from barnabas.client.producer import at_exit

if sys.argv[3] == "later":
    at_exit.PATIENCE_S = 0.5
producer = Producer(sys.argv[1], linger_ms=10_000, delivery_timeout_ms=60_000)
producer.send(sys.argv[2], b"0")
if sys.argv[3] == "later":
    producer.flush()
    print("ready", flush=True)
    sys.stdin.readline()
for number in range(1, 500):
    producer.send(sys.argv[2], b"%d" % number)
"""


def start(bootstrap: str, topic: str, when: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    arguments = [sys.executable, "-c", PROGRAM, bootstrap, topic, when]
    return subprocess.Popen(arguments, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env={"PYTHONPATH": str(SOURCE)})


def test_what_was_buffered_is_sent(bootstrap: str, topic: str) -> None:
    program = start(bootstrap, topic, "now")
    _, errors = program.communicate(timeout=60)
    assert program.returncode == 0 and "has 500 records to send: call close()" in errors, errors
    values = [message.value() for message in read_partition(bootstrap, topic, 500)]
    assert values == [b"%d" % number for number in range(500)]


def test_what_cannot_be_sent_is_named(proxy: FaultyProxy, topic: str) -> None:
    program = start(proxy.bootstrap, topic, "later")
    assert program.stdin is not None and program.stdout is not None
    program.stdout.readline()
    proxy.black_hole()
    _, errors = program.communicate("go\n", timeout=60)
    assert program.returncode == 0 and "499 records of a producer that was not closed were not delivered" in errors, (
        errors
    )


def test_what_was_buffered_is_sent_when_the_producer_is_collected(bootstrap: str, topic: str) -> None:
    producer = Producer(bootstrap, linger_ms=100_000, delivery_timeout_ms=200_000)
    deliveries = [producer.send(topic, b"%d" % number) for number in range(500)]
    with pytest.warns(ResourceWarning, match="unclosed Producer"):
        del producer
        gc.collect()
    assert [delivery.result(60).offset for delivery in deliveries] == list(range(500))


def test_what_cannot_be_sent_after_that_is_named(
    proxy: FaultyProxy, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    producer = Producer(proxy.bootstrap, linger_ms=0, request_timeout_ms=500, delivery_timeout_ms=5000)
    producer.send(topic, b"arrives").result(60)
    proxy.black_hole()
    producer.send(topic, b"does not")
    thread = producer._core.core.io._thread
    with pytest.warns(ResourceWarning, match="unclosed Producer"):
        del producer
        gc.collect()
    thread.join(60)
    assert not thread.is_alive()
    assert "1 records of a producer that was not closed were not delivered" in caplog.text
