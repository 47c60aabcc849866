"""`barnabas certificate create`: files that OpenSSL takes, keys that nobody else can read, nothing overwritten."""

from __future__ import annotations

import json
import ssl
import stat
from pathlib import Path

import pytest

from barnabas.cli.main import main


def create(*words: str) -> int:
    return main(["certificate", "create", *words])


def test_an_authority_a_broker_and_clients(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "certificates"
    assert create(str(folder), "--client", "alice", "--json") == 0
    created = [Path(path).name for path in json.loads(capsys.readouterr().out)["created"]]
    assert created == ["authority.key", "authority.pem", "broker.pem", "alice.pem"]
    for name in created:
        mode = stat.S_IMODE((folder / name).stat().st_mode)
        assert (mode & 0o077 == 0) == (name != "authority.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_verify_locations(folder / "authority.pem")
    context.load_cert_chain(folder / "broker.pem")
    context.load_cert_chain(folder / "alice.pem")


def test_the_authority_is_used_again_and_nothing_is_overwritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert create(str(tmp_path)) == 0
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert create(str(tmp_path)) == 1
    assert "broker.pem exists; --replace" in capsys.readouterr().err
    assert create(str(tmp_path), "--client", "bob") == 0
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.name != "bob.pem"} == before
    assert create(str(tmp_path), "--replace", "--host", "kafka.example") == 0
    assert (tmp_path / "authority.pem").read_bytes() == before["authority.pem"]
    assert (tmp_path / "broker.pem").read_bytes() != before["broker.pem"]


@pytest.mark.parametrize("name", ["../x", "authority", "broker", "", "a/b"])
def test_a_client_name_is_no_path(tmp_path: Path, name: str) -> None:
    assert create(str(tmp_path / "new"), "--client", name) == 2
    assert not (tmp_path / "new").exists()


def test_half_an_authority_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "authority.pem").write_text("x")
    assert create(str(tmp_path)) == 1
    assert "has only one of authority.key and authority.pem" in capsys.readouterr().err


def test_without_the_package_the_way_to_it_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "cryptography.x509", None)
    assert create(str(tmp_path / "new")) == 1
    assert "pip install 'barnabas[tls-tools]'" in capsys.readouterr().err
