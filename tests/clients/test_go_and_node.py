"""A Go client (franz-go) and a Node client (kafkajs), each by a small program of tests/foreign."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
GO_PROGRAM = ROOT / ".build" / "go-roundtrip"
NODE_PROGRAM = ROOT / "tests" / "foreign" / "node" / "roundtrip.js"
NODE_MODULES = ROOT / ".build" / "node" / "node_modules"


def report_of(command: list[str], **environment: str) -> dict[str, Any]:
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=90, check=False, env=os.environ | environment
    )
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


@pytest.mark.skipif(not GO_PROGRAM.exists(), reason="the franz-go program was not built (tests/foreign/install.sh)")
def test_franz_go(bootstrap: str, new_name: str) -> None:
    report = report_of([str(GO_PROGRAM), bootstrap, new_name])
    assert report == {"end_offset": 250, "seen": dict.fromkeys(["none", "gzip", "snappy", "lz4", "zstd"], 50)}


@pytest.mark.skipif(
    shutil.which("node") is None or not (NODE_MODULES / "kafkajs").exists(),
    reason="node or kafkajs is missing (tests/foreign/install.sh)",
)
def test_kafkajs(bootstrap: str, new_name: str) -> None:
    report = report_of(["node", str(NODE_PROGRAM), bootstrap, new_name], NODE_PATH=str(NODE_MODULES))
    assert report == {
        "created": True,
        "createdByDefaults": True,
        "createdAgain": False,
        "partitions": 2,
        "end": "100",
        "byTime": "0",
        "low": "10",
        "partitionsAfter": 3,
        "brokers": 1,
        "configs": True,
    }
