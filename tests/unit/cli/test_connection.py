"""Which options reach the client: what is typed, what stands in a file, what the environment says."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from barnabas.cli.command import DEFAULT_BOOTSTRAP, add_connection_arguments
from barnabas.cli.connection import client_config
from barnabas.client.options import AdminOptions, ConsumerOptions


def bootstrap(*words: str) -> str:
    parser = argparse.ArgumentParser()
    add_connection_arguments(parser)
    return client_config(parser.parse_args(words))["bootstrap.servers"]


@pytest.mark.parametrize(
    ("words", "address"),
    [
        ((), "environment:4"),
        (("--command-config", "FILE"), "file:3"),
        (("--command-config", "FILE", "-X", "bootstrap.servers=property:2"), "property:2"),
        (("--command-config", "FILE", "-X", "bootstrap.servers=property:2", "-b", "flag:1"), "flag:1"),
        (("--command-config", "FILE", "-b", "flag:1"), "flag:1"),
        (("-X", "bootstrap.servers=property:2"), "property:2"),
    ],
)
def test_the_nearest_address_counts(
    words: tuple[str, ...], address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file for another cluster must never end at whatever listens on this machine."""
    monkeypatch.setenv("BARNABAS_BOOTSTRAP", "environment:4")
    (tmp_path / "client.properties").write_text("bootstrap.servers=file:3\n")
    given = [str(tmp_path / "client.properties") if word == "FILE" else word for word in words]
    assert bootstrap(*given) == address


def test_without_any_address_it_is_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BARNABAS_BOOTSTRAP", raising=False)
    assert bootstrap() == DEFAULT_BOOTSTRAP


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_connection_arguments(parser)
    return parser.parse_args(words)


def test_what_is_typed_goes_before_the_file(tmp_path: Path) -> None:
    """-X first, then the flags of the command, then the file, then what the command would take by itself."""
    file = tmp_path / "client.properties"
    file.write_text("group.id=file\nclient.id=file\nauto.offset.reset=latest\nlinger.ms=5\n")
    typed = {"group.id": "flag", "client.id": "flag", "isolation.level": None}
    defaults = {"auto.offset.reset": "earliest", "check.crcs": "false"}
    options = parsed("--command-config", str(file), "-X", "client.id=property", "-b", "a:1")
    assert client_config(options, ConsumerOptions, typed, defaults) == {
        "group.id": "flag",
        "client.id": "property",
        "auto.offset.reset": "latest",
        "check.crcs": "false",
        "bootstrap.servers": "a:1",
    }


def test_a_file_may_be_for_several_kinds_of_clients(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "client.properties"
    file.write_text("group.id=g\nlinger.ms=5\nclient.id=c\nlingr.ms=5\n")
    options = parsed("--command-config", str(file), "-X", "lingr.ms=5", "-b", "a:1")
    # What was typed stays, for the client to refuse.
    expected = {"client.id": "c", "lingr.ms": "5", "bootstrap.servers": "a:1"}
    assert client_config(options, AdminOptions) == expected
    assert capsys.readouterr().err == (
        f"WARN: {file}: lingr.ms: no client has this option, left out (did you mean linger.ms?)\n"
    )
