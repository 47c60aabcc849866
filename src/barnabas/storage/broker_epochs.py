"""What the log directories know of the broker epochs they took part in: `barnabas-broker-epoch` in each of them.

    {"epoch": 57, "boot": "d2a6...", "registering": false, "directories": {"<id>": 57, "<id of one offline>": 55}}

The controller trusts a broker that comes back with its records if its directories took part in its last epoch, and if
nothing that was written can be lost: the broker stopped cleanly, or the machine has been running since (`boot`), so
what a killed process had written is still there. An old copy of a directory has an old epoch. While the broker
registers, its epoch is not certain; the file says so first. Not flushed: a power loss counts as unclean anyway.

A directory that is offline costs its own logs only, so the broker still registers its id: `directories` has the ids of
all of them, each with the last epoch that it took part in. When it is back, it must have that epoch.
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
        """Of all directories, those that are offline too if they are known."""
        return tuple(self._epochs_by_id(UNKNOWN))

    @property
    def previous_epoch(self) -> int:
        """The lowest that any of them took part in last. A directory that was added since has none."""
        if self._epoch != UNKNOWN:
            return self._epoch
        found = [(directory, notes) for directory, notes in zip(self._directories, self._read()) if notes is not None]
        if not found or any(notes.get("registering") for _, notes in found):
            return UNKNOWN
        last = max(int(notes["epoch"]) for _, notes in found)
        expected = self._noted()
        # One that was offline meanwhile, and has missed nothing else.
        return min(
            last if notes["epoch"] == expected.get(_id_of(directory)) else int(notes["epoch"])
            for directory, notes in found
        )

    @property
    def unclean_stop(self) -> bool:
        """Whether any of them may have lost what was written, in a process before this one."""
        if self._epoch != UNKNOWN:
            return False
        boot = self._files.boot_id()
        every = [(directory, notes) for directory, notes in zip(self._directories, self._read()) if notes is not None]
        last = max((int(notes["epoch"]) for _, notes in every), default=UNKNOWN)
        # One that was offline may have failed with writes that never got to the disk.
        return any(
            not directory.was_clean and (not boot or notes.get("boot") != boot or notes["epoch"] != last)
            for directory, notes in every
        )

    def registering(self) -> None:
        for directory, notes in zip(self._directories, self._read()):
            if notes is not None:
                self._write(directory, {**notes, "registering": True})

    def registered(self, epoch: int) -> None:
        notes = {
            "epoch": epoch,
            "boot": self._files.boot_id(),
            "registering": False,
            "directories": self._epochs_by_id(epoch),
        }
        self._epoch = epoch
        for directory in self._directories:
            self._write(directory, notes)

    def _epochs_by_id(self, epoch: int) -> dict[str, int]:
        """Every directory's id with the last epoch that it took part in: the given one if it is online."""
        online = {_id_of(each): epoch for each in self._directories if each.properties and not each.is_offline}
        offline = [each for each in self._directories if each.is_offline]
        if not (online and offline):
            return online  # with no directory left the broker has no records to be trusted with
        noted = self._noted()
        known = {_id_of(each): noted.get(_id_of(each), self._epoch) for each in offline if each.properties}
        # Of one that could not be read at the start the id is in the notes of the others. More ids than directories
        # that are offline: one was wiped, or taken out of log.dirs.
        unread = {each: last for each, last in noted.items() if each not in online and each not in known}
        fits = len(unread) <= sum(each.properties is None for each in offline)
        return {**online, **known, **(unread if fits else {})}

    def _noted(self) -> dict[str, int]:
        """What the last registration wrote of all directories."""
        notes = [each for each in self._read() if each is not None]
        last = max(notes, key=lambda each: int(each["epoch"]), default={})
        found = last.get("directories")
        return {str(each): int(epoch) for each, epoch in found.items()} if isinstance(found, dict) else {}

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


def _id_of(directory: LogDirectory) -> str:
    return "" if directory.properties is None else directory.properties.directory_id


def _path(directory: LogDirectory) -> str:
    return f"{directory.path}/{BROKER_EPOCH_FILE}"
