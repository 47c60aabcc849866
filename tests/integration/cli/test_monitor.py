"""`barnabas monitor` as a process: one picture for a script, and live in a terminal with keys."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys
from collections.abc import Iterator

import pytest

from barnabas import Consumer, Producer
from barnabas.testing import Broker

COMMAND = [sys.executable, "-m", "barnabas", "monitor"]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        broker.create_topic("orders", 2)
        broker.create_topic("bills", 1)
        with Producer(broker.bootstrap) as producer:
            for _ in range(100):
                producer.send("orders", b"x", partition=0)
            producer.flush()
        with Consumer(broker.bootstrap, group_id="billing") as consumer:
            consumer.commit({("orders", 0): 60})
        yield broker


def test_one_picture_for_a_script(broker: Broker) -> None:
    words = [*COMMAND, "-b", broker.bootstrap, "--once", "--json"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    found = json.loads(done.stdout)
    assert (done.returncode, found["error"], found["topics_count"], found["lag"]) == (0, None, 2, 40)
    assert [(each["name"], each["records"], each["lag"]) for each in found["topics"]] == [
        ("bills", 0, 0),
        ("orders", 100, 40),
    ]
    (group,) = found["groups"]
    assert (group["name"], group["lag"], group["topics"]) == ("billing", 40, ["orders"]) and group["lag_seconds"] > 0
    assert found["brokers"][0]["size_bytes"] > 0


def test_a_cluster_that_is_not_there(broker: Broker) -> None:
    done = subprocess.run(
        [*COMMAND, "-b", "127.0.0.1:1", "--once", "--timeout", "1"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("barnabas monitor: the cluster does not respond: ") and done.stderr.count("\n") == 1


def test_live_in_a_terminal(broker: Broker) -> None:
    control, terminal = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "100", "LINES": "30", "PYTHONIOENCODING": "utf-8"}
    process = subprocess.Popen(
        [*COMMAND, "-b", broker.bootstrap, "--interval", "0.1"],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env=environment,
        start_new_session=True,
    )
    os.close(terminal)
    seen = ""

    def until(pattern: str) -> None:
        nonlocal seen
        while not re.search(pattern, seen):
            if select.select([control], [], [], 120)[0]:
                seen += os.read(control, 65_536).decode(errors="replace")
            else:
                raise AssertionError(f"no {pattern} in {seen!r}")
        seen = ""

    try:
        until(r"TOPICS  2, by name[\s\S]*orders[\s\S]*40")
        os.write(control, b"/bil\r")
        until("TOPICS  1, by name   filter: bil")
        os.write(control, b"\t\x1b")
        until(r"GROUPS  1[\s\S]*billing")
        os.write(control, b"q")
        assert process.wait(120) == 0
        while select.select([control], [], [], 0)[0]:
            try:
                seen += os.read(control, 65_536).decode(errors="replace")
            except OSError:
                break
        assert seen.endswith("\x1b[?25h\x1b[?1049l"), "the terminal is as it was"
    finally:
        process.kill()
        process.wait()
        os.close(control)
