"""Which options reach the client: what is typed, what stands in a file, what the environment says."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from barnabas.cli.command import DEFAULT_BOOTSTRAP, add_connection_arguments
from barnabas.cli.connection import client_config


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
