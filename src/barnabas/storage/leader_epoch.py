"""Which leader epoch started at which offset: the leader-epoch-checkpoint of a partition.

Followers and consumers find with it where their log and the leader's part ways. The file is replaced without a flush
when an epoch starts, because that happens on the event loop; the flush of the log flushes it before the recovery point
moves, and recovery reads everything above that point again from the batches.
"""

from bisect import bisect_left, bisect_right

from barnabas.storage.checkpoints import CorruptCheckpointError, decode_checkpoint, encode_checkpoint
from barnabas.storage.files import Files
from barnabas.types import NO_LEADER_EPOCH

UNDEFINED_OFFSET = -1


class LeaderEpochs:
    __slots__ = ("_epochs", "_files", "_starts", "_unsynced", "latest", "path")

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self.path = path
        self._epochs: list[int] = []
        self._starts: list[int] = []
        self._unsynced = False
        self.latest = NO_LEADER_EPOCH

    def load(self) -> None:
        """Reads the file. Raises CorruptCheckpointError; no file is an empty history."""
        try:
            entries = decode_checkpoint(self._files.read(self.path))
        except FileNotFoundError:
            return
        try:
            pairs = [(int(epoch), int(start)) for epoch, start in entries]
        except ValueError as error:
            raise CorruptCheckpointError(f"{self.path}: {error}") from error
        self._set([epoch for epoch, _ in pairs], [start for _, start in pairs])

    def entries(self) -> list[tuple[int, int]]:
        """(epoch, start offset), ascending."""
        return list(zip(self._epochs, self._starts))

    def assign(self, epoch: int, start_offset: int) -> None:
        """Notes that `epoch` starts at `start_offset`; later entries that contradict it are dropped."""
        if epoch == self.latest and start_offset >= self._starts[-1]:
            return
        keep = len(self._epochs)
        while keep and (self._epochs[keep - 1] >= epoch or self._starts[keep - 1] >= start_offset):
            keep -= 1
        self._replace([*self._epochs[:keep], epoch], [*self._starts[:keep], start_offset])

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """(largest epoch not above the requested one, offset at which the next one starts); (-1, -1) if unknown."""
        if epoch == NO_LEADER_EPOCH or not self._epochs or epoch > self.latest:
            return NO_LEADER_EPOCH, UNDEFINED_OFFSET
        if epoch == self.latest:
            return epoch, log_end_offset
        higher = bisect_right(self._epochs, epoch)
        found = self._epochs[higher - 1] if higher else epoch
        return found, self._starts[higher]

    def epoch_for_offset(self, offset: int) -> int:
        """The epoch in which the record at `offset` was written, -1 if it is older than the history."""
        number = bisect_right(self._starts, offset)
        return self._epochs[number - 1] if number else NO_LEADER_EPOCH

    def truncate_from_end(self, end_offset: int) -> None:
        """Drops epochs that start at or after `end_offset`."""
        keep = bisect_left(self._starts, end_offset)
        if keep < len(self._starts):
            self._replace(self._epochs[:keep], self._starts[:keep])

    def truncate_from_start(self, start_offset: int) -> None:
        """Drops epochs that end at or before `start_offset`; the one that holds it starts there from now on."""
        drop = bisect_right(self._starts, start_offset) - 1
        if drop >= 0 and (drop or self._starts[0] != start_offset):
            self._replace(self._epochs[drop:], [start_offset, *self._starts[drop + 1 :]])

    def clear(self) -> None:
        self._replace([], [])

    def _set(self, epochs: list[int], starts: list[int]) -> None:
        self._epochs, self._starts = epochs, starts
        self.latest = epochs[-1] if epochs else NO_LEADER_EPOCH

    def _replace(self, epochs: list[int], starts: list[int]) -> None:
        """First the file, then memory: after a failed write both are as they were, to be tried again."""
        lines = [f"{epoch} {start}" for epoch, start in zip(epochs, starts)]
        self._files.write_whole(self.path, encode_checkpoint(lines), sync=False)
        self._unsynced = True
        self._set(epochs, starts)

    def sync(self) -> None:
        """Flushes the file if it changed; from the flush thread. The file is whole at any time, so that is enough."""
        if self._unsynced:
            self._unsynced = False
            try:
                self._files.open(self.path).fsync()
            except OSError:
                self._unsynced = True
                raise
