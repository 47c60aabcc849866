"""The completion scripts, in the shells themselves where they are installed."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from barnabas.cli.commands.completion import all_words, bash_script, fish_script
from barnabas.cli.main import COMMANDS, main


def completed(*typed: str) -> list[str]:
    """What bash offers after these words; the last one is being typed."""
    words = " ".join(f"'{word}'" for word in ("barnabas", *typed))
    program = f"{bash_script(all_words(), zsh=False)}\nCOMP_WORDS=({words}); COMP_CWORD={len(typed)}; _barnabas\n"
    program += 'printf "%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, timeout=30, check=True)
    assert done.stderr == ""
    return done.stdout.split()


def test_nouns_verbs_and_options() -> None:
    assert completed("to") == ["topic"]
    assert set(completed("")) == set(COMMANDS)
    assert completed("topic", "de") == ["describe", "delete", "delete-records"]
    assert completed("topic", "create", "--if") == ["--if-not-exists"]
    assert "--bootstrap-server" in completed("group", "reset-offsets", "g", "--")
    assert completed("server", "--list") == ["--listen"]
    assert completed("server", "--listen", "x", "--data") == ["--data-dir"]
    assert completed("completion", "f") == ["fish"]
    assert completed("nonsense", "x") == []


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
