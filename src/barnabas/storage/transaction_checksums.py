"""What the transaction indexes of a log have to hold: transaction-index-checkpoint in the partition's folder.

One line per .txnindex that has entries: base offset, number of entries, CRC32C of the file. A missing or changed index
would show aborted records to read_committed consumers, and neither its absence nor a flipped byte shows by itself. The
file exists only where a transaction was aborted, so that opening any other log costs nothing. Apache Kafka ignores it;
an index that Kafka has changed does not match and is built again from the log.

Written when a segment is closed, truncated or compacted and when the log is closed; the flush of the log flushes it.
The index of the active segment may have grown since: there the first entries are compared.
"""

import os
from collections.abc import Collection, Sequence
from typing import Final

from crc32c import crc32c

from barnabas.storage.checkpoints import CorruptCheckpointError, decode_checkpoint, encode_checkpoint
from barnabas.storage.files import Files
from barnabas.storage.sparse_index import CorruptIndexError
from barnabas.storage.transaction_index import AbortedTransaction, encode_entries

TRANSACTION_INDEX_CHECKPOINT: Final = "transaction-index-checkpoint"


class TransactionChecksums:
    __slots__ = ("_changed", "_files", "_known", "_trusts_unknown", "_unsynced", "path")

    def __init__(self, files: Files, directory: str) -> None:
        self._files = files
        self.relocate(directory)
        self._known: dict[int, tuple[int, int]] = {}
        self._trusts_unknown = True
        self._changed = False
        self._unsynced = False

    def relocate(self, directory: str) -> None:
        self.path = os.path.join(directory, TRANSACTION_INDEX_CHECKPOINT)

    def load(self) -> None:
        """Raises CorruptCheckpointError, and from then on no index is trusted that is not known."""
        try:
            entries = decode_checkpoint(self._files.read(self.path))
            self._known = {int(base_offset): (int(count), int(crc)) for base_offset, count, crc in entries}
        except (ValueError, CorruptCheckpointError) as error:
            self._trusts_unknown = False
            self._changed = True
            raise CorruptCheckpointError(f"{self.path}: {error}") from error

    def knows(self, base_offset: int) -> bool:
        return base_offset in self._known or not self._trusts_unknown

    def check(self, base_offset: int, entries: Sequence[AbortedTransaction], *, may_have_grown: bool) -> None:
        """Raises CorruptIndexError if these cannot be the entries of that segment."""
        expected = self._known.get(base_offset)
        if expected is None:
            if not self._trusts_unknown:
                raise CorruptIndexError(f"{self.path} is damaged, so that no index can be relied on")
            return
        count, crc = expected
        known = entries[:count] if may_have_grown else entries
        if len(known) != count or crc32c(encode_entries(known)) != crc:
            raise CorruptIndexError(
                f"the index of segment {base_offset} has {len(entries)} entries, which are not the {count} it had"
            )

    def note(self, base_offset: int, entries: Sequence[AbortedTransaction]) -> None:
        found = (len(entries), crc32c(encode_entries(entries))) if entries else None
        if found == self._known.get(base_offset):
            return
        if found is None:
            del self._known[base_offset]
        else:
            self._known[base_offset] = found
        self._changed = True

    def write(self, base_offsets: Collection[int]) -> None:
        """Writes what changed, for the segments that the log has. Raises OSError, and is then still to be written."""
        if not self._changed:
            return
        kept = {base_offset: self._known[base_offset] for base_offset in base_offsets if base_offset in self._known}
        lines = [f"{base_offset} {count} {crc}" for base_offset, (count, crc) in kept.items()]
        self._files.write_whole(self.path, encode_checkpoint(lines), sync=False)
        self._known = kept
        self._changed = False
        self._unsynced = True

    def sync(self) -> None:
        """From the flush thread. The file is whole at any time, so that flushing its present content is enough."""
        if self._unsynced:
            self._unsynced = False
            try:
                self._files.open(self.path).fsync()
            except OSError:
                self._unsynced = True
                raise
