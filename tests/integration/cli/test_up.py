"""`barnabas up`: several brokers as processes of one command."""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from documentation import blocks_of
from eventually import eventually

from barnabas import Admin
from barnabas.cli.commands import certificate
from barnabas.cli.up_console import NoConsoleError, UpConsole
from barnabas.errors import KafkaError

TLS = {
    "ssl.keystore.type": "PEM",
    "ssl.keystore.location": "broker.pem",
    "ssl.truststore.type": "PEM",
    "ssl.truststore.location": "authority.pem",
}
READY = re.compile(r"cluster of 2 brokers ready on (\S+) ")


def next_line(process: subprocess.Popen[str], wanted: Callable[[str], bool]) -> str:
    assert process.stdout is not None
    seen = []
    for line in process.stdout:
        seen.append(line)
        if wanted(line):
            return line
    raise AssertionError(f"ended with {process.wait()} after: {''.join(seen)}")


def ports_of(bootstrap: str) -> set[int]:
    try:
        with Admin(bootstrap) as admin:
            return {each.node.port for each in admin.describe_cluster(timeout=5).brokers}
    except KafkaError:
        return set()


def test_two_brokers_one_killed_and_back_both_stopped(tmp_path: Path) -> None:
    command = ["up", "--brokers", "2", "--listen", "127.0.0.1:0", "--data-dir", str(tmp_path), "--console", ""]
    process = subprocess.Popen(
        [sys.executable, "-m", "barnabas", *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        found = READY.search(next_line(process, lambda line: READY.search(line) is not None))
        assert found is not None
        bootstrap = found.group(1)
        ports = {int(each.rpartition(":")[2]) for each in bootstrap.split(",")}
        eventually(lambda: ports_of(bootstrap) == ports, timeout=60)

        os.kill(int((tmp_path / "broker-1" / "barnabas.pid").read_text().split()[0]), signal.SIGKILL)
        assert "it starts again in 1 s" in next_line(process, lambda line: line.startswith("broker 1 has ended"))
        second = bootstrap.split(",")[1]
        eventually(lambda: ports_of(second) == ports, timeout=60)

        process.send_signal(signal.SIGTERM)
        next_line(process, lambda line: line == "stopped\n")
        assert process.wait() == 0
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
    for number in (0, 1):
        assert "stopped cleanly" in (tmp_path / f"broker-{number}.out").read_text()


def test_the_console_runs_beside_the_broker(tmp_path: Path) -> None:
    (tmp_path / "users.txt").touch(0o600)
    command = ["up", "--listen", "127.0.0.1:0", "--data-dir", str(tmp_path), "--console", "127.0.0.1:0"]
    command += ["--console-users", str(tmp_path / "users.txt")]
    process = subprocess.Popen(
        [sys.executable, "-m", "barnabas", *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        line = next_line(process, lambda line: line.startswith(("console on ", "no console")))
        address = line.removeprefix("console on ").strip()
        with urllib.request.urlopen(f"{address}/api/session", timeout=60) as answer:
            session = json.load(answer)
            assert (session["readOnly"], session["needsLogin"]) == (False, True)
        process.send_signal(signal.SIGTERM)
        next_line(process, lambda line: line == "stopped\n")
        assert process.wait() == 0
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def test_the_console_ends_with_a_command_that_was_killed(tmp_path: Path) -> None:
    command = ["up", "--listen", "127.0.0.1:0", "--data-dir", str(tmp_path), "--console", "127.0.0.1:0"]
    process = subprocess.Popen(
        [sys.executable, "-m", "barnabas", *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        line = next_line(process, lambda line: line.startswith(("console on ", "no console")))
        host, _, port = line.strip().rpartition("/")[2].partition(":")
        with socket.create_connection((host, int(port)), timeout=60):
            process.kill()
        process.wait()
        eventually(lambda: not is_served(host, int(port)), timeout=60)
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
        os.kill(int((tmp_path / "barnabas.pid").read_text().split()[0]), signal.SIGTERM)


def is_served(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=60).close()
    except ConnectionRefusedError:
        return False
    return True


def test_a_broker_that_cannot_start_ends_the_command(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "barnabas", "up", "--data-dir", str(tmp_path), "--set", "num.partitions=none"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "broker-0 has exited with status 2" in done.stderr and "num.partitions" in done.stderr


def test_wrong_use() -> None:
    for words in (
        ["--listen", "9092"],
        ["--brokers", "0"],
        ["--brokers", "1000"],
        ["--listen", "127.0.0.1:65535", "--brokers", "3"],
    ):
        done = subprocess.run(
            [sys.executable, "-m", "barnabas", "up", *words], capture_output=True, text=True, check=False
        )
        assert done.returncode == 2 and words[0] in done.stderr, (words, done)


class Page:
    """A browser on the console: keeps its cookie and the token of its session."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())

    def get(self, path: str) -> Any:
        with self.browser.open(f"{self.address}{path}", timeout=60) as response:
            return json.load(response)

    def log_in(self, user: str, password: str) -> None:
        body = json.dumps({"user": user, "password": password}).encode()
        headers = {"x-csrf-token": self.get("/api/session")["token"]}
        request = urllib.request.Request(f"{self.address}/api/login", body, headers)
        self.browser.open(request, timeout=60).close()


def test_a_cluster_is_secured_as_the_documentation_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (settings,) = [each for each in blocks_of("docs/cluster.md") if "inter.broker.listener.name" in each.text]
    folder = tmp_path / "certificates"
    Path("secure.properties").write_text(settings.text.replace("/etc/barnabas/certificates", str(folder)))
    assert certificate.main(["create", str(folder)]) == 0
    command = ["up", "--brokers", "2", "--protocol", "SASL_SSL", "--listen", "127.0.0.1:0", "--console", "127.0.0.1:0"]
    command += ["--config", "secure.properties", "--data-dir", "data"]
    process = subprocess.Popen(
        [sys.executable, "-m", "barnabas", *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        found = READY.search(next_line(process, lambda line: READY.search(line) is not None))
        assert found is not None
        with Admin(
            found.group(1),
            security_protocol="SASL_SSL",
            ssl_truststore_location=str(folder / "authority.pem"),
            sasl_mechanism="PLAIN",
            sasl_username="admin",
            sasl_password="admin-secret",
        ) as admin:
            eventually(lambda: len(admin.describe_cluster().brokers) == 2, timeout=60)
            admin.create_topic("orders", partitions=1, replication_factor=2)
        line = next_line(process, lambda line: line.startswith(("console on ", "no console")))
        assert line.endswith(" (log in as a user of the cluster, PLAIN)\n")
        page = Page(line.split()[2])
        with pytest.raises(urllib.error.HTTPError, match="401"):
            page.get("/api/topics")
        with pytest.raises(urllib.error.HTTPError, match="401"):
            page.log_in("admin", "wrong")
        page.log_in("admin", "admin-secret")
        eventually(lambda: [each["name"] for each in page.get("/api/topics")["items"]] == ["orders"], timeout=60)
        assert not Path("data", "console-login.properties").exists()
        process.send_signal(signal.SIGTERM)
        next_line(process, lambda line: line == "stopped\n")
        assert process.wait() == 0
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


@pytest.mark.parametrize(
    ("protocol", "settings", "why"),
    [
        ("SSL", {**TLS, "ssl.client.auth": "required"}, "--console-users FILE"),
        ("SSL", {"num.partitions": "none"}, "the settings are no longer valid"),
        (
            "SASL_PLAINTEXT",
            {"sasl.enabled.mechanisms": "SCRAM-SHA-512"},
            "it logs in as brokers do, which the settings do not say: ",
        ),
        (
            "SASL_PLAINTEXT",
            {
                "sasl.enabled.mechanisms": "OAUTHBEARER",
                "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
                "sasl.oauthbearer.token.endpoint.url": "file:///token",
                "sasl.oauthbearer.jwks.endpoint.url": "file:///keys",
                "sasl.oauthbearer.expected.issuer": "issuer",
                "sasl.oauthbearer.expected.audience": "kafka",
            },
            "`barnabas console -b localhost:9092 --command-config FILE`",
        ),
    ],
)
def test_a_console_that_cannot_be_let_in_says_why(
    tmp_path: Path, protocol: str, settings: dict[str, str], why: str
) -> None:
    pairs = [f"{name}={value}" for name, value in settings.items()]
    options = argparse.Namespace(console="127.0.0.1:0", console_users=None, config=None, protocol=protocol, set=pairs)
    with pytest.raises(NoConsoleError, match=re.escape(why)):
        UpConsole(options, "localhost:9092", tmp_path)
    assert list(tmp_path.iterdir()) == []
