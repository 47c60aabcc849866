"""Requests of ZooKeeper that kazoo lacks, or whose responses it does not pass on in full, in the form that kazoo sends.

    multi (14)       operations, all or nothing; kazoo does not report the transaction's number
    multiRead (22)   many reads in one request, since ZooKeeper 3.6: ten thousand nodes in a tenth of a second
    addWatch (106)   a persistent watch of a node and all below, since ZooKeeper 3.6

multi and multiRead are a list of (int type, bool done, int error) + request, in both directions.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from kazoo.client import KazooClient
from kazoo.protocol.serialization import Create as CreateRequest
from kazoo.protocol.serialization import (
    GetChildren,
    GetData,
    MultiHeader,
    SetData,
    int_struct,
    multiheader_struct,
    read_buffer,
    read_string,
    stat_struct,
    write_string,
)
from kazoo.protocol.states import ZnodeStat

CONNECTION_LOSS, MARSHALLING_ERROR, UNIMPLEMENTED, OPERATION_TIMEOUT = -4, -5, -6, -7
NO_NODE, NO_AUTH, BAD_VERSION, NODE_EXISTS, NOT_EMPTY = -101, -102, -103, -110, -111
_ROLLED_BACK, _NOT_REACHED = 0, -2
_ERROR_TYPE: Final = -1
_RECURSIVE: Final = 1


class Failure(NamedTuple):
    """What became of one operation."""

    code: int


class _Several:
    """kazoo asks a request for `type`, `serialize` and `deserialize`, in the thread of its connection."""

    type: int

    def __init__(self, client: KazooClient, operations: Sequence[Any]) -> None:
        self.zxid = 0
        """Of the response: of the transaction, or the newest that the server knew while it read."""
        self._client = client
        self._operations = operations

    def serialize(self) -> bytes:
        content = bytearray()
        for operation in self._operations:
            content += multiheader_struct.pack(operation.type, False, -1)
            content += operation.serialize()
        return bytes(content + multiheader_struct.pack(-1, True, -1))

    def deserialize(self, buffer: bytes, offset: int) -> list[Any]:
        self.zxid = self._client.last_zxid  # of this very response: kazoo has just set it
        results: list[Any] = []
        while True:
            header, offset = MultiHeader.deserialize(buffer, offset)
            if header.done:
                return results
            result, offset = self._result(header.type, buffer, offset)
            results.append(result)

    def _result(self, kind: int, buffer: bytes, offset: int) -> tuple[Any, int]:
        if kind == _ERROR_TYPE:
            return Failure(int_struct.unpack_from(buffer, offset)[0]), offset + int_struct.size
        if kind == CreateRequest.type:
            _, offset = read_string(buffer, offset)
        elif kind == SetData.type:
            return _stat(buffer, offset), offset + stat_struct.size
        return None, offset


class Multi(_Several):
    type = 14


class MultiRead(_Several):
    """Of GetData and GetChildren; results are (data or None, stat), a list of names, or a Failure."""

    type = 22

    def _result(self, kind: int, buffer: bytes, offset: int) -> tuple[Any, int]:
        if kind == GetData.type:
            data, offset = read_buffer(buffer, offset)
            return (data, _stat(buffer, offset)), offset + stat_struct.size
        if kind == GetChildren.type:
            count = int_struct.unpack_from(buffer, offset)[0]
            offset += int_struct.size
            names = []
            for _ in range(count):
                name, offset = read_string(buffer, offset)
                names.append(name)
            return names, offset
        return super()._result(kind, buffer, offset)


class AddWatch:
    type = 106

    def __init__(self, path: str) -> None:
        self.path = path

    def serialize(self) -> bytes:
        return b"".join((write_string(self.path), int_struct.pack(_RECURSIVE)))

    def deserialize(self, buffer: bytes, offset: int) -> bool:
        return True


def first_failure(results: Sequence[Any]) -> tuple[int, int] | None:
    """Position and code of what made a multi fail; the other operations only share its fate."""
    for position, result in enumerate(results):
        if isinstance(result, Failure) and result.code not in (_ROLLED_BACK, _NOT_REACHED):
            return position, result.code
    return None


def _stat(buffer: bytes, offset: int) -> ZnodeStat:
    return ZnodeStat._make(stat_struct.unpack_from(buffer, offset))
