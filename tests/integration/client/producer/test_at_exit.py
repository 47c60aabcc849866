"""A program that ends without closing its producer: what it sent arrives, or it is told what did not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from confluent import read_partition
from faulty_proxy import FaultyProxy

SOURCE = Path(__file__).parents[4] / "src"
PROGRAM = """
import sys
from barnabas import Producer

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
