"""The examples of README.md and of pages in docs/, and the programs in examples/, run as they stand.

How: tests/support/documentation.py. docs/spark.md and docs/delayed.md are run by
tests/spark/test_documentation.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from documentation import (
    NOT_RUN,
    ROOT,
    RUN,
    Block,
    blocks_of,
    command_folder,
    run_blocks,
    run_console,
    run_python,
    scripts,
)
from secured_page import PAGE as SECURITY_PAGE
from secured_page import page_blocks, run_page

import barnabas
from barnabas.cli.main import COMMANDS
from barnabas.client.errors import ClientError
from barnabas.config.properties import parse_properties
from barnabas.testing import Broker, Cluster

CLUSTER_PAGE = "docs/cluster.md"
TOKENS_PAGE = "docs/tokens.md"
PAGES = ["README.md", "docs/clients.md", "docs/commands.md", "docs/console.md", "docs/monitoring.md", "docs/testing.md"]
LINK = re.compile(r"\]\(([^)#]+)(#[^)]*)?\)")


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return command_folder(tmp_path_factory.mktemp("bin"))


@pytest.fixture
def broker() -> Iterator[Broker]:
    """Does not wait three seconds for more members when a group begins."""
    with Broker({"group.initial.rebalance.delay.ms": 0}) as broker:
        yield broker


@pytest.mark.parametrize("page", PAGES)
def test_examples_of_a_page_run(
    page: str, broker: Broker, commands: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ca.pem").touch()  # a client notices when it is made that the file is not there
    blocks = [block for block in blocks_of(page) if block.language in RUN]
    assert blocks
    run_blocks(blocks, broker, commands, tmp_path, {"__name__": "example"})


def test_the_commands_of_the_cluster_page_run(commands: Path, tmp_path: Path) -> None:
    with Cluster() as cluster:
        run_blocks(
            [block for block in blocks_of(CLUSTER_PAGE) if block.language in RUN], cluster, commands, tmp_path, {}
        )


def test_the_examples_of_the_page_about_tokens_run(commands: Path, tmp_path: Path) -> None:
    blocks = blocks_of(TOKENS_PAGE)
    settings, client = (block.text for block in blocks if block.language == "properties")
    users = {"alice": "alice-secret"}
    (tmp_path / "alice.properties").write_text(client)
    given = parse_properties(settings)
    given["sasl.enabled.mechanisms"] += ",PLAIN"  # by which brokers of `barnabas.testing` log in to each other
    with Broker(given, listeners=["SASL_PLAINTEXT"], users=users) as broker:
        run_blocks(blocks, broker, commands, tmp_path, {})


def test_the_page_about_security_runs(commands: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its program for Spark is run by tests/spark/test_documentation.py."""
    monkeypatch.chdir(tmp_path)
    run_page(page_blocks(with_spark=False), commands, tmp_path, {})


@pytest.mark.parametrize("page", [*PAGES, SECURITY_PAGE])
def test_no_example_is_passed_over(page: str) -> None:
    assert {block.language for block in blocks_of(page)} <= {*RUN, *NOT_RUN}


@pytest.mark.parametrize(
    "page",
    [
        *PAGES,
        "DESIGN.md",
        "docs/client-options.md",
        "docs/operations.md",
        "docs/spark.md",
        "docs/delayed.md",
        CLUSTER_PAGE,
        TOKENS_PAGE,
        SECURITY_PAGE,
    ],
)
def test_links_lead_somewhere(page: str) -> None:
    content = (ROOT / page).read_text(encoding="utf-8")
    folder = (ROOT / page).parent
    broken = [link[1] for link in LINK.finditer(content) if "://" not in link[1] and not (folder / link[1]).exists()]
    assert broken == []


def test_the_table_of_errors_is_complete_and_true() -> None:
    page = (ROOT / "docs/clients.md").read_text(encoding="utf-8")
    told = dict(re.findall(r"^\| `(\w+Error)` \| (yes|no) \|", page, re.MULTILINE))
    classes = {name: getattr(barnabas, name) for name in barnabas.__all__ if name.endswith("Error")}
    del classes["KafkaError"]
    assert told == {name: "yes" if is_retriable(kind) else "no" for name, kind in classes.items()}


def test_every_command_is_named() -> None:
    page = (ROOT / "docs/commands.md").read_text(encoding="utf-8")
    kafkas = {name for name in scripts() if name.endswith(".sh")}
    assert set(re.findall(r"`(kafka-[a-z0-9-]+\.sh)`", page)) == kafkas
    nouns = page.split("## Barnabas's commands")[1].split("On all of them:")[0]
    first_cells = "".join(re.findall(r"^\|[^|]*\|", nouns, re.MULTILINE))
    assert set(re.findall(r"`([a-z]+)`", first_cells)) == set(COMMANDS)


def is_retriable(kind: type[ClientError]) -> bool:
    error = kind.__new__(kind)
    ClientError.__init__(error, "")
    return error.retriable


class TestThatTheseTestsCanFail:
    def test_an_output_that_differs(self, broker: Broker, commands: Path, tmp_path: Path) -> None:
        for expected, fits in (("a b c\n", True), ("a ... c\n", True), ("...\n", True), ("a\n", False), ("", False)):
            block = Block("page.md", 1, "console", f"$ echo a b \\\n    c\n{expected}")
            if fits:
                run_console(block, broker, commands, tmp_path)
            else:
                with pytest.raises(AssertionError, match=r"page\.md:1"):
                    run_console(block, broker, commands, tmp_path)

    def test_python_that_prints_something_else(self, broker: Broker) -> None:
        run_python(Block("page.md", 1, "python", "print(1 + 1)  # 2\n"), broker, {})
        with pytest.raises(AssertionError):
            run_python(Block("page.md", 1, "python", "print(1 + 1)  # 3\n"), broker, {})
        with pytest.raises(AssertionError):
            run_python(Block("page.md", 1, "python", "def test_it(broker): assert not broker\n"), broker, {})
