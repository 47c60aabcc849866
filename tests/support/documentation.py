"""The examples of a page of documentation, run as they stand.

All fenced blocks of a page are run in their order against one broker: `python` blocks share their names; a
`print(...)  # text` must print that text; functions `test_...` are called with the page's broker. `console` blocks are
for bash: the lines below a `$ command` are what it prints, where `...` stands for anything. Blocks in another language
are not run. The address localhost:9092 is replaced by the broker's, and who waits until nothing comes waits less long.
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
from typing import Any, NamedTuple, Protocol

ROOT = Path(__file__).resolve().parents[2]
RUN = ("python", "console")
NOT_RUN = ("", "text", "properties", "toml", "yaml", "java", "sh")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXPECTED = re.compile(r"^\s*print\(.*\)  # (.*)$", re.MULTILINE)
ADDRESS = "localhost:9092"
PATIENCE = re.compile(r"timeout=\d+\.\d(?=, stop_when_idle=True)")
ADDRESS_SHOWN = "127.0.0.1:9092"
"""As a broker calls itself."""


class Reachable(Protocol):
    """A broker, or a cluster."""

    @property
    def bootstrap(self) -> str: ...


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


def command_folder(folder: Path) -> Path:
    """Every command of the package under its name, whether or not it is installed."""
    for name, target in scripts().items():
        module, function = target.split(":")
        program = folder / name
        program.write_text(f"#!{sys.executable}\nimport sys\nfrom {module} import {function}\nsys.exit({function}())\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    (folder / "python").symlink_to(sys.executable)
    return folder


def run_blocks(blocks: list[Block], broker: Reachable, commands: Path, folder: Path, names: dict[str, Any]) -> None:
    for block in blocks:
        if block.language == "python":
            run_python(block, broker, names)
        elif block.language == "console":
            run_console(block, broker, commands, folder)


def run_python(block: Block, broker: Reachable, names: dict[str, Any]) -> None:
    code = PATIENCE.sub("timeout=1.0", block.text.replace(ADDRESS, broker.bootstrap))
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


def run_console(block: Block, broker: Reachable, commands: Path, folder: Path) -> None:
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
