"""The sensors of the demo: a small fleet of MQTT clients that publish readings into `ods_base_log`.

Each sensor is a connection of its own and publishes with QoS 1 to `sensors/ID/reading`, which the broker's rule maps to
the topic. A reading is an event of the warehouse, so it goes through the pipeline and its check like those of apps.
"""

import contextlib
import json
import random
import socket
import threading
import time
from typing import Final

from barnabas.mqtt.codec import decode, encode
from barnabas.mqtt.packet_reader import packet_bytes
from barnabas.mqtt.packets import V311, Connack, Connect, Disconnect, Packet, Publish
from barnabas.pipeline.split import LOG_TOPIC

FLEET: Final = 5
INTERVAL_S: Final = 0.5
TIMEOUT_S: Final = 30.0
RULES: Final = f"sensors/# -> {LOG_TOPIC}"


def free_port(host: str) -> int:
    """Of this moment: a broker that cannot have it says so."""
    with contextlib.closing(socket.create_server((host, 0))) as listening:
        return int(listening.getsockname()[1])


def reading(number: int, timestamp_ms: int, value: float) -> bytes:
    """As the page log has it: what was looked at is the value."""
    name = f"sensor-{number}"
    common = {"mid": name, "uid": name, "ar": "370000", "ch": "mqtt", "is_new": "0", "md": "thermometer", "os": "none"}
    page = {"page_id": "reading", "item": f"{value:.1f}", "item_type": "celsius", "during_time": 0}
    event = {"common": common | {"vc": "1", "ba": "Barnabas"}, "page": page, "ts": timestamp_ms}
    return json.dumps(event, separators=(",", ":")).encode()


class Sensors:
    """Runs in a thread of its own from `start` until `stop`. Readings that could not be sent are not counted."""

    def __init__(self, host: str, port: int, fleet: int = FLEET, interval_s: float = INTERVAL_S) -> None:
        self._address = host, port
        self._fleet = fleet
        self._interval_s = interval_s
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sensors", daemon=True)
        self.acknowledged = 0
        self.error: OSError | None = None

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """All that was sent is acknowledged afterwards."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        try:
            with contextlib.ExitStack() as stack:
                sensors = [stack.enter_context(Sensor(self._address, number)) for number in range(self._fleet)]
                while not self._stopping.wait(self._interval_s):
                    for sensor in sensors:
                        sensor.publish()
                        self.acknowledged += 1
        except OSError as error:
            self.error = error


class Sensor:
    def __init__(self, address: tuple[str, int], number: int) -> None:
        self._number = number
        self._random = random.Random(number)
        self._value = 20.0
        self._packet_id = 0
        self._data = b""
        self._socket = socket.create_connection(address, timeout=TIMEOUT_S)

    def __enter__(self) -> "Sensor":
        self._send(Connect(client_id=f"sensor-{self._number}", version=V311, keep_alive=60))
        response = self._receive()
        if not isinstance(response, Connack) or response.code:
            raise ConnectionRefusedError(f"the broker refused sensor {self._number}: {response}")
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._send(Disconnect())
        self._socket.close()

    def publish(self) -> None:
        """One reading, acknowledged."""
        self._value += self._random.uniform(-0.5, 0.5)
        self._packet_id = self._packet_id % 65535 + 1
        payload = reading(self._number, int(time.time() * 1000), self._value)
        topic = f"sensors/{self._number}/reading"
        self._send(Publish(topic=topic, payload=payload, qos=1, packet_id=self._packet_id))
        self._receive()

    def _send(self, packet: Packet) -> None:
        self._socket.sendall(encode(packet, V311))

    def _receive(self) -> Packet:
        while not (size := packet_bytes(memoryview(self._data))) or len(self._data) < size:
            data = self._socket.recv(4096)
            if not data:
                raise ConnectionResetError("the broker closed the connection of a sensor")
            self._data += data
        packet, self._data = self._data[:size], self._data[size:]
        return decode(memoryview(packet), V311)
