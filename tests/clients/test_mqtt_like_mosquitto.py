"""The same scripts against mosquitto and Barnabas: what clients see is equal, message by message.

The clients are paho-mqtt, aiomqtt, mosquitto_pub and mosquitto_sub, and mqtt.js. Mosquitto keeps the order of all
messages; Barnabas keeps that of each MQTT topic, so messages are compared topic by topic. Where the
specification leaves a choice (copies for subscriptions that overlap, filters that are none) nothing is compared.
"""

from __future__ import annotations

import asyncio
import json
import queue
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from mqtt_client import MqttClient
from mqtt_process import NO_MOSQUITTO, Mosquitto, has_mosquitto

from barnabas.mqtt.packets import V5, V311, Ack, Connect, Disconnect, PacketType, Ping, Publish
from barnabas.testing import Broker

paho = pytest.importorskip("paho.mqtt.client", reason="needs paho-mqtt")
from paho.mqtt.packettypes import PacketTypes  # noqa: E402
from paho.mqtt.properties import Properties  # noqa: E402
from paho.mqtt.subscribeoptions import SubscribeOptions  # noqa: E402

pytestmark = pytest.mark.skipif(not has_mosquitto(), reason=NO_MOSQUITTO)
NODE_MODULES = Path(__file__).resolve().parents[2] / ".build/node/node_modules"
SECONDS = 60.0
Script = Callable[[int], Any]


@pytest.fixture(scope="module")
def ports(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, int]]:
    listeners = "PLAINTEXT://127.0.0.1:0,MQTT://127.0.0.1:0"
    with Mosquitto(tmp_path_factory.mktemp("mosquitto")) as mosquitto, Broker({"listeners": listeners}) as broker:
        yield mosquitto.mqtt_port, broker.mqtt_port


