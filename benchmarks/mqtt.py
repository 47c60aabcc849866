"""`python -m benchmarks.mqtt [--rounds N]`: MQTT beside mosquitto and amqtt, in turns, in one run.

A client publishes messages of 100 bytes as fast as the broker takes them, encoded before: QoS 0 (a message with QoS 1
at the end shows that all were taken) and QoS 1 with up to 500 unacknowledged. Rates are by the wall clock and per
second of processor time of the broker, since others may use the machine. Then 5,000 connections do nothing.
Barnabas stores what mosquitto and amqtt only forward; here nobody subscribes.
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

from mqtt_process import Mosquitto, MqttBarnabas, has_mosquitto, wait_for_port
from server_process import free_port

from barnabas.mqtt.codec import encode
from barnabas.mqtt.packets import V311, Connect, Publish

PAYLOAD = b"x" * 100
WINDOW = 500
TICKS = os.sysconf("SC_CLK_TCK")
AMQTT = """
import asyncio, logging, sys
from amqtt.broker import Broker
logging.disable(logging.CRITICAL)
async def main():
    config = {"listeners": {"default": {"type": "tcp", "bind": "127.0.0.1:" + sys.argv[1], "max_connections": 10000}},
              "plugins": {"amqtt.plugins.authentication.AnonymousAuthPlugin": {"allow_anonymous": True}}}
    broker = Broker(config)
    await broker.start()
    await asyncio.Event().wait()
asyncio.run(main())
"""


class Amqtt:
    def __init__(self, directory: Path) -> None:
        self.mqtt_port = free_port()
        self.process: Any = None

    def start(self) -> Amqtt:
        command = [sys.executable, "-c", AMQTT, str(self.mqtt_port)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for_port(self.mqtt_port, self.process)
        return self

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()

    @property
    def pid(self) -> int:
        return int(self.process.pid)


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def resident_mb(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def connect(port: int, client_id: str) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", port), timeout=120)
    client.sendall(encode(Connect(client_id=client_id, version=V311, keep_alive=3600), V311))
    data = b""
    while len(data) < 4:
        data += client.recv(4 - len(data))
    assert data[3] == 0, data
    return client


def read_acks(client: socket.socket, wanted: int) -> int:
    """PUBACKs are four bytes each."""
    got = 0
    while got < wanted * 4:
        data = client.recv(65536)
        assert data, "the broker closed the connection"
        got += len(data)
    return got // 4


def publish_0(port: int, count: int) -> None:
    client = connect(port, "bench0")
    packet = encode(Publish(topic="bench/zero", payload=PAYLOAD), V311)
    chunk = packet * 500
    for _ in range(count // 500):
        client.sendall(chunk)
    client.sendall(encode(Publish(topic="bench/zero", payload=b"end", qos=1, packet_id=1), V311))
    read_acks(client, 1)
    client.close()


def publish_1(port: int, count: int) -> None:
    client = connect(port, "bench1")
    half = WINDOW // 2
    chunks = [
        b"".join(encode(Publish(topic="bench/one", payload=PAYLOAD, qos=1, packet_id=n), V311) for n in ids)
        for ids in (range(1, half + 1), range(half + 1, WINDOW + 1))
    ]
    client.sendall(chunks[0])
    sent, unread = half, 0
    turn = 1
    while sent < count:
        client.sendall(chunks[turn])
        turn ^= 1
        sent += half
        unread = read_acks(client, half - unread) - (half - unread)
    read_acks(client, half - unread)
    client.close()


def idle(broker: Any, count: int, seconds: float) -> tuple[float, float]:
    """(resident MB, share of a core) with that many connections that do nothing."""
    clients = [connect(broker.mqtt_port, f"idle-{number}") for number in range(count)]
    time.sleep(2)
    before, began = cpu_seconds(broker.pid), time.monotonic()
    time.sleep(seconds)
    share = (cpu_seconds(broker.pid) - before) / (time.monotonic() - began)
    memory = resident_mb(broker.pid)
    for client in clients:
        client.close()
    return memory, share


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mqtt", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--messages", type=int, default=50_000)
    parser.add_argument("--idle", type=int, default=5_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="barnabas-mqtt-") as directory:
        brokers: dict[str, Any] = {"barnabas": MqttBarnabas(Path(directory, "barnabas")).start()}
        if has_mosquitto():
            brokers["mosquitto"] = Mosquitto(Path(directory, "mosquitto")).start()
        if find_spec("amqtt") is not None:  # pip install amqtt
            brokers["amqtt"] = Amqtt(Path(directory)).start()
        try:
            measure(brokers, arguments)
        finally:
            for broker in brokers.values():
                broker.stop()


def measure(brokers: dict[str, Any], arguments: argparse.Namespace) -> None:
    rates: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for number in range(arguments.rounds + 1):
        for name, broker in brokers.items():
            count = arguments.messages // 20 if name == "amqtt" else arguments.messages
            count = max(500, count // 500 * 500)
            for what, publish in (("QoS 0", publish_0), ("QoS 1", publish_1)):
                cpu, began = cpu_seconds(broker.pid), time.monotonic()
                publish(broker.mqtt_port, count)
                taken, used = time.monotonic() - began, cpu_seconds(broker.pid) - cpu
                if number:  # the first one warms up
                    rates.setdefault((what, name), []).append((count / taken, count / max(used, 0.01)))
    print(f"load of the machine: {os.getloadavg()[0]:.1f}")
    print(f"{'':8}{'':12}{'messages/s':>14}{'per CPU second':>16}")
    for (what, name), found in sorted(rates.items()):
        wall, cpu = (median(each) for each in zip(*found, strict=True))
        print(f"{what:8}{name:12}{wall:14,.0f}{cpu:16,.0f}")
    if arguments.idle:
        memory, share = idle(brokers["barnabas"], arguments.idle, 10)
        print(f"{arguments.idle} idle connections: {memory:.0f} MB, {share:.2%} of a core")


if __name__ == "__main__":
    main()
