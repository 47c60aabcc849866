"""kcat, the command line of librdkafka, as a person would type it."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed")


def kcat(bootstrap: str, *arguments: str, stdin: str = "") -> str:
    # So long the broker holds back the response that says that a partition has ended.
    patience = ["-X", "fetch.wait.max.ms=20"] if "-C" in arguments else []
    command = ["kcat", "-b", bootstrap, *patience, *arguments]
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_lines_in_and_out(bootstrap: str, topic: str, codec: str) -> None:
    lines = "".join(f"key{number}:value {number}\n" for number in range(100))
    kcat(bootstrap, "-P", "-t", topic, "-p", "0", "-K", ":", "-z", codec, "-H", "source=kcat", stdin=lines)
    read = kcat(bootstrap, "-C", "-t", topic, "-p", "0", "-o", "beginning", "-e", "-q", "-f", "%k:%s\n")
    assert read == lines
    first = kcat(bootstrap, "-C", "-t", topic, "-p", "0", "-o", "0", "-c", "1", "-q", "-f", "%h %o\n")
    assert first == "source=kcat 0\n"


def test_a_big_file_as_one_message(bootstrap: str, topic: str, tmp_path: Path) -> None:
    big = tmp_path / "big"
    big.write_text("x" * 800_000)
    kcat(bootstrap, "-P", "-t", topic, "-p", "1", str(big))
    assert len(kcat(bootstrap, "-C", "-t", topic, "-p", "1", "-e", "-q", "-D", "")) == 800_000


def test_offsets(bootstrap: str, topic: str) -> None:
    kcat(bootstrap, "-P", "-t", topic, "-p", "0", stdin="".join(f"{number}\n" for number in range(10)))
    assert kcat(bootstrap, "-C", "-t", topic, "-p", "0", "-o", "-3", "-e", "-q") == "7\n8\n9\n"
    assert kcat(bootstrap, "-C", "-t", topic, "-p", "0", "-o", "5", "-c", "2", "-q") == "5\n6\n"
    assert kcat(bootstrap, "-C", "-t", topic, "-p", "0", "-o", "s@1000", "-c", "1", "-q") == "0\n"
    assert kcat(bootstrap, "-Q", "-t", f"{topic}:0:-1").strip() == f"{topic} [0] offset 10"


def test_null_values(bootstrap: str, topic: str) -> None:
    kcat(bootstrap, "-P", "-t", topic, "-p", "0", "-K", ":", "-Z", stdin="tombstone:\n")
    (record,) = kcat(bootstrap, "-C", "-t", topic, "-p", "0", "-e", "-q", "-J").splitlines()
    assert json.loads(record)["payload"] is None


def test_metadata(bootstrap: str, topic: str) -> None:
    listed = json.loads(kcat(bootstrap, "-L", "-J", "-t", topic))
    assert [broker["name"] for broker in listed["brokers"]] == [bootstrap]
    (described,) = listed["topics"]
    assert [partition["partition"] for partition in described["partitions"]] == [0, 1]
