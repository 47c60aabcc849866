"""What the log directories know of the broker epochs they took part in: `barnabas-broker-epoch` in each of them.

    {"epoch": 57, "boot": "d2a6...", "registering": false}

The controller trusts a broker that comes back with its records if its directories took part in its last epoch, and if
nothing that was written can be lost: the broker stopped cleanly, or the machine has been running since (`boot`), so
what a killed process had written is still there. An old copy of a directory has an old epoch. While the broker
registers, its epoch is not certain; the file says so first. Not flushed: a power loss counts as unclean anyway.
"""

import json
import logging
from collections.abc import Sequence
from typing import Any, Final

from barnabas.storage.files import Files
from barnabas.storage.log_directory import LogDirectory

logger = logging.getLogger(__name__)

BROKER_EPOCH_FILE: Final = "barnabas-broker-epoch"
UNKNOWN: Final = -1


class BrokerEpochs:
    """Read once the directories are loaded, and before the broker registers."""

    def __init__(self, files: Files, directories: Sequence[LogDirectory]) -> None:
        self._files = files
        self._directories = directories
        self._epoch = UNKNOWN

    @property
    def ids(self) -> tuple[str, ...]:
        """Of the directories that work."""
        return tuple(
            directory.properties.directory_id
            for directory in self._directories
            if directory.properties is not None and not directory.is_offline
        )

    @property
    def previous_epoch(self) -> int:
        """The lowest that any of them took part in last. A directory that was added since has none."""
        if self._epoch != UNKNOWN:
            return self._epoch
        found = [notes for notes in self._read() if notes is not None]
        if not found or any(notes.get("registering") for notes in found):
            return UNKNOWN
        return min(int(notes["epoch"]) for notes in found)

    @property
    def unclean_stop(self) -> bool:
        """Whether any of them may have lost what was written, in a process before this one."""
        if self._epoch != UNKNOWN:
            return False
        boot = self._files.boot_id()
        return any(
            not directory.was_clean and notes is not None and (not boot or notes.get("boot") != boot)
            for directory, notes in zip(self._directories, self._read())
        )

    def registering(self) -> None:
        for directory, notes in zip(self._directories, self._read()):
            if notes is not None:
                self._write(directory, {**notes, "registering": True})

    def registered(self, epoch: int) -> None:
        self._epoch = epoch
        for directory in self._directories:
            self._write(directory, {"epoch": epoch, "boot": self._files.boot_id(), "registering": False})

    def _read(self) -> list[dict[str, Any] | None]:
        return [self._read_one(directory) for directory in self._directories]

    def _read_one(self, directory: LogDirectory) -> dict[str, Any] | None:
        if directory.is_offline:
            return None
        try:
            notes = json.loads(self._files.read(_path(directory)))
            return notes if isinstance(notes.get("epoch"), int) else {"epoch": UNKNOWN, "registering": True}
        except FileNotFoundError:
            return None
        except (OSError, ValueError, AttributeError) as error:
            logger.warning("%s cannot be read, the broker epoch before is unknown: %s", _path(directory), error)
            return {"epoch": UNKNOWN, "registering": True}

    def _write(self, directory: LogDirectory, notes: dict[str, Any]) -> None:
        if directory.is_offline:
            return
        try:
            self._files.write_whole(_path(directory), json.dumps(notes).encode(), sync=False)
        except OSError as error:
            # Then the next start counts as unclean, or as one with an old copy: safe, if not welcome.
            logger.error("writing %s: %s", _path(directory), error)


def _path(directory: LogDirectory) -> str:
    return f"{directory.path}/{BROKER_EPOCH_FILE}"
