"""Which options the clients of `produce`, `consume` and `perf` get, and how producers end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from barnabas.cli.commands import consume, perf, produce
from barnabas.cli.data import clients
from barnabas.client.options import ConsumerOptions, ProducerOptions


class Made(Exception):
    """The client was about to be made, with these options."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config


@pytest.fixture(autouse=True)
def _no_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    def from_config(config: dict[str, Any]) -> Any:
        raise Made(config)

    monkeypatch.setattr(clients.Producer, "from_config", from_config)
    monkeypatch.setattr(clients.Consumer, "from_config", from_config)


def config_of(command: Any, *words: str) -> dict[str, Any]:
    with pytest.raises(Made) as made:
        command(list(words))
    return made.value.config


@pytest.fixture
def file(tmp_path: Path) -> str:
    file = tmp_path / "shared.properties"
    file.write_text("acks=0\ngroup.id=file\ncompression.type=gzip\nauto.offset.reset=latest\nlinger.ms=900\n")
    return str(file)


def test_what_is_typed_goes_before_the_file(file: str) -> None:
    sent = config_of(produce.main, "t", "--acks", "all", "--command-config", file)
    assert (sent["acks"], sent["compression.type"]) == ("all", "gzip")
    sent = config_of(perf.main, "produce", "t", "-z", "lz4", "--command-config", file, "-X", "acks=1")
    assert (sent["acks"], sent["compression.type"]) == ("1", "lz4")
    read = config_of(consume.main, "t", "-g", "flag", "-o", "beginning", "--command-config", file)
    assert (read["group.id"], read["auto.offset.reset"]) == ("flag", "earliest")
    assert config_of(consume.main, "t", "-g", "flag", "--command-config", file, "-X", "group.id=x")["group.id"] == "x"
    read = config_of(perf.main, "consume", "t", "-g", "flag", "--from-latest", "--command-config", file)
    assert (read["group.id"], read["auto.offset.reset"]) == ("flag", "latest")


def test_the_file_goes_before_what_a_command_takes_by_itself(file: str) -> None:
    assert config_of(consume.main, "t", "-g", "flag", "--command-config", file)["auto.offset.reset"] == "latest"
    read = config_of(perf.main, "consume", "t", "--command-config", file)
    assert (read["group.id"], read["auto.offset.reset"]) == ("file", "latest")


def test_reading_without_a_group_commits_nothing(file: str) -> None:
    """The file's group is somebody else's: its offsets must not move because somebody had a look."""
    assert config_of(consume.main, "t", "--command-config", file)["enable.auto.commit"] == "false"
    assert "enable.auto.commit" not in config_of(consume.main, "t", "-g", "flag")


def test_a_time_out_ends_the_patience_with_deliveries_too(file: str) -> None:
    for words in ([], ["--command-config", file], ["-X", "linger.ms=2"]):
        options = ProducerOptions.from_config(config_of(produce.main, "t", "--timeout", "0.5", *words))
        assert (options.max_block_ms, options.delivery_timeout_ms) == (500, 500)
    options = ProducerOptions.from_config(config_of(produce.main, "t", "--timeout", "500", "--command-config", file))
    assert (options.delivery_timeout_ms, options.request_timeout_ms, options.linger_ms) == (500_000, 30_000, 900)
    typed = ["-X", "delivery.timeout.ms=40000", "-X", "request.timeout.ms=1000", "-X", "max.block.ms=7"]
    options = ProducerOptions.from_config(config_of(produce.main, "t", "--timeout", "0.5", *typed))
    assert (options.max_block_ms, options.delivery_timeout_ms) == (7, 40_000)
    read = ConsumerOptions.from_config(config_of(consume.main, "t", "--timeout", "0.5"))
    assert read.default_api_timeout_ms == 500
