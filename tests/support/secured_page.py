"""docs/security.md, run as it stands: its files are written, its commands start a broker of their own."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from documentation import ADDRESS, Block, blocks_of, run_console, run_python
from server_process import free_port

PAGE = "docs/security.md"
FILES = ("server.properties", "admin.properties")
STOP = "barnabas server stop --config server.properties"


class PageBroker:
    """Where the page's broker is reached."""

    def __init__(self) -> None:
        self.bootstrap = f"localhost:{free_port()}"


def page_blocks(*, with_spark: bool) -> list[Block]:
    """Without Spark neither its program is run nor the command that shows what it wrote."""
    blocks = [block for block in blocks_of(PAGE) if block.language in ("properties", "console", "python")]
    if not with_spark:
        position = next(number for number, block in enumerate(blocks) if is_for_spark(block))
        del blocks[position : position + 2]
    return blocks


def is_for_spark(block: Block) -> bool:
    return block.language == "python" and "spark.read" in block.text


def run_page(blocks: list[Block], commands: Path, folder: Path, names: dict[str, Any]) -> None:
    """`folder` is the working directory: the page's paths are relative."""
    broker = PageBroker()
    files = [block.text for block in blocks if block.language == "properties"]
    for name, text in zip(FILES, files, strict=True):
        (folder / name).write_text(text.replace(ADDRESS, broker.bootstrap))
    try:
        for block in blocks:
            if block.language == "python":
                run_python(block, broker, names)
            elif block.language == "console":
                run_console(block, broker, commands, folder)
    finally:
        # Nothing to stop if the page did; a page that failed in the middle must not leave its broker behind.
        subprocess.run([str(commands / "barnabas"), *STOP.split()[1:]], cwd=folder, check=False, capture_output=True)
