"""`barnabas plan`: from typed figures, and from figures that it measures itself."""

from __future__ import annotations

import json
import subprocess
import sys

from barnabas import Admin
from barnabas.testing import Broker


def plan(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "barnabas", "plan", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_plan_without_a_cluster() -> None:
    done = plan("--rate", "20k", "--record-size", "1kB", "--broker-in", "50MB", "--consumer", "5MB", "--groups", "2")
    assert done.returncode == 0, done.stderr
    rows = {line.split("  ")[0]: line.split() for line in done.stdout.splitlines()}
    assert {"brokers", "partitions", "disk", "page cache", "network in", "network out"} <= set(rows)
    assert "2 to write 60.0 MB/s (50.0 MB/s each)" in done.stdout and "3 for the replicas" in done.stdout
    assert "figures: given, the others of docs/benchmarks.md" in done.stdout


def test_it_measures() -> None:
    with Broker() as broker:
        words = ("--rate", "100", "--record-size", "100", "--measure", "--records", "2000", "--processes", "2")
        done = plan(*words, "--json", "-b", broker.bootstrap)
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert found["figures"] == "measured with 2 producers and consumers at once"
        load = found["load"]
        for name in ("broker_bytes", "broker_read_bytes", "partition_bytes", "consumer_bytes"):
            assert load[name] > 1000, name
        assert load["broker_bytes"] >= load["partition_bytes"]
        with Admin(broker.bootstrap) as admin:
            assert not admin.list_topics(), "its topics are gone"


def test_wrong_use() -> None:
    for words, reason in (
        ((), "--rate"),
        (("--rate", "0", "--record-size", "1"), "--rate"),
        (("--rate", "1", "--record-size", "x"), "--record-size"),
        (("--rate", "1", "--average-rate", "2", "--record-size", "1"), "--average-rate"),
    ):
        done = plan(*words)
        assert (done.returncode, done.stdout) == (2, "") and reason in done.stderr


def test_a_cluster_that_is_not_there() -> None:
    done = plan("--rate", "1", "--record-size", "1", "--measure", "-b", "127.0.0.1:1", "--timeout", "1")
    assert (done.returncode, done.stdout) == (1, "")
