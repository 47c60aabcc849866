"""How far the delivery of one intake partition has come: what a new leader needs to go on exactly there.

Records are delivered in the order of their keys, (due time, offset). A mark (end, key) says: of the records below
offset `end`, beyond those of the mark before, all with a key up to `key` are done. One mark is the usual case. A second
one is there while records that came late are delivered in several transactions, or after the clock went back: the
first then has the higher key. The marks are written as the metadata of an offset of the group `__delayed.<topic>`, in
the transaction that delivers.

    1 <topic id, hex> <leader epoch> <oldest pending offset> <end>:<due>:<offset> ...
"""

from typing import NamedTuple

DELAYED_GROUP_PREFIX = "__delayed."
MOST_MARKS = 60
"""More of them than anything but a broken clock produces, and no more than offset.metadata.max.bytes has room for."""
_VERSION = "1"


class Key(NamedTuple):
    """Where a record stands in the order of delivery."""

    due_ms: int
    offset: int


class Mark(NamedTuple):
    end: int
    key: Key


class Progress(NamedTuple):
    marks: tuple[Mark, ...] = ()
    """Ends ascend, keys descend."""

    @property
    def end(self) -> int:
        """Nothing from this offset on is done."""
        return self.marks[-1].end if self.marks else 0

    def is_done(self, key: Key) -> bool:
        for end, reached in self.marks:
            if key.offset < end:
                return key <= reached
        return False

    def advanced(self, key: Key, end: int, next_key: Key | None) -> "Progress":
        """After everything pending up to `key` was delivered, among the records below `end`.

        `next_key` is the lowest that is still pending there: marks below it need not be told apart.
        """
        marks = list(self.marks)
        while marks and (marks[-1].key <= key or next_key is None or marks[-1].key < next_key):
            key = max(key, marks.pop().key)
        return Progress((*marks, Mark(end, key)))

    def cut(self, end: int) -> "Progress":
        """The log ends there since an unclean election: what comes from that offset on is new."""
        marks: list[Mark] = []
        for mark in self.marks:
            marks.append(Mark(min(mark.end, end), mark.key))
            if mark.end >= end:
                break
        return Progress(tuple(marks))


class SavedProgress(NamedTuple):
    progress: Progress
    leader_epoch: int
    """Of the leader that wrote it."""
    oldest_pending_offset: int


def write_progress(saved: SavedProgress, topic_id: bytes) -> str:
    marks = " ".join(f"{end}:{key.due_ms}:{key.offset}" for end, key in saved.progress.marks)
    return f"{_VERSION} {topic_id.hex()} {saved.leader_epoch} {saved.oldest_pending_offset} {marks}"


def read_progress(text: str | None, topic_id: bytes) -> SavedProgress | None:
    """None for that of another topic of the same name. Raises ValueError for what nobody wrote."""
    version, name, epoch, oldest, *marks = (text or "").split()
    if version != _VERSION:
        raise ValueError(f"progress of version {version!r}")
    if name != topic_id.hex():
        return None
    read = []
    for mark in marks:
        end, due_ms, offset = mark.split(":")
        read.append(Mark(int(end), Key(int(due_ms), int(offset))))
    return SavedProgress(Progress(tuple(read)), int(epoch), int(oldest))
