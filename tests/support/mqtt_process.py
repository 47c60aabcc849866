"""Brokers for MQTT as processes of their own: Barnabas, and mosquitto as the one to compare with."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Self

from barnabas_process import BarnabasProcess
from server_process import free_port

MOSQUITTO = shutil.which("mosquitto") or "/usr/sbin/mosquitto"
NO_MOSQUITTO = "needs mosquitto and mosquitto_pub (apt-get install mosquitto mosquitto-clients)"


def has_mosquitto() -> bool:
    return Path(MOSQUITTO).exists() and shutil.which("mosquitto_pub") is not None


class MqttBarnabas(BarnabasProcess):
    def __init__(self, directory: Path, settings: dict[str, str] | None = None) -> None:
        super().__init__(directory, settings=settings)
        self.mqtt_port = free_port()
        listeners = f"PLAINTEXT://127.0.0.1:{self.port},MQTT://127.0.0.1:{self.mqtt_port}"
        where = self.command.index("--listen")
        self.command[where : where + 2] = ["--set", f"listeners={listeners}"]


class Mosquitto:
    """With sessions and retained messages on disk, as a service would have them, but never one."""

    def __init__(self, directory: Path, command: list[str] | None = None) -> None:
        self.mqtt_port = free_port()
        self._directory = directory
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> Self:
        self._directory.mkdir(parents=True, exist_ok=True)
        config = self._directory / "mosquitto.conf"
        config.write_text(
            f"listener {self.mqtt_port} 127.0.0.1\nallow_anonymous true\nmax_inflight_messages 1000\n"
            "max_queued_messages 100000\nlog_type none\n"
        )
        self.process = subprocess.Popen(
            [MOSQUITTO, "-c", str(config)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        wait_for_port(self.mqtt_port, self.process)
        return self

    def stop(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait()
            self.process = None

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


def wait_for_port(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
            return
        except OSError:
            if time.monotonic() > deadline or process.poll() is not None:
                raise
            time.sleep(0.02)
