"""The completion scripts, in the shells themselves where they are installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from barnabas import Consumer, Producer
from barnabas.cli.commands.completion import all_choices, all_names, all_words, bash_script, fish_script
from barnabas.cli.commands.completion_scripts import GROUPS, TOPICS
from barnabas.cli.main import COMMANDS, main
from barnabas.testing import Broker

ROOT = Path(__file__).resolve().parents[3]


def completed(*typed: str) -> list[str]:
    """What bash offers after these words; the last one is being typed."""
    words = " ".join(f"'{word}'" for word in ("barnabas", *typed))
    program = f"{bash_script(all_words(), choices=all_choices(), zsh=False)}\n"
    program += f"COMP_WORDS=({words}); COMP_CWORD={len(typed)}; _barnabas\n"
    program += 'printf "%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, timeout=30, check=True)
    assert done.stderr == ""
    return done.stdout.split()


def test_nouns_verbs_and_options() -> None:
    assert completed("to") == ["token", "topic"]
    assert set(completed("")) == set(COMMANDS)
    assert completed("topic", "de") == ["describe", "delete", "delete-records"]
    assert completed("topic", "create", "--if") == ["--if-not-exists"]
    assert "--bootstrap-server" in completed("group", "reset-offsets", "g", "--")
    assert completed("server", "--list") == ["--listen"]
    assert completed("server", "--listen", "x", "--data") == ["--data-dir"]
    assert completed("completion", "f") == ["fish"]
    assert completed("nonsense", "x") == []


def test_a_choice_is_offered_until_it_is_made() -> None:
    kinds = ["topic", "broker", "group", "client-metrics", "broker-logger"]
    assert [word for word in completed("config", "get", "") if not word.startswith("-")] == kinds
    assert completed("config", "set", "--dry-run", "bro") == ["broker", "broker-logger"]
    assert completed("config", "get", "-b", "h:1", "g") == ["group"]
    for done in (["topic", ""], ["topic", "orders", ""], ["--json", "topic", "t"], ["broker", ""]):
        assert not set(completed("config", "get", *done)) & set(kinds)
    assert completed("completion", "bash", "f") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_printed_and_well_formed(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "reset-offsets" in script and script.endswith("\n")
    if shutil.which(shell):
        done = subprocess.run([shell, "-n"], input=script, capture_output=True, text=True, timeout=30, check=False)
        assert (done.returncode, done.stderr) == (0, "")


def test_fish_knows_every_verb() -> None:
    script = fish_script(all_words())
    for key in all_words():
        assert " ".join(key) in script
    script = fish_script(all_words(), all_names(), all_choices())
    assert '-a "topic broker group client-metrics broker-logger"' in script
    assert "config get( .*)? topic +[^ ]*" in script


def test_names_belong_where_names_are_typed() -> None:
    names = all_names()
    assert names.of_words[("consume",)] == names.of_words["topic", "describe"] == TOPICS
    assert names.of_words["group", "reset-offsets"] == names.of_options["-g"] == GROUPS
    assert ("topic", "create") not in names.of_words and ("config", "get") not in names.of_words
    assert completed("log", "d") == ["dump"] and "--deep-iteration" in completed("log", "dump", "--")


def test_names_come_from_the_broker(tmp_path: Path) -> None:
    """In bash itself, which runs `barnabas` for the names."""
    if shutil.which("bash") is None:
        pytest.skip("bash is not installed")
    command = tmp_path / "barnabas"
    command.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT / "src"}" exec "{sys.executable}" -m barnabas "$@"\n')
    command.chmod(0o755)
    with Broker({"group.initial.rebalance.delay.ms": 0}) as broker:
        with Producer(broker.bootstrap) as producer:
            producer.send("orders", b"x").result()
            producer.send("orders-dead", b"x").result()
        with Consumer(broker.bootstrap, group_id="billing", auto_offset_reset="earliest") as consumer:
            consumer.subscribe(["orders"])
            assert consumer.poll(20.0)

        def offered(*typed: str) -> list[str]:
            environment = {
                **os.environ,
                "PATH": f"{tmp_path}:{os.environ['PATH']}",
                "BARNABAS_BOOTSTRAP": "127.0.0.1:1",
            }
            line = " ".join(("barnabas", *typed))
            words = " ".join(f"'{word}'" for word in ("barnabas", *typed))
            program = (
                f"{bash_script(all_words(), all_names(), all_choices(), zsh=False)}\nCOMP_LINE='{line}'\n"
                f"COMP_WORDS=({words}); COMP_CWORD={len(typed)}; _barnabas\n"
                'printf "%s\\n" "${COMPREPLY[@]}"'
            )
            done = subprocess.run(
                ["bash", "-c", program], env=environment, capture_output=True, text=True, timeout=60, check=True
            )
            assert done.stderr == ""
            return done.stdout.split()

        at = ("-b", broker.bootstrap)
        assert offered("topic", "describe", *at, "ord") == ["orders", "orders-dead"]
        assert offered("consume", *at, "orders-") == ["orders-dead"]
        assert offered("consume", *at, "-g", "") == ["billing"]
        assert offered("group", "describe", *at, "b") == ["billing"]
        assert offered("topic", "create", *at, "ord") == []
        assert offered("config", "get", *at, "topic", "ord") == ["orders", "orders-dead"]
        assert offered("config", "unset", *at, "group", "")[-1] == "billing"
        assert offered("config", "get", *at, "broker", "o") == []
        assert offered("config", "set", *at, "topic", "orders", "ord") == []
        assert offered("produce", "orders", "-z", "") == ["none", "gzip", "snappy", "lz4", "zstd"]
        assert offered("produce", "orders", "--acks", "a") == ["all"]
        assert offered("topic", "create", "x", "-c", "retention.m") == ["retention.ms="]
        assert offered("topic", "alter", "x", "--unset", "cleanup") == ["cleanup.policy"]
        assert "num.partitions=" in offered("server", "--set", "num.")
        assert offered("consume", "orders", "-X", "max.poll.rec") == ["max.poll.records="]
        assert offered("config", "set", "topic", "orders", "compression.t") == ["compression.type="]
        assert offered("config", "unset", "broker", "0", "log.retention.m") == [
            "log.retention.minutes",
            "log.retention.ms",
        ]
        assert offered("consume", "orders", "-c", "") == []
        file = tmp_path / "client.properties"
        file.write_text(f"bootstrap.servers={broker.bootstrap}\nlinger.ms=5\n")
        assert offered("topic", "describe", "--command-config", str(file), "orders-") == ["orders-dead"]
        assert offered("topic", "describe", "-X", f"bootstrap.servers={broker.bootstrap}", "orders-") == ["orders-dead"]
        assert offered("topic", "describe", "--command-config", "missing", "ord") == []
        assert offered("topic", "describe", "ord") == []  # nobody responds: no names, no words of complaint
