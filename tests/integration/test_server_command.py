"""`barnabas server` as people run it: options, the ready line, exit statuses, and what it says when it refuses."""

from __future__ import annotations

import os
import re
import selectors
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from barnabas_process import READY_LINE, SOURCES
from raw_client import RawClient, base_offsets, batch, fetch_request

from barnabas import __version__
from barnabas.cli.command import single_parser
from barnabas.cli.server import COMMAND
from barnabas.cli.server_config import read_config
from barnabas.config.listeners import Listener
from barnabas.protocol.messages import describe_configs as describing
from barnabas.protocol.messages.fetch import FetchRequest

# The settings of config/server.properties as Apache Kafka ships it, without the comments.
KAFKAS_OWN_FILE = """
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs={data}
num.partitions=1
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""


class Command:
    """One run of the command in a directory of its own."""

    def __init__(self, directory: Path, *arguments: str) -> None:
        environment = os.environ | {"PYTHONPATH": str(SOURCES), "PYTHONUNBUFFERED": "1"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "barnabas", "server", *arguments],
            cwd=directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def ready(self) -> re.Match[str]:
        """Waits for the ready line: version, address, node, data."""
        assert self.process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            assert selector.select(30), "neither a ready line nor an end within 30 s"
        line = self.process.stdout.readline()
        found = READY_LINE.match(line)
        assert found, (line, self.process.stderr and self.process.poll() is not None and self.process.stderr.read())
        return found

    def end(self, number: int | None = None) -> tuple[int, str, str]:
        """Status, output and errors of the whole run, after a signal if one is given."""
        if number is not None:
            self.process.send_signal(number)
        out, error = self.process.communicate(timeout=30)
        return self.process.returncode, out, error


@pytest.fixture
def run(tmp_path: Path) -> Iterator[type[Command]]:
    commands: list[Command] = []

    class RunHere(Command):
        def __init__(self, *arguments: str) -> None:
            super().__init__(tmp_path, *arguments)
            commands.append(self)

    yield RunHere
    for command in commands:
        command.process.kill()
        command.process.communicate()


def test_a_run_from_ready_line_to_clean_stop(run: type[Command], tmp_path: Path) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        server = run("--listen", "127.0.0.1:0", "--data-dir", "data", "--node-id", "7")
        version, address, node, data = server.ready().groups()
        assert (version, node, data) == (__version__, "7", str(tmp_path / "data"))
        with RawClient(address) as client:
            topics = [topic.name for topic in client.metadata().topics]
            if number == signal.SIGTERM:
                client.create_topic("t")
                client.produce("t", batch(b"kept"))
            else:
                assert topics == ["t"]
            assert base_offsets(client.fetch("t", 0).records) == [0]
            status, out, _ = server.end(number)
        assert (status, out) == (0, f"barnabas {__version__} stopped cleanly (node 7, {address})\n")
        assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()
        assert not (tmp_path / "data" / "barnabas.pid").exists()


def test_a_stop_responses_fetches_that_wait(run: type[Command]) -> None:
    server = run("--listen", "127.0.0.1:0", "--data-dir", "data")
    address = server.ready()[2]
    with RawClient(address) as client, RawClient(address) as waiting:
        client.create_topic("t")
        waiting.post(fetch_request("t", 0, min_bytes=1, max_wait_ms=600_000), 12)
        client.metadata()
        assert server.end(signal.SIGTERM)[0] == 0
        assert waiting.answer(FetchRequest, 12).error_code == 0


def test_the_default_address_is_loopback_port_9092() -> None:
    """Read from the settings, not from a running broker: the port may be taken on the machine that runs the tests."""
    config = read_config(single_parser(COMMAND).parse([]))
    assert config.bound_listeners() == (Listener("PLAINTEXT", "127.0.0.1", 9092),)


def test_the_default_data_directory_is_a_folder_here(run: type[Command], tmp_path: Path) -> None:
    server = run("--listen", "127.0.0.1:0")
    assert server.ready()[4] == str(tmp_path / "barnabas-data")
    assert server.end(signal.SIGTERM)[0] == 0


def test_every_fault_is_listed_and_nothing_started(run: type[Command], tmp_path: Path) -> None:
    status, out, error = run(
        *("--listen", "nowhere", "--node-id", "first", "--data-dir", "data"),
        *(
            "--set",
            "log.retntion.ms=5",
            "--set",
            "num.partitions=0",
            "--set",
            "log.segment.bytes=1GB",
            "--set",
            "alone",
        ),
    ).end()
    assert (status, out) == (2, "")
    named = ("--listen nowhere", "--node-id first", "log.retntion.ms", "num.partitions", "log.segment.bytes")
    for part in (*named, "--set alone"):
        assert re.search(rf"^  {re.escape(part)}: ", error, re.MULTILINE), (part, error)
    assert "did you mean log.retention.ms?" in error
    assert "Traceback" not in error
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("typed", "fault"),
    [
        ("19100", "--listen 19100: expected HOST:PORT, such as 127.0.0.1:19100"),
        ("localhost", "--listen localhost: expected HOST:PORT, such as 127.0.0.1:9092"),
        ("PLAINTEXT://localhost:1", "--listen PLAINTEXT://localhost:1: expected HOST:PORT"),
        ("localhost:99999", "--listen localhost:99999: "),
        ("0.0.0.0:19100", "--listen 0.0.0.0:19100: clients cannot reach 0.0.0.0"),
    ],
)
def test_a_fault_names_what_was_typed(run: type[Command], typed: str, fault: str) -> None:
    status, out, error = run("--listen", typed).end()
    assert (status, out) == (2, "")
    assert f"\n  {fault}" in error and "\n  listeners" not in error and "\n  advertised" not in error


def test_zookeeper_connect_chooses_zookeeper(run: type[Command], tmp_path: Path) -> None:
    pytest.importorskip("kazoo", reason="kazoo is not installed")
    (tmp_path / "server.properties").write_text(
        "broker.id=3\nlisteners=PLAINTEXT://127.0.0.1:0\nlog.dirs=data\nzookeeper.connect=127.0.0.1:1/kafka\n"
        "zookeeper.connection.timeout.ms=300\nzookeeper.max.in.flight.requests=5\n"
    )
    status, out, error = run("--config", "server.properties").end()
    assert (status, out) == (1, "")
    assert "none of the ZooKeeper servers 127.0.0.1:1 can be reached" in error and "Traceback" not in error
    (others,) = [line for line in error.splitlines() if "settings without effect" in line]
    assert "zookeeper.max.in.flight.requests" in others and "zookeeper.connect" not in others


def test_a_mistyped_setting_of_zookeeper(run: type[Command]) -> None:
    status, _, error = run("--set", "zookeeper.conect=one:2181").end()
    assert status == 2 and "zookeeper.conect: unknown setting, did you mean zookeeper.connect?" in error


@pytest.mark.parametrize(
    "setting", ["authorizer.class.name=org.example.Guard", "listeners=SSL://127.0.0.1:0", "listeners=SASL_SSL://:0"]
)
def test_a_door_that_would_stand_open_is_refused(run: type[Command], tmp_path: Path, setting: str) -> None:
    status, out, error = run("--data-dir", "data", "--set", setting).end()
    assert (status, out) == (2, "")
    assert setting.partition("=")[0] in error or "listener " in error
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [None, b"a=\xff\xfe"])
def test_a_settings_file_that_cannot_be_read(run: type[Command], tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "some.properties").write_bytes(content)
    status, out, error = run("--config", "some.properties").end()
    assert (status, out) == (2, "")
    assert error.startswith("barnabas server: cannot read some.properties: ") and error.count("\n") == 1


def test_wrong_use_of_the_command(run: type[Command]) -> None:
    assert run("--no-such-option").end()[0] == 2
    assert run("--node-id").end()[0] == 2


def test_a_port_that_is_taken(run: type[Command]) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        address = f"127.0.0.1:{other.getsockname()[1]}"
        status, out, error = run("--listen", address, "--data-dir", "data").end()
    assert (status, out) == (1, "")
    assert f"barnabas server: cannot listen on {address}: Address already in use" in error
    assert "Traceback" not in error
    run("--listen", "127.0.0.1:0", "--data-dir", "data").ready()  # the data directory was let go of


def test_a_data_directory_that_is_in_use(run: type[Command], tmp_path: Path) -> None:
    first = run("--listen", "127.0.0.1:0", "--data-dir", "data")
    address = first.ready()[2]
    status, out, error = run("--listen", "127.0.0.1:0", "--data-dir", "data").end()
    assert (status, out) == (1, "")
    assert str(tmp_path / "data") in error and "in use" in error
    assert "Traceback" not in error
    with RawClient(address) as client:
        client.create_topic("unharmed")
    assert first.end(signal.SIGTERM)[0] == 0


@pytest.mark.parametrize("path", ["file", "file/below"])
def test_a_data_directory_that_cannot_be(run: type[Command], tmp_path: Path, path: str) -> None:
    (tmp_path / "file").touch()
    status, out, error = run("--listen", "127.0.0.1:0", "--data-dir", path).end()
    assert (status, out) == (1, "")
    assert "barnabas server: no log directory can be used" in error and "Traceback" not in error


def test_a_data_directory_of_another_node_is_refused(run: type[Command]) -> None:
    first = run("--listen", "127.0.0.1:0", "--data-dir", "data", "--node-id", "1")
    first.ready()
    first.end(signal.SIGTERM)
    status, out, error = run("--listen", "127.0.0.1:0", "--data-dir", "data", "--node-id", "2").end()
    assert (status, out) == (1, "")
    assert "node" in error and "Traceback" not in error


def test_a_metadata_file_that_is_none(run: type[Command], tmp_path: Path) -> None:
    (tmp_path / "metadata").write_text("this is no database, but it is long enough to be looked at as one\n" * 20)
    status, out, error = run("--listen", "127.0.0.1:0", "--data-dir", "data", "--metadata", "metadata").end()
    assert (status, out) == (1, "")
    assert "metadata" in error and "Traceback" not in error


def test_a_metadata_store_of_no_known_kind(run: type[Command], tmp_path: Path) -> None:
    status, out, error = run("--listen", "127.0.0.1:0", "--data-dir", "data", "--metadata", "consul:host").end()
    assert (status, out) == (2, "")
    assert "no metadata store called 'consul'" in error and "Traceback" not in error
    assert not (tmp_path / "data" / "barnabas-metadata.sqlite").exists()


def test_kafkas_own_settings_file(run: type[Command], tmp_path: Path) -> None:
    (tmp_path / "server.properties").write_text(KAFKAS_OWN_FILE.format(data=tmp_path / "logs"))
    server = run("--config", "server.properties", "--set", "num.partitions=3")
    _, address, node, data = server.ready().groups()
    assert (node, data) == ("1", str(tmp_path / "logs"))
    with RawClient(address) as client:
        (told,) = client.metadata().brokers
        assert (told.node_id, told.host, told.port) == (1, "localhost", 9092)
        assert broker_setting(client, "1", "num.partitions") == "3"
        assert broker_setting(client, "1", "log.retention.hours") == "168"
    status, _, error = server.end(signal.SIGTERM)
    assert status == 0
    (line,) = [line for line in error.splitlines() if "settings without effect" in line]
    assert "process.roles" in line and "num.io.threads" in line
    assert "log.retention.hours" not in line and "num.partitions" not in line


def test_options_win_over_the_settings_file(run: type[Command], tmp_path: Path) -> None:
    (tmp_path / "server.properties").write_text(KAFKAS_OWN_FILE.format(data=tmp_path / "logs"))
    server = run("--config", "server.properties", "--listen", "127.0.0.1:0", "--data-dir", "other", "--node-id", "5")
    _, address, node, data = server.ready().groups()
    assert (node, data) == ("5", str(tmp_path / "other"))
    with RawClient(address) as client:
        (told,) = client.metadata().brokers
        assert f"{told.host}:{told.port}" == address
    assert not (tmp_path / "logs").exists()


def test_without_settings_that_have_no_effect_there_is_no_such_line(run: type[Command]) -> None:
    server = run("--listen", "127.0.0.1:0", "--data-dir", "data", "--set", "num.partitions=3")
    server.ready()
    assert "without effect" not in server.end(signal.SIGTERM)[2]


def test_ipv6(run: type[Command]) -> None:
    server = run("--listen", "[::1]:0", "--data-dir", "data")
    address = server.ready()[2]
    assert address.startswith("[::1]:")
    with RawClient(address) as client:
        (told,) = client.metadata().brokers
        assert (told.host, f"[::1]:{told.port}") == ("::1", address)


def test_several_listeners_with_advertised_addresses(run: type[Command]) -> None:
    with socket.socket() as one, socket.socket(socket.AF_INET6) as two:
        one.bind(("127.0.0.1", 0))
        two.bind(("::1", 0))
        inner, outer = (each.getsockname()[1] for each in (one, two))
    server = run(
        *("--data-dir", "data", "--set", f"listeners=INNER://127.0.0.1:{inner},OUTER://[::1]:{outer}"),
        *("--set", "advertised.listeners=INNER://inner.example:1000,OUTER://outer.example:2000"),
        *("--set", "listener.security.protocol.map=INNER:PLAINTEXT,OUTER:PLAINTEXT"),
        *("--set", "inter.broker.listener.name=INNER"),
    )
    assert server.ready()[2] == f"127.0.0.1:{inner}"
    for address, expected in (
        (f"127.0.0.1:{inner}", ("inner.example", 1000)),
        (f"[::1]:{outer}", ("outer.example", 2000)),
    ):
        with RawClient(address) as client:
            (told,) = client.metadata().brokers
            assert (told.host, told.port) == expected


def broker_setting(client: RawClient, node: str, name: str) -> str | None:
    resource = describing.DescribeConfigsResource(resource_type=4, resource_name=node, configuration_keys=[name])
    (answer,) = client.ask(describing.DescribeConfigsRequest(resources=[resource]), 4).results
    (entry,) = answer.configs
    value: str | None = entry.value
    return value


# ---- ids that the cluster gives


def test_a_generated_id_is_kept(run: type[Command], tmp_path: Path) -> None:
    shared = ("--listen", "127.0.0.1:0", "--metadata", "sqlite:shared", "--node-id", "-1")
    first, second = run(*shared, "--data-dir", "a"), run(*shared, "--data-dir", "b")
    assert {first.ready()[3], second.ready()[3]} == {"1001", "1002"}
    kept = re.search(r"^node.id=(\d+)$", (tmp_path / "b" / "meta.properties").read_text(), re.MULTILINE)
    assert kept
    second.end(signal.SIGTERM)
    again, third = run(*shared, "--data-dir", "b"), run(*shared, "--data-dir", "c", "--set", "reserved.broker.max.id=7")
    assert (again.ready()[3], third.ready()[3]) == (kept[1], "10")


@pytest.mark.parametrize(
    ("words", "node_id"),
    [
        ((), "0"),
        (("--metadata", "shared.sqlite"), "0"),
        (("--set", "broker.id=-1"), "-1"),
        (("--metadata", "shared.sqlite", "--node-id", "-1"), None),
        (("--metadata", "shared.sqlite", "--set", "broker.id=-1"), None),
        (("--metadata", "etcd://h:2379"), None),
        (("--metadata", "zookeeper://h:2181"), None),
        (("--set", "zookeeper.connect=h:2181"), None),
        (("--set", "zookeeper.connect=h:2181", "--set", "broker.id=-1"), None),
        (("--set", "zookeeper.connect=h:2181", "--set", "broker.id=3"), "3"),
        (("--metadata", "etcd://h:2379", "--node-id", "4"), "4"),
    ],
)
def test_when_an_id_is_generated(words: tuple[str, ...], node_id: str | None) -> None:
    config = read_config(single_parser(COMMAND).parse_args(words))
    assert config.given.get("node.id", config.given.get("broker.id")) == node_id
    assert config.node_id == max(int(node_id or 0), 0)


def test_ids_are_not_generated_where_that_is_switched_off(run: type[Command]) -> None:
    words = ("--set", "zookeeper.connect=h:2181", "--set", "broker.id.generation.enable=false")
    status, _, error = run(*words).end()
    assert status == 2 and "node.id is missing, and broker.id.generation.enable is false" in error
