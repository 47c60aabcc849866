"""Machines by transcript: lines that begin with `>` are input, the rest is the expected trace, `#` begins a remark.

`<area>/*.txt` is played by the class `Player` of `tests/support/transcript_<area>.py`: `play(line)` takes one input and
gives the lines of its trace. Rewrite the files after a wanted change with `REWRITE_TRANSCRIPTS=1 pytest <this file>`,
and review the diff.
"""

import importlib
import os
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
TRANSCRIPTS = sorted(FOLDER.glob("*/*.txt"))


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_transcript(path: Path) -> None:
    player = importlib.import_module(f"transcript_{path.parent.name}").Player()
    text = path.read_text(encoding="utf-8")
    played: list[str] = []
    for line in text.splitlines():
        if line.startswith(">"):
            played += [line, *player.play(line[1:].strip())]
        elif line.startswith("#") or not line:
            played.append(line)
    trace = "\n".join(played) + "\n"
    if os.environ.get("REWRITE_TRANSCRIPTS"):
        path.write_text(trace, encoding="utf-8")
    assert text == trace or os.environ.get("REWRITE_TRANSCRIPTS")


def test_each_area_has_transcripts() -> None:
    areas = sorted(path.name for path in FOLDER.iterdir() if path.is_dir() and not path.name.startswith("__"))
    assert areas and all(any(path.parent.name == area for path in TRANSCRIPTS) for area in areas)
