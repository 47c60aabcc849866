"""A broker as a real operating-system process: start, wait until it responds, stop, kill, and what it costs.

The tests and the benchmarks drive Barnabas and Apache Kafka through this one class, so that both are started, judged
ready and measured in the same way. It never looks inside a broker: readiness is an responded to Metadata request.
"""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import time
from pathlib import Path
from typing import Self

START_SECONDS = 120.0
"""Far more than a start takes, also on a busy machine."""
CLOCK_TICKS = os.sysconf("SC_CLK_TCK")
PROCESS_CPU_CLOCK = 2
"""With the pid, the number of another process's CPU clock, as clock_getcpuclockid makes it."""
METADATA_V1_NO_TOPICS = struct.pack(">hhih5si", 3, 1, 7, 5, b"ready", 0)


class ServerFailed(Exception):
    """The process ended, or never served; the message carries the end of its output."""


class ServerProcess:
    def __init__(self, command: list[str], directory: Path, host: str, port: int, env: dict[str, str] | None = None):
        self.command = command
        self.directory = directory
        self.host = host
        self.port = port
        self.env = env
        self.output = directory / "server.out"
        self.process: subprocess.Popen[bytes] | None = None
        self.start_seconds = 0.0
        self._started = 0.0
        self._output_start = 0

    @property
    def bootstrap(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def pid(self) -> int:
        assert self.process is not None, "not started"
        return self.process.pid

    def start(self, timeout: float = START_SECONDS) -> Self:
        """Start it and return once a client can get metadata; `start_seconds` says how long that took."""
        self.launch()
        return self.wait_until_ready(timeout)

    def launch(self) -> None:
        """Start it and do not wait: nodes of a cluster need each other to become ready."""
        self.directory.mkdir(parents=True, exist_ok=True)
        self._started = time.perf_counter()
        with self.output.open("ab") as output:
            self._output_start = output.tell()
            self.process = subprocess.Popen(
                self.command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=self.env
            )

    def wait_until_ready(self, timeout: float = START_SECONDS) -> Self:
        process, started = self.process, self._started
        assert process is not None, "not started"
        while not answers_metadata(self.host, self.port):
            if process.poll() is not None:
                raise ServerFailed(f"exited with {process.returncode} before serving:\n{self.output_tail()}")
            if time.perf_counter() - started > timeout:
                self.kill()
                raise ServerFailed(f"no metadata within {timeout} s:\n{self.output_tail()}")
            time.sleep(0.005)
        self.start_seconds = time.perf_counter() - started
        return self

    def stop(self, timeout: float = 60.0) -> int:
        """SIGTERM and wait: the exit status of a clean stop."""
        return self._end(signal.SIGTERM, timeout)

    def kill(self) -> int:
        """kill -9: nothing in the process gets a chance to tidy up."""
        return self._end(signal.SIGKILL, 60.0)

    def _end(self, number: signal.Signals, timeout: float) -> int:
        process = self.process
        if process is None:
            return 0
        if process.poll() is None:
            process.send_signal(number)
        try:
            status = process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise ServerFailed(f"still running {timeout} s after {number.name}:\n{self.output_tail()}") from None
        self.process = None
        return status

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def cpu_seconds(self) -> float:
        """User and system time of all its threads since it started, to the nanosecond."""
        return time.clock_gettime((~self.pid << 3) | PROCESS_CPU_CLOCK)

    def resident_bytes(self) -> int:
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise ServerFailed("no VmRSS: the process has ended")

    def printed(self) -> str:
        """What it wrote since its last start."""
        return self.output.read_bytes()[self._output_start :].decode(errors="replace") if self.output.exists() else ""

    def output_tail(self, lines: int = 30) -> str:
        return "\n".join(self.printed().splitlines()[-lines:])

    def __enter__(self) -> Self:
        return self if self.alive else self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def answers_metadata(host: str, port: int, timeout: float = 2.0) -> bool:
    """Whether a Metadata request gets a response with at least one broker."""
    try:
        with socket.create_connection((host, port), timeout) as connection:
            connection.sendall(struct.pack(">i", len(METADATA_V1_NO_TOPICS)) + METADATA_V1_NO_TOPICS)
            response = b""
            while len(response) < 12:
                received = connection.recv(12 - len(response))
                if not received:
                    return False
                response += received
    except OSError:
        return False
    brokers: int = struct.unpack_from(">i", response, 8)[0]
    return brokers > 0
