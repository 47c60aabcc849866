"""The seam to the network: a server, a client and a whole broker on another network, and nobody who goes around it."""

import re
from pathlib import Path

import pytest
from memory_network import HOST, MemoryNetwork, run_in_memory
from net_harness import Answer, Handler, framed

import barnabas
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.connecting import Connector
from barnabas.client.connection import Connection as ClientConnection
from barnabas.client.errors import UnreachableError
from barnabas.client.metadata import Node
from barnabas.client.options import AdminOptions
from barnabas.config.broker import BrokerConfig
from barnabas.metadata.stores.memory import MemoryStore
from barnabas.net.connection import Connection
from barnabas.net.server import Server
from barnabas.net.settings import Listener
from barnabas.protocol import ApiKey, decode_request_header
from barnabas.server.broker import Broker, make_parts
from barnabas.storage.file_slice import FileSlice
from barnabas.storage.files import Files
from barnabas.transport.channel import SocketOptions
from barnabas.transport.system import SystemNetwork

HEARTBEAT = int(ApiKey.HEARTBEAT)
GOES_AROUND = re.compile(
    r"socket\.socket\(|create_connection|create_server|socketpair|getaddrinfo|getfqdn|gethostby|sock_connect|sendfile\("
    r"|open_connection|start_server|wrap_socket"
)


@pytest.fixture(autouse=True)
def no_system_network(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("own_name", "listen", "look_up", "canonical_names", "connect", "start_tls"):
        monkeypatch.delattr(SystemNetwork, name)


def test_frames_and_files_between_a_server_and_a_client(tmp_path: Path) -> None:
    data = bytes(range(251)) * 12_000
    (tmp_path / "data").write_bytes(data)
    part = FileSlice(Files().open(str(tmp_path / "data")), 5, 3_000_000)

    def respond(connection: Connection, payload: bytes) -> Answer:
        connection.rest()  # there is no epoll for such descriptors: nothing changes
        header = decode_request_header(payload)
        correlation_id = header.correlation_id.to_bytes(4, "big")
        if payload[header.body_position :] == b"file":
            return [(part.length + 5).to_bytes(4, "big") + correlation_id + b"\0", part]
        return framed(correlation_id + b"\0" + payload[header.body_position :])

    async def scenario(network: MemoryNetwork) -> None:
        server = Server(Handler(respond), [Listener(host="ignored", port=0)], network=network)
        await server.start()
        (address,) = await network.look_up(HOST, server.port)
        channel = await network.connect(address, SocketOptions())
        client = ClientConnection(channel, "broker:1", client_id="c", request_timeout_ms=30_000, max_idle_ms=-1)
        client._stream.frames.max_bytes = 1 << 30
        bodies = [bytes([number]) * size for number, size in enumerate((0, 10, 60_000, 2_000_000))]
        responses = [client.post(HEARTBEAT, 4, [body]) for body in [*bodies, b"file"]]
        assert [bytes(await response) for response in responses] == [*bodies, data[5:3_000_005]]
        assert not server.connections[0].is_resting
        client.close()
        await server.stop()

    run_in_memory(scenario)


def test_a_broker_and_a_client_of_the_cluster(tmp_path: Path) -> None:
    async def scenario(network: MemoryNetwork) -> None:
        given = {"listeners": "PLAINTEXT://:0", "log.dirs": str(tmp_path), "node.id": "7"}
        broker = Broker(make_parts(BrokerConfig.parse(given), store=MemoryStore(), network=network))
        await broker.start()
        cluster = ClusterClient(AdminOptions.of(broker.address), network=network)
        await cluster.start()
        assert {(node.id, node.host) for node in cluster.metadata.brokers.values()} == {(7, HOST)}
        await cluster.close()
        await broker.stop()
        assert network.connection_count == 1

    run_in_memory(scenario)


def test_nobody_listens() -> None:
    async def scenario(network: MemoryNetwork) -> None:
        with pytest.raises(UnreachableError, match="nothing listens there"):
            await Connector(AdminOptions.of("h:1"), network).connect(Node(0, HOST, 1))

    run_in_memory(scenario)


@pytest.mark.parametrize("folder", ["net", "client", "server", "transport"])
def test_only_the_system_network_opens_sockets_and_looks_up_names(folder: str) -> None:
    allowed = {"system.py", "same_host.py", "tls.py"} if folder == "transport" else set()
    faults = [
        f"{path.name}:{number}: {line.strip()}"
        for path in (Path(barnabas.__file__).parent / folder).rglob("*.py")
        if path.name not in allowed
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if GOES_AROUND.search(line)
    ]
    assert not faults
