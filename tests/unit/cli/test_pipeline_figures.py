"""Figures on the command line of `barnabas pipeline` that mean nothing: a line says so, before anything is done."""

from __future__ import annotations

import pytest

from barnabas.cli.commands.pipeline import main


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["generate", "--rate", "0"], "--rate: '0' is no number above 0"),
        (["generate", "--rate", "fast"], "--rate: 'fast' is no number above 0"),
        (["generate", "--duration", "nan"], "--duration: 'nan' is no number above 0"),
        (["generate", "--count", "-1"], "--count: '-1' is no whole number above 0"),
        (["generate", "--devices", "0"], "--devices: '0' is no whole number above 0"),
        (["generate", "--dirty", "2"], "--dirty: '2' is no share between 0 and 1"),
        (["generate", "--duplicates", "x"], "--duplicates: 'x' is no share between 0 and 1"),
        (["run", "--max-offsets", "0"], "--max-offsets: '0' is no whole number above 0"),
        (["run", "--starting-offsets", "yesterday"], "--starting-offsets: 'yesterday' is not allowed, it must be"),
        (["run", "--starting-offsets", '{"ods_base_log": 3}'], "it must be earliest or latest or JSON like"),
    ],
)
def test_figures_that_mean_nothing(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        assert main(arguments) == 2
    except SystemExit as ended:
        assert ended.code == 2
    assert words in capsys.readouterr().err
