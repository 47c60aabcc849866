"""The examples of README.md, docs/clients.md and docs/commands.md, and the programs in examples/, run as they stand.

Of a page, all fenced blocks are run in their order against one broker:
`python` blocks share their names; a `print(...)  # text` must print that text; functions `test_...` are called with the
page's broker. `console` blocks are for bash: the lines below a `$ command` are what it prints, where `...` stands for
anything. Blocks in another language are not run. The address localhost:9092 is replaced by the broker's.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import stat
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import barnabas
from barnabas.cli.main import COMMANDS
from barnabas.client.errors import ClientError
from barnabas.testing import Broker

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md", "docs/clients.md", "docs/commands.md"]
RUN = ("python", "console")
NOT_RUN = ("", "text", "properties")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXPECTED = re.compile(r"^\s*print\(.*\)  # (.*)$", re.MULTILINE)
LINK = re.compile(r"\]\(([^)#]+)(#[^)]*)?\)")
ADDRESS = "localhost:9092"
ADDRESS_SHOWN = "127.0.0.1:9092"
"""As a broker calls itself."""


class Block(NamedTuple):
    page: str
    line: int
    language: str
    text: str

    @property
    def where(self) -> str:
        return f"{self.page}:{self.line}"


def blocks_of(page: str) -> list[Block]:
    content = (ROOT / page).read_text(encoding="utf-8")
    return [
        Block(page, content.count("\n", 0, found.start()) + 2, found[1], found[2]) for found in FENCE.finditer(content)
    ]


def scripts() -> dict[str, str]:
    found: dict[str, str] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
    return found


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every command of the package under its name, whether or not it is installed."""
    folder = tmp_path_factory.mktemp("bin")
    for name, target in scripts().items():
        module, function = target.split(":")
        program = folder / name
        program.write_text(f"#!{sys.executable}\nimport sys\nfrom {module} import {function}\nsys.exit({function}())\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    (folder / "python").symlink_to(sys.executable)
    return folder


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
    names: dict[str, Any] = {"__name__": "example"}
    blocks = [block for block in blocks_of(page) if block.language in RUN]
    assert blocks
    for block in blocks:
        if block.language == "python":
            run_python(block, broker, names)
        else:
            run_console(block, broker, commands, tmp_path)


@pytest.mark.parametrize("page", PAGES)
def test_no_example_is_passed_over(page: str) -> None:
    assert {block.language for block in blocks_of(page)} <= {*RUN, *NOT_RUN}


@pytest.mark.parametrize("page", [*PAGES, "DESIGN.md", "docs/client-options.md"])
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


def run_python(block: Block, broker: Broker, names: dict[str, Any]) -> None:
    code = block.text.replace(ADDRESS, broker.bootstrap)
    printed = io.StringIO()
    before = set(names)
    # Line numbers of a traceback are those of the page.
    compiled = compile("\n" * (block.line - 1) + code, str(ROOT / block.page), "exec")
    with contextlib.redirect_stdout(printed):
        exec(compiled, names)
        for name in set(names) - before:
            if name.startswith("test_"):
                names[name](broker)
    expected = [found[1] for found in EXPECTED.finditer(code)]
    if expected:
        assert printed.getvalue().splitlines() == expected, block.where


def run_console(block: Block, broker: Broker, commands: Path, folder: Path) -> None:
    environment = os.environ | {
        "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
        "BARNABAS_BOOTSTRAP": broker.bootstrap,
        "COLUMNS": "120",
    }
    for command, expected in console_commands(block):
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command.replace(ADDRESS, broker.bootstrap)],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
        )
        shown = done.stdout.replace(broker.bootstrap, ADDRESS_SHOWN)
        assert re.fullmatch(pattern_of(expected), shown), f"{block.where}: {command}\n{shown}"


def console_commands(block: Block) -> Iterator[tuple[str, str]]:
    """Commands with what they print. A command goes on in the next line after a backslash."""
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        lines = part.splitlines(keepends=True)
        end = next(number for number, line in enumerate(lines) if not line.endswith("\\\n")) + 1
        yield "".join(lines[:end]), "".join(lines[end:])


def pattern_of(expected: str) -> str:
    """`...` is anything, within a line or, alone on a line, any number of lines. Blanks at line ends do not count."""
    parts = []
    for line in expected.splitlines():
        if line.strip() == "...":
            parts.append(r"(?:.*\n)*")
        else:
            parts.append(r".*".join(re.escape(part) for part in line.rstrip().split("...")) + r" *\n")
    return "".join(parts)


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