class Paho:
    """A client whose events come one by one."""

    def __init__(self, port: int, client_id: str, version: int, *, clean: bool = True, expiry: int = 0) -> None:
        self.version = version
        self.events: queue.Queue[tuple[str, Any]] = queue.Queue()
        v5 = version == V5
        api = paho.CallbackAPIVersion.VERSION2
        options = {} if v5 else {"clean_session": clean}
        self.client = paho.Client(api, client_id=client_id, protocol=version, **options)
        self.client.on_connect = lambda client, data, flags, code, properties: self.events.put(
            ("connected", (code.value, flags.session_present))
        )
        self.client.on_message = lambda client, data, message: self.events.put(("message", message))
        self.client.on_subscribe = lambda client, data, mid, codes, properties: self.events.put(
            ("subscribed", [code.value for code in codes])
        )
        self.client.on_publish = lambda client, data, mid, code, properties: self.events.put(("published", code.value))
        self._connect = {"clean_start": clean} if v5 else {}
        if v5 and expiry:
            properties = Properties(PacketTypes.CONNECT)
            properties.SessionExpiryInterval = expiry
            self._connect["properties"] = properties
        self._port = port
        self._early: list[Any] = []

    def connect(self) -> Any:
        self.client.connect("127.0.0.1", self._port, keepalive=60, **self._connect)
        self.client.loop_start()
        return self.next("connected")

    def next(self, kind: str) -> Any:
        """The next event of that kind; messages before it are kept for later."""
        if kind == "message" and self._early:
            return self._early.pop(0)
        while True:
            name, value = self.events.get(timeout=SECONDS)
            if name == kind:
                return value
            if name == "message":
                self._early.append(value)

    def subscribe(self, *filters: Any) -> Any:
        self.client.subscribe(list(filters))
        return self.next("subscribed")

    def publish(self, topic: str, payload: bytes, qos: int = 1, **options: Any) -> Any:
        self.client.publish(topic, payload, qos, **options)
        return self.next("published")

    def messages(self, count: int) -> dict[str, list[Any]]:
        """The next ones, by topic."""
        found: dict[str, list[Any]] = {}
        for _ in range(count):
            message = self.next("message")
            found.setdefault(message.topic, []).append(shown(message, self.version))
        return found

    def stop(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()


def shown(message: Any, version: int) -> Any:
    properties = message.properties.json() if version == V5 and message.properties is not None else {}
    return [message.payload.decode("latin-1"), message.qos, bool(message.retain), properties]


def every_qos(port: int, version: int) -> Any:
    reader, writer = Paho(port, "reader", version), Paho(port, "writer", version)
    seen = [reader.connect(), writer.connect()]
    seen.append(reader.subscribe(("q/+/a", 0), ("q/+/b", 1), ("q/2/c/#", 2), ("q/1/+/d", 2), ("end", 1)))
    for qos in (0, 1, 2):
        for level in ("a", "b", "c/d"):
            seen.append(writer.publish(f"q/{qos}/{level}", b"%d" % qos, qos))
            seen.append(writer.publish(f"q/{qos}/{level}", b"", qos))
    writer.publish("end", b"last")
    found = reader.messages(17)
    reader.stop()
    writer.stop()
    return seen, found


def retained(port: int, version: int) -> Any:
    writer = Paho(port, "writer", version)
    writer.connect()
    for name, payload in (("r/a", b"1"), ("r/a", b"2"), ("r/b", b"x"), ("r/b", b""), ("r/c/d", b"3"), ("end", b"last")):
        writer.publish(name, payload, 1, retain=True)
    found = []
    for number, filters in enumerate(([("r/#", 2)], [("r/+", 0)], [("r/a", 1), ("r/c/d", 1)], [("$SYS/nothing", 0)])):
        reader = Paho(port, f"reader-{number}", version)
        reader.connect()
        reader.subscribe(*filters)
        reader.subscribe(("end", 1))
        found.append(reader.messages((3, 2, 3, 1)[number]))
        reader.stop()
    writer.publish("end", b"", 1, retain=True)
    writer.stop()
    return found


def sessions(port: int, version: int) -> Any:
    writer = Paho(port, "writer", version)
    writer.connect()
    seen = []
    # In MQTT 5 a session that began clean may be kept.
    counts = (2, 2, 4, 2, 2) if version == V311 else (2, 4, 4, 2, 4)
    for clean, count in zip((True, False, False, True, False), counts, strict=True):
        reader = Paho(port, f"sleeper{version}", version, clean=clean, expiry=1000)
        seen.append(reader.connect())
        if not seen[-1][1]:
            seen.append(reader.subscribe(("s/#", 1), ("end", 1)))
        writer.publish("s/live", b"live")
        writer.publish("end", b"last")
        seen.append(reader.messages(count))
        reader.stop()
        for qos in (1, 2):
            writer.publish("s/away", b"%d" % qos, qos)
    reader = Paho(port, f"sleeper{version}", version, clean=True)
    reader.connect()
    reader.stop()
    writer.stop()
    return seen


def wills(port: int, version: int) -> Any:
    reader = Paho(port, "reader", version)
    reader.connect()
    reader.subscribe(("w/#", 2), ("end", 1))
    seen = []
    for number, is_clean_end in enumerate((True, False)):
        mortal = Paho(port, f"mortal-{number}", version)
        mortal.client.will_set(f"w/{number}", b"gone", qos=1)
        mortal.connect()
        if is_clean_end:
            mortal.stop()
        else:
            mortal.client._sock_close()
            mortal.client.loop_stop()
    seen.append(shown(reader.next("message"), version))
    reader.stop()
    return seen


def properties_5(port: int, version: int) -> Any:
    reader, writer = Paho(port, "reader", V5), Paho(port, "writer", V5)
    reader.connect()
    writer.connect()
    options = SubscribeOptions(qos=1, noLocal=True, retainAsPublished=True, retainHandling=2)
    identified = Properties(PacketTypes.SUBSCRIBE)
    identified.SubscriptionIdentifier = 7
    reader.client.subscribe([("p/#", options), ("end", SubscribeOptions(qos=1))], properties=identified)
    reader.next("subscribed")
    reader.publish("p/own", b"no local")
    message = Properties(PacketTypes.PUBLISH)
    message.UserProperty = [("one", "1"), ("one", "2"), ("zwei", "ä")]
    message.ContentType = "application/json"
    message.ResponseTopic = "answers/here"
    message.CorrelationData = b"\x00\xff"
    message.PayloadFormatIndicator = 1
    message.MessageExpiryInterval = 100_000
    writer.publish("p/a", b"{}", 1, properties=message, retain=True)
    alias = Properties(PacketTypes.PUBLISH)
    alias.TopicAlias = 1
    writer.publish("p/b", b"1", 1, properties=alias)
    writer.publish("", b"2", 1, properties=alias)
    writer.publish("end", b"last")
    found = reader.messages(4)
    writer.publish("p/a", b"", 1, retain=True)
    reader.stop()
    writer.stop()
    for values in found.values():
        for each in values:
            each[3].pop("MessageExpiryInterval", None)  # it has begun to run
    return found


def shared(port: int, version: int) -> Any:
    readers = [Paho(port, f"reader-{number}", version) for number in range(2)]
    for reader in readers:
        reader.connect()
        reader.subscribe(("$share/group/sh/+", 1), (f"end/{reader.client._client_id.decode()}", 1))
    writer = Paho(port, "writer", version)
    writer.connect()
    for number in range(20):
        writer.publish("sh/x", b"%d" % number)
    got: list[str] = []
    while len(got) < 20:
        for reader in readers:
            try:
                name, message = reader.events.get(timeout=0.05)
            except queue.Empty:
                continue
            if name == "message":
                got.append(message.payload.decode())
    for client in (*readers, writer):
        client.stop()
    return sorted(got)


def raw(port: int, version: int) -> Any:
    """Wrong packets, byte by byte, and whether the connection ends."""
    seen = []
    connect = Connect(client_id="raw", version=version)
    for wrong in (
        b"\xc0\x00",  # PINGREQ before CONNECT
        b"\x10\x00",
        b"\x10\x0c\x00\x04MQTX\x04\x02\x00\x3c\x00\x00",
        b"\x11\x0c\x00\x04MQTT\x04\x02\x00\x3c\x00\x00",
        b"\x00\x00",
        b"\xf0\x00" if version == V311 else b"\xf1\x00",
    ):
        client = MqttClient(port, version)
        client.send(wrong)
        client.read_to_end()
        seen.append("closed")
        client.close()
    for wrong in (
        [connect],
        [b"\x36\x05\x00\x01a\x00\x01"],
        [b"\x82\x02\x00\x01"],
        [b"\x80\x06\x00\x01\x00\x01a\x00"],
        [b"\x32\x06\x00\x02a#\x00\x01"],
        [b"\x30\x03\x00\x01\xff"],
        [b"\x20\x02\x00\x00"],
        [b"\xc0\xff\xff\xff\xff\x01"],
        [b"\x32\x05\x00\x01a\x00\x00"],
    ):
        client = MqttClient(port, version)
        assert client.connect("raw").code == 0
        client.send(*wrong)
        with suppress(OSError):  # it may be closed already
            client.send(Ping(PacketType.PINGREQ))
        packet = client.receive()
        while packet is not None and not isinstance(packet, (Disconnect, Ping)):
            packet = client.receive()
        seen.append(f"{wrong}: {'open' if isinstance(packet, Ping) else 'closed'}")
        client.close()
    client = MqttClient(port, version)
    client.connect("raw")
    client.send(Ack(type=PacketType.PUBREL, packet_id=77), Publish(topic="raw", payload=b"", qos=2, packet_id=5))
    answers = [client.expect(Ack) for _ in range(2)]
    seen += [f"{each.type.name} {each.packet_id}" for each in answers]
    client.send(Ack(type=PacketType.PUBACK, packet_id=99))
    client.nothing_more()
    client.close()
    return seen


PAHO_SCRIPTS: list[tuple[Callable[[int, int], Any], tuple[int, ...]]] = [
    (every_qos, (V311, V5)),
    (retained, (V311, V5)),
    (sessions, (V311, V5)),
    (wills, (V311, V5)),
    (properties_5, (V5,)),
    (shared, (V5,)),
    (raw, (V311, V5)),
]


@pytest.mark.parametrize(
    ("script", "version"), [(script, version) for script, versions in PAHO_SCRIPTS for version in versions]
)
def test_paho_sees_the_same(ports: tuple[int, int], script: Callable[[int, int], Any], version: int) -> None:
    mosquitto, barnabas = ports
    assert script(barnabas, version) == script(mosquitto, version)


def test_aiomqtt_sees_the_same(ports: tuple[int, int]) -> None:
    aiomqtt = pytest.importorskip("aiomqtt", reason="needs aiomqtt")

    async def script(port: int) -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {}
        async with aiomqtt.Client("127.0.0.1", port) as reader, aiomqtt.Client("127.0.0.1", port) as writer:
            await reader.subscribe("aio/#", qos=2)
            for number in range(20):
                await writer.publish(f"aio/{number % 3}", f"{number}", qos=number % 3)
            await writer.publish("aio/end", "end", qos=2)
            count = 0
            async for message in reader.messages:
                found.setdefault(str(message.topic), []).append((message.payload, message.qos))
                count += 1
                if count == 21:
                    return found
        return found

    mosquitto, barnabas = ports
    assert asyncio.run(script(barnabas)) == asyncio.run(script(mosquitto))


@pytest.mark.parametrize("version", ["mqttv311", "mqttv5"])
def test_mosquitto_s_commands_see_the_same(ports: tuple[int, int], version: str) -> None:
    def script(port: int) -> list[str]:
        def pub(*arguments: str) -> None:
            command = ["mosquitto_pub", "-h", "127.0.0.1", "-p", str(port), "-V", version, *arguments]
            subprocess.run(command, check=True, timeout=SECONDS)

        topic = f"cmd/{version}"
        pub("-t", f"{topic}/kept", "-m", "kept", "-r", "-q", "1")
        command = ["mosquitto_sub", "-h", "127.0.0.1", "-p", str(port), "-V", version, "-t", f"{topic}/#", "-q", "2"]
        # The retained message tells that the subscription is there.
        reader = subprocess.Popen([*command, "-C", "4", "-F", "%t %q %r %p"], stdout=subprocess.PIPE, text=True)
        assert reader.stdout is not None
        lines = [reader.stdout.readline()]
        for qos in "012":
            pub("-t", f"{topic}/x", "-m", f"message {qos}", "-q", qos)
        lines += reader.stdout.read().splitlines(keepends=True)
        assert reader.wait(SECONDS) == 0
        reader.stdout.close()
        pub("-t", f"{topic}/kept", "-n", "-r", "-q", "1")
        return lines

    mosquitto, barnabas = ports
    assert script(barnabas) == script(mosquitto)


MQTT_JS = """
const mqtt = require('mqtt');
const port = process.argv[2], version = Number(process.argv[3]);
const options = {protocolVersion: version, reconnectPeriod: 0};
const url = `mqtt://127.0.0.1:${port}`;
const found = {};
(async () => {
  const reader = await mqtt.connectAsync(url, options), writer = await mqtt.connectAsync(url, options);
  const granted = await reader.subscribeAsync({'js/#': {qos: 2}});
  const all = new Promise(done => {
    let count = 0;
    reader.on('message', (topic, payload, packet) => {
      const key = `${topic} ${packet.qos}`;  // one with QoS 2 comes when it is released, others may come before it
      (found[key] = found[key] || []).push([payload.toString(), packet.retain]);
      if (++count === 12) done();
    });
  });
  for (let n = 0; n < 12; n++) await writer.publishAsync(`js/${n % 2}`, `${n}`, {qos: n % 3});
  await all;
  console.log(JSON.stringify([granted.map(each => each.qos), found]));
  await reader.endAsync();
  await writer.endAsync();
})().catch(error => { console.error(error); process.exit(1); });
"""


@pytest.mark.parametrize("version", [4, 5])
def test_mqtt_js_sees_the_same(ports: tuple[int, int], version: int, tmp_path: Path) -> None:
    if shutil.which("node") is None or not (NODE_MODULES / "mqtt").exists():
        pytest.skip("needs Node and mqtt.js (tests/foreign/install.sh)")

    def script(port: int) -> Any:
        command = ["node", "-e", MQTT_JS, "--", str(port), str(version)]
        command = ["node", "-e", MQTT_JS.replace("argv[2]", "argv[1]").replace("argv[3]", "argv[2]"), *command[4:]]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=SECONDS, env={"NODE_PATH": str(NODE_MODULES)}, check=False
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    mosquitto, barnabas = ports
    assert script(barnabas) == script(mosquitto)
