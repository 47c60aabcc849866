"""A broker as a service: `barnabas server start --daemon`, stop, status, and Kafka's two scripts."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from barnabas_process import READY_LINE, SOURCES
from eventually import eventually
from raw_client import RawClient

from barnabas import __version__
from barnabas.cli.pid_file import look_at

LISTEN = ("--listen", "127.0.0.1:0", "--data-dir", "data")
HERE = ("--data-dir", "data")


class Shell:
    """Commands in one directory; what they have started is ended with the test."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def run(self, *words: str, module: str = "barnabas", **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", module, *words],
            cwd=self.directory,
            env=os.environ | {"PYTHONPATH": str(SOURCES)} | environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def server(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self.run("server", *words)

    def pid(self, file: str = "data/barnabas.pid") -> int:
        found = look_at(self.directory / file)
        assert found.running and found.pid is not None
        return found.pid


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    yield Shell(tmp_path)
    for path in tmp_path.rglob("*.pid"):
        found = look_at(path)
        if found.running and found.pid is not None:
            os.kill(found.pid, signal.SIGKILL)


def test_start_status_stop(shell: Shell, tmp_path: Path) -> None:
    done = shell.server("status", *HERE)
    assert (done.returncode, done.stdout) == (3, "not running (no data/barnabas.pid)\n")

    done = shell.server("start", "--daemon", *LISTEN)
    assert done.returncode == 0, done.stderr
    pid = shell.pid()
    first, ready = done.stdout.splitlines()
    assert first == f"barnabas server: started as pid {pid}, output in data/barnabas.log"
    match = READY_LINE.fullmatch(ready)
    assert match is not None
    with RawClient(match[2]) as client:
        client.create_topic("t")

    done = shell.server("status", *HERE)
    assert (done.returncode, done.stdout) == (0, f"running, pid {pid} (data/barnabas.pid)\n")
    done = shell.server("status", *HERE, "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout) == {"state": "running", "pid": pid, "pid_file": "data/barnabas.pid"}

    done = shell.server("stop", *HERE)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"stopped, pid {pid}\n", "")
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()
    printed = (tmp_path / "data" / "barnabas.log").read_text().splitlines()
    assert ready in printed and printed[-1] == f"barnabas {__version__} stopped cleanly (node 0, {match[2]})"
    assert shell.server("status", *HERE).returncode == 3
    done = shell.server("stop", *HERE)
    assert (done.returncode, done.stdout) == (1, "") and "no broker is running here" in done.stderr


def test_a_broker_in_the_foreground_has_a_pid_file_too(shell: Shell, tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "barnabas", "server", "start", *LISTEN, "--pid-file", "run.pid"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(SOURCES)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as server:
        assert server.stdout is not None and READY_LINE.match(server.stdout.readline())
        assert shell.pid("run.pid") == server.pid
        assert shell.server("stop", "--pid-file", "run.pid").returncode == 0
        assert server.wait(30) == 0


def test_the_pid_file_of_a_killed_broker(shell: Shell) -> None:
    assert shell.server("start", "--daemon", *LISTEN).returncode == 0
    pid = shell.pid()
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: not look_at(shell.directory / "data" / "barnabas.pid").running)
    done = shell.server("status", *HERE)
    assert done.returncode == 1 and f"left behind by pid {pid}" in done.stdout
    (shell.directory / "data" / "barnabas.pid").write_text(f"{os.getpid()}\n")  # the number is in use again
    done = shell.server("stop", *HERE)
    assert done.returncode == 1 and "left behind" in done.stderr
    assert shell.server("start", "--daemon", *LISTEN).returncode == 0
    assert shell.server("stop", *HERE).returncode == 0


def test_a_daemon_that_cannot_start_says_why(shell: Shell) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        address = f"127.0.0.1:{other.getsockname()[1]}"
        done = shell.server("start", "--daemon", "--listen", address, *HERE)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"barnabas server: cannot listen on {address}: Address already in use" in done.stderr
    assert shell.server("status", *HERE).returncode == 3
    done = shell.server("start", "--daemon", "--set", "num.partitions=0")
    assert (done.returncode, done.stdout) == (2, "") and "num.partitions" in done.stderr
    done = shell.server("stop", "--set", "num.partitions=0")
    assert done.returncode == 2 and "num.partitions" in done.stderr


def test_a_second_daemon_on_the_same_directory(shell: Shell) -> None:
    assert shell.server("start", "--daemon", *LISTEN).returncode == 0
    done = shell.server("start", "--daemon", *LISTEN)
    assert done.returncode == 1 and f"in use by a running broker (pid {shell.pid()})" in done.stderr
    assert shell.server("stop", *HERE).returncode == 0


def test_stop_does_not_wait_for_ever(shell: Shell) -> None:
    assert shell.server("start", "--daemon", *LISTEN).returncode == 0
    pid = shell.pid()
    os.kill(pid, signal.SIGSTOP)
    done = shell.server("stop", *HERE, "--timeout", "0.2")
    assert done.returncode == 1 and f"pid {pid} is still stopping after 0.2 s" in done.stderr
    os.kill(pid, signal.SIGCONT)


def test_kafkas_scripts(shell: Shell, tmp_path: Path) -> None:
    """With a node id that nobody else has: the script stops every broker of the machine otherwise."""
    node = str(random.randrange(1_000_000, 2_000_000_000))
    properties = tmp_path / "server.properties"
    properties.write_text(f"node.id={node}\nlisteners=PLAINTEXT://127.0.0.1:0\nlog.dirs=data\nnum.partitions=2\n")
    start, stop = "barnabas.cli.kafka.server_start", "barnabas.cli.kafka.server_stop"
    done = shell.run("-daemon", "server.properties", "--override", "num.partitions=5", module=start)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    pid = shell.pid()
    printed = (tmp_path / "data" / "kafkaServer.out").read_text()
    match = READY_LINE.search(printed)
    assert match is not None and match[3] == node
    done = shell.run("--node-id", "2000000001", module=stop)
    assert (done.returncode, done.stdout) == (1, "No kafka server to stop\n")
    assert shell.pid() == pid
    done = shell.run("--node-id", node, module=stop)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    eventually(lambda: not look_at(tmp_path / "data" / "barnabas.pid").exists)
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()


def test_the_output_of_kafkas_daemon_goes_where_log_dir_says(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "server.properties").write_text("listeners=PLAINTEXT://127.0.0.1:0\nlog.dirs=data\n")
    done = shell.run("-daemon", "server.properties", module="barnabas.cli.kafka.server_start", LOG_DIR="logs")
    assert done.returncode == 0
    assert READY_LINE.search((tmp_path / "logs" / "kafkaServer.out").read_text())
    assert shell.server("stop", "--config", "server.properties").returncode == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "USAGE: kafka-server-start.sh [-daemon] server.properties [--override property=value]*"),
        (("-daemon",), "USAGE: "),
        (("nope.properties",), "cannot read nope.properties"),
        (("server.properties", "more"), "Found non argument parameters: more"),
        (("server.properties", "--override", "num.partitions=0"), "num.partitions"),
        (("server.properties", "--override", "alone"), "alone"),
    ],
)
def test_wrong_words_for_kafkas_script(shell: Shell, tmp_path: Path, words: tuple[str, ...], says: str) -> None:
    (tmp_path / "server.properties").write_text("listeners=PLAINTEXT://127.0.0.1:0\nlog.dirs=data\n")
    done = shell.run(*words, module="barnabas.cli.kafka.server_start")
    assert (done.returncode, done.stdout) == (1, "") and says in done.stderr
    assert not (tmp_path / "data").exists()
