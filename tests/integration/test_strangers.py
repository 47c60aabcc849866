"""Ten thousand connections of strangers who never log in: memory stays bounded and others are served."""

from __future__ import annotations

import os
import resource
import socket
import struct
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from secured_processes import SecuredProcess
from server_process import free_port

from barnabas import Producer
from barnabas.protocol.api import ApiKey
from barnabas.protocol.compiler import encode
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest

STRANGERS = 10_000
SETUP_SECONDS = 3600
"""Nobody is closed before the last one has come, on a slow machine too."""
MOST_BYTES = 400 << 20
LOGIN = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN", "sasl_username": "alice"}
PASSWORD = "alice-secret-7715"


def frame(api_key: ApiKey, version: int, body: bytes) -> bytes:
    content = struct.pack(">hhih", api_key, version, 7, -1) + body
    return struct.pack(">i", len(content)) + content


HALF_A_LOGIN = frame(ApiKey.SASL_HANDSHAKE, 1, encode(SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), 1)) + frame(
    ApiKey.SASL_AUTHENTICATE, 1, encode(SaslAuthenticateRequest(auth_bytes=b"n,,n=nobody,r=x"), 1)
)
KINDS = (
    b"",
    b"\0\0",
    struct.pack(">i", 524_288) + bytes(500),
    HALF_A_LOGIN,
)


@pytest.fixture
def broker(tmp_path: Path) -> SecuredProcess:
    port = free_port()
    settings = {
        "listeners": f"SASL_PLAINTEXT://127.0.0.1:{port}",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'PlainLoginModule required user_alice="{PASSWORD}";',
        "socket.connection.setup.timeout.max.ms": str(SETUP_SECONDS * 1000),
        "metrics.listener": "",
    }
    command = [
        sys.executable,
        "-m",
        "barnabas",
        "server",
        "--data-dir",
        str(tmp_path / "data"),
        "--log-level",
        "WARNING",
    ]
    for each in settings.items():
        command += ["--set", "=".join(each)]
    return SecuredProcess(command, tmp_path, "127.0.0.1", port, dict(os.environ))


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_ten_thousand_strangers(broker: SecuredProcess) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < STRANGERS * 5 // 4:
        pytest.skip(f"a process may open {hard} files only")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, STRANGERS * 5 // 4), hard))
    with ExitStack() as stack:
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        stack.enter_context(broker)
        producer = stack.enter_context(Producer(broker.bootstrap, sasl_password=PASSWORD, **LOGIN))
        assert producer.send("orders", b"before").result(60).offset == 0
        before = broker.resident_bytes()
        strangers = []
        for number in range(STRANGERS):
            stranger = stack.enter_context(socket.create_connection((broker.host, broker.port), timeout=60))
            stranger.sendall(KINDS[number % len(KINDS)])
            strangers.append(stranger)
        assert producer.send("orders", b"among them").result(60).offset == 1
        with Producer(broker.bootstrap, sasl_password=PASSWORD, **LOGIN) as newcomer:
            assert newcomer.send("orders", b"a newcomer").result(60).offset == 2
        growth = broker.resident_bytes() - before
        print(f"{growth >> 20} MB for {STRANGERS} strangers")
        assert growth < MOST_BYTES, f"{growth >> 20} MB"
        for stranger in strangers:
            stranger.close()
        assert producer.send("orders", b"after").result(60).offset == 3
