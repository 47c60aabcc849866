"""Commands in this process against a broker in this process; `test_processes` runs them as processes too."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from barnabas.cli.main import main
from barnabas.testing import Broker


class Done(NamedTuple):
    status: int
    out: str
    err: str

    @property
    def rows(self) -> list[list[str]]:
        """The cells of a table, headers first."""
        return [line.split() for line in self.out.splitlines()]

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Command = Callable[..., Done]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"group.initial.rebalance.delay.ms": 0}) as broker:
        yield broker


@pytest.fixture
def barnabas(broker: Broker, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """`barnabas("topic", "list")`, or with the words in one text; it finds the broker in the environment."""
    monkeypatch.setenv("BARNABAS_BOOTSTRAP", broker.bootstrap)

    def run(*words: str) -> Done:
        arguments = words[0].split() if len(words) == 1 else list(words)
        capsys.readouterr()
        try:
            status = main(arguments)
        except SystemExit as exit:
            status = int(exit.code or 0)
        captured = capsys.readouterr()
        return Done(status, captured.out, captured.err)

    return run


@pytest.fixture
def topic(barnabas: Command, request: pytest.FixtureRequest) -> str:
    """A topic with two partitions, named after the test."""
    name = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)
    assert barnabas("topic", "create", name, "-p", "2").status == 0
    return name
