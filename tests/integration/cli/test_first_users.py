"""The first administrator: made before the first start, so that no listener is ever open to everybody."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from barnabas import Admin, AuthenticationError
from barnabas.cli.kafka import storage
from barnabas.config.broker import BrokerConfig
from barnabas.metadata.first_users import open_users
from barnabas.metadata.store import MetadataStore
from barnabas.metadata.stores.sqlite import SqliteStore
from barnabas.server.broker import StartError
from barnabas.testing.network import BreakableNetwork
from barnabas.testing.server_thread import ServerThread

PASSWORD, OTHER = "first-secret-8120", "second-secret-8121"
FILE = "barnabas-metadata.sqlite"


def settings(directory: Path) -> dict[str, str]:
    return {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
        "log.dirs": str(directory),
        "node.id": "0",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin",
        "connection.failed.authentication.delay.ms": "10",
    }


def properties(tmp_path: Path, directory: Path) -> str:
    path = tmp_path / "server.properties"
    path.write_text("".join(f"{name}={value}\n" for name, value in settings(directory).items()))
    return str(path)


@contextmanager
def running(directory: Path, store: MetadataStore | None = None) -> Iterator[str]:
    """Its address."""
    thread = ServerThread(
        BrokerConfig.parse(settings(directory)), store or SqliteStore(str(directory / FILE)), BreakableNetwork()
    )
    try:
        yield thread.broker.address
    finally:
        thread.stop()


def may_log_in(address: str, password: str, mechanism: str = "SCRAM-SHA-512", user: str = "admin") -> bool:
    options: dict[str, Any] = {"sasl_mechanism": mechanism, "sasl_username": user, "sasl_password": password}
    try:
        with Admin(address, security_protocol="SASL_PLAINTEXT", **options) as admin:
            admin.describe_user_scram_credentials()
    except AuthenticationError:
        return False
    return True


def test_the_first_administrator(barnabas: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = tmp_path / "data"
    directory.mkdir()
    with pytest.raises(StartError, match="barnabas user create NAME --data-dir"), running(directory):
        pass
    monkeypatch.setenv("ADMIN_PASSWORD", PASSWORD)
    made = barnabas("user", "create", "admin", "--password-env", "ADMIN_PASSWORD", "--data-dir", str(directory))
    assert (made.status, made.out) == (0, "created admin: SCRAM-SHA-256, SCRAM-SHA-512\n")
    with running(directory) as address:
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
            assert may_log_in(address, PASSWORD, mechanism)
            assert not may_log_in(address, OTHER, mechanism)
        refused = barnabas("user", "password", "admin", "--password", OTHER, "--data-dir", str(directory))
        assert refused.status == 1 and "brokers of this cluster run" in refused.err
    again = barnabas("user", "create", "admin", "--password", OTHER, "--data-dir", str(directory))
    assert again.status == 1 and "`barnabas user password` changes it" in again.err
    # Somebody who is locked out.
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{OTHER}\n"))
    changed = barnabas("user", "password", "admin", "--data-dir", str(directory), "--mechanism", "SCRAM-SHA-512")
    assert (changed.status, changed.out) == (0, "changed admin: SCRAM-SHA-512\n")
    with running(directory) as address:
        assert may_log_in(address, OTHER, "SCRAM-SHA-512") and may_log_in(address, PASSWORD, "SCRAM-SHA-256")


def test_the_metadata_is_found_as_the_broker_finds_it(barnabas: Any, tmp_path: Path) -> None:
    directory = tmp_path / "data"
    elsewhere = tmp_path / "shared" / "cluster.sqlite"
    file = tmp_path / "password"
    file.write_text(f"{PASSWORD}\n")
    words = ["user", "create", "--password-file", str(file)]
    assert barnabas(*words, "one", "--config", properties(tmp_path, directory)).status == 0
    assert barnabas(*words, "two", "--metadata", f"sqlite:{elsewhere}").status == 0
    config = BrokerConfig.parse(settings(directory))
    with open_users(config) as users:
        assert users.credentials_of("one") and not users.credentials_of("two")
    with open_users(config, f"sqlite:{elsewhere}") as users:
        assert users.credentials_of("two").keys() == {"SCRAM-SHA-256", "SCRAM-SHA-512"}
    for wrong in (
        ["--metadata", "nonsense:x"],
        ["--config", str(tmp_path / "missing")],
        ["--data-dir", str(directory), "-b", "localhost:1"],
        ["--data-dir", str(directory), "--iterations", "5"],
        ["--data-dir", str(directory), "--password-env", "NO_SUCH_VARIABLE"],
    ):
        given = [each for each in words if "--password-env" not in wrong or each not in ("--password-file", str(file))]
        refused = barnabas(*given, "three", *wrong)
        assert refused.status == 2 and PASSWORD not in refused.err, refused
    missing = barnabas("user", "password", "nobody", "--password-file", str(file), "--data-dir", str(directory))
    assert missing.status == 1 and "there is no user nobody" in missing.err


def test_kafkas_format_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = tmp_path / "data"
    words = ["format", "-t", "AAAAAAAAAAAAAAAAAAAAAQ", "-c", properties(tmp_path, directory)]
    salted = 'SCRAM-SHA-512=[name=salted,iterations=8192,salt="MWx2NHBkbnc=",saltedpassword="mT0yyUUxnlJaC99HXgRTSYlb"]'
    users = [
        f"SCRAM-SHA-256=[name=admin,password={PASSWORD}]",
        f'SCRAM-SHA-512=[name=admin,password="{OTHER}",iterations=8192]',
        salted,
    ]
    given = [word for user in users for word in ("--add-scram", user)]
    assert storage.main([*words, *given]) == 0
    printed = capsys.readouterr()
    assert "Added user admin (SCRAM-SHA-256)." in printed.out
    assert PASSWORD not in printed.out + printed.err and OTHER not in printed.out + printed.err
    with running(directory) as address:
        assert may_log_in(address, PASSWORD, "SCRAM-SHA-256") and may_log_in(address, OTHER, "SCRAM-SHA-512")
        assert storage.main([*words, "--add-scram", users[0]]) == 1
    assert storage.main([*words, "--add-scram", f"SCRAM-SHA-256=[name=admin,password={OTHER}]"]) == 0
    assert "it stays as it is" in capsys.readouterr().out
    with running(directory) as address:
        assert may_log_in(address, PASSWORD, "SCRAM-SHA-256")


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("hunter2", "equals sign in SCRAM argument"),
        ("PLAIN=[name=a,password=hunter2]", "mechanism PLAIN is not supported"),
        ("SCRAM-SHA-256=name=a,password=hunter2]", "start with ["),
        ("SCRAM-SHA-256=[name=a,password=hunter2", "end with ]"),
        ("SCRAM-SHA-256=[name=a,hunter2]", "component"),
        ("SCRAM-SHA-256=[password=hunter2]", "supply 'name'"),
        ("SCRAM-SHA-256=[name=a]", "one of 'password' or 'saltedpassword'"),
        ("SCRAM-SHA-256=[name=a,password=hunter2,saltedpassword=aa==]", "one of 'password' or 'saltedpassword'"),
        ("SCRAM-SHA-256=[name=a,saltedpassword=hunter2]", "supply 'salt'"),
        ("SCRAM-SHA-256=[name=a,password=hunter2,salt=???]", "decode given salt"),
        ("SCRAM-SHA-256=[name=a,password=hunter2,iterations=x]", "parse iterations"),
        ("SCRAM-SHA-256=[name=a,password=hunter2,iterations=4095]", ">= 4096"),
        ("SCRAM-SHA-256=[name=a,password=hunter2,iterations=16385]", "<= 16384"),
        ("SCRAM-SHA-256=[name=a,password=hunter2,color=red]", "Unknown SCRAM configurations: color"),
    ],
)
def test_what_add_scram_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str], word: str, reason: str) -> None:
    words = ["format", "-t", "AAAAAAAAAAAAAAAAAAAAAQ", "-c", properties(tmp_path, tmp_path / "data")]
    assert storage.main([*words, "--add-scram", word]) == 1
    printed = capsys.readouterr()
    assert reason in printed.err and "hunter2" not in printed.err + printed.out
    assert not (tmp_path / "data").exists()
