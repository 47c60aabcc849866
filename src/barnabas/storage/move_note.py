"""The barnabas-move file in a partition's folder: its log is about to be copied for good to another log directory.

    version: 0
    from: <id of the log directory that has the log>
    to: <id of the log directory that has the copy>

It is in both folders before the copy takes over, and the folder of the log goes away afterwards. A start that finds two
folders of one partition knows by it that neither is foreign; one that finds the log, while the directory of the copy is
offline, knows that the log may be out of date.
"""

import os
from typing import Final, NamedTuple

from barnabas.storage.files import Files

MOVE_NOTE: Final = "barnabas-move"


class MoveNote(NamedTuple):
    source_id: str
    target_id: str


def write_move_note(files: Files, folder: str, note: MoveNote) -> None:
    """Flushed, and so is the folder. Raises OSError."""
    content = f"version: 0\nfrom: {note.source_id}\nto: {note.target_id}\n"
    files.write_whole(os.path.join(folder, MOVE_NOTE), content.encode(), sync=True)


def read_move_note(files: Files, folder: str) -> MoveNote | None:
    """None if there is none, or none that can be read. Raises OSError."""
    try:
        content = files.read(os.path.join(folder, MOVE_NOTE))
    except FileNotFoundError:
        return None
    try:
        fields = dict(line.split(": ", 1) for line in content.decode("ascii").splitlines())
        return MoveNote(fields["from"], fields["to"]) if fields["version"] == "0" else None
    except (ValueError, KeyError):
        return None


def remove_move_note(files: Files, folder: str) -> None:
    files.remove(os.path.join(folder, MOVE_NOTE))
