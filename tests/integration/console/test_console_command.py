"""`barnabas console` as a process: what it refuses to start without, TLS, users of a file, and its death."""

from __future__ import annotations

import http.client
import io
import json
import os
import re
import signal
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytest.importorskip("starlette", reason="the console needs starlette")
pytest.importorskip("pyarrow", reason="the console needs pyarrow")
pytest.importorskip("cryptography", reason="makes the certificates")

from barnabas import Admin, Producer
from barnabas.cli.commands import certificate
from barnabas.cli.commands.console import main
from barnabas.testing import Broker

COMMAND = [sys.executable, "-m", "barnabas", "console"]


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def console(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Done]:
    """In this process: for calls that end by themselves."""

    def call(*words: str, stdin: str = "") -> Done:
        monkeypatch.setattr("sys.stdin", io.StringIO(stdin))
        try:
            status = main(list(words))
        except SystemExit as ended:
            status = int(str(ended.code))
        return Done(status, *capsys.readouterr())

    return call


@contextmanager
def running(broker: Broker, *words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process and the address that it prints."""
    process = subprocess.Popen(
        [*COMMAND, "-b", broker.bootstrap, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stderr is not None
    try:
        found = re.match(r"console on (\S+)\n", process.stdout.readline())
        assert found is not None, process.stderr.read()
        yield process, found[1]
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        broker.create_topic("orders", 1)
        yield broker


@pytest.fixture
def users(console: Callable[..., Done], tmp_path: Path) -> str:
    path = str(tmp_path / "users.txt")
    made = console("user", "add", path, "ann", stdin="secret\n")
    assert (made.returncode, made.stdout) == (0, "added ann (admin)\n"), made.stderr
    return path


def test_users_of_the_file(console: Callable[..., Done], users: str) -> None:
    assert console("user", "add", users, "bob", "--read-only", stdin="x\n").stdout == "added bob (viewer)\n"
    again = console("user", "add", users, "bob", stdin="x\n")
    assert (again.returncode, again.stderr) == (
        1,
        "barnabas console user add: user bob is there already; --replace gives another password\n",
    )
    assert console("user", "add", users, "bob", "--replace", stdin="y\n").stdout == "changed bob (admin)\n"
    listed = json.loads(console("user", "list", users, "--json").stdout)
    assert listed == [{"user": "ann", "role": "admin"}, {"user": "bob", "role": "admin"}]
    assert "secret" not in Path(users).read_text()
    assert console("user", "delete", users, "bob").returncode == 0
    assert console("user", "delete", users, "bob").returncode == 1
    assert console("user", "add", users, "no body", stdin="x\n").returncode == 2
    assert console("user", "add", users, "cid", stdin="").returncode == 2
    assert console("user", "list", f"{users}.none").returncode == 2


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--listen", "0.0.0.0:0"), "needs a login: --users FILE"),
        (("--listen", "[::]:0"), "needs a login: --users FILE"),
        (("--users", "/nowhere/users.txt"), "cannot read /nowhere/users.txt"),
        (("--cluster-login",), "connect to a listener with SASL"),
        (("--login-mechanism", "PLAIN"), "unless --cluster-login"),
        (("--tls-key", "key.pem"), "--tls-certificate is missing"),
        (("--users", "a", "--cluster-login"), "not allowed with"),
    ],
)
def test_a_door_without_its_lock_is_not_opened(
    console: Callable[..., Done], words: tuple[str, ...], reason: str
) -> None:
    done = console(*words)
    assert (done.returncode, done.stdout) == (2, "") and reason in done.stderr


def test_a_certificate_that_is_none(console: Callable[..., Done], tmp_path: Path) -> None:
    (tmp_path / "bad.pem").write_text("no certificate")
    done = console("--listen", "127.0.0.1:0", "--tls-certificate", str(tmp_path / "bad.pem"))
    assert (done.returncode, done.stdout) == (1, "") and "cannot use" in done.stderr


def ask(
    connection: http.client.HTTPConnection, method: str, path: str, body: Any = None, **headers: str
) -> tuple[int, Any, dict[str, str]]:
    connection.request(method, path, json.dumps(body) if body is not None else None, headers)
    response = connection.getresponse()
    content = response.read()
    found = {name.lower(): value for name, value in response.getheaders()}
    return response.status, json.loads(content) if "json" in found.get("content-type", "") else content, found


def test_ctrl_c_is_a_clean_end(broker: Broker) -> None:
    with running(broker, "--listen", "127.0.0.1:0") as (process, address):
        connection = http.client.HTTPConnection(address.partition("://")[2])
        assert ask(connection, "GET", "/api/session")[0] == 200
        connection.close()
        process.send_signal(signal.SIGINT)
        assert process.wait() == 0


def test_a_login_over_tls_on_every_address(broker: Broker, users: str, tmp_path: Path) -> None:
    assert certificate.main(["create", str(tmp_path / "tls"), "--host", "localhost"]) == 0
    authority, store = tmp_path / "tls" / "authority.pem", tmp_path / "tls" / "broker.pem"
    words = ("--listen", "0.0.0.0:0", "--users", users, "--tls-certificate", str(store))
    with running(broker, *words) as (process, address):
        assert address.startswith("https://0.0.0.0:")
        port = int(address.rpartition(":")[2])
        trusted = ssl.create_default_context(cafile=str(authority))
        connection = http.client.HTTPSConnection("localhost", port, context=trusted, timeout=60)
        assert ask(connection, "GET", "/api/topics")[0] == 401
        assert ask(connection, "GET", "/topics")[0] == 303
        assert ask(connection, "GET", "/api/session", host=f"evil.example:{port}")[0] == 403
        assert ask(connection, "GET", "/api/session", host=f"192.0.2.7:{port}")[0] == 200, "a number is nobody's name"
        assert b"login.js" in ask(connection, "GET", "/login")[1]
        _, session, headers = ask(connection, "GET", "/api/session")
        cookie = headers["set-cookie"]
        assert "Secure" in cookie and headers["strict-transport-security"]
        own = {"cookie": cookie.partition(";")[0], "x-csrf-token": session["token"]}
        assert ask(connection, "POST", "/api/login", {"user": "ann", "password": "x"}, **own)[0] == 401
        status, _, headers = ask(connection, "POST", "/api/login", {"user": "ann", "password": "secret"}, **own)
        assert status == 200
        assert ask(connection, "GET", "/api/topics", **own)[0] == 401, "the cookie from before the login"
        own["cookie"] = headers["set-cookie"].partition(";")[0]
        assert ask(connection, "GET", "/api/topics", **own)[0] == 200
        connection.close()
        process.send_signal(signal.SIGTERM)
        output = process.communicate()[1]
    assert re.search(r"barnabas\.console\.audit: ann from 127\.0\.0\.1: log in as 'ann': done", output)
    assert "secret" not in output


def test_the_broker_does_not_notice_that_its_console_dies(broker: Broker) -> None:
    with Producer(broker.bootstrap) as producer:
        for number in range(1000):
            producer.send("orders", b"%d" % number)
        producer.flush()
        with running(broker, "--listen", "127.0.0.1:0") as (process, address):
            connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=60)
            connection.request("GET", "/api/topics/orders/messages?start=live")
            connection.getresponse().readline()
            os.kill(process.pid, signal.SIGSTOP)  # hangs, in the middle of a search
            assert producer.send("orders", b"x").result(60).offset == 1000
            os.kill(process.pid, signal.SIGKILL)
            connection.close()
        assert producer.send("orders", b"y").result(60).offset == 1001
    with Admin(broker.bootstrap) as admin:
        assert admin.describe_cluster().brokers
