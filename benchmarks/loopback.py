"""The machine's own throughput over a loopback connection: sendfile on one side, recv_into on the other, no protocol.

Neither a broker nor a client can be faster, so it is shown next to the rows that come close. The receiver is woken for
a large piece at a time, as a client should be: if woken for each segment, it takes twice as long.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

MEGABYTE = 1024 * 1024
TOTAL_BYTES = 512 * MEGABYTE
AT_ONCE_BYTES = MEGABYTE
WAKE_UP_BYTES = MEGABYTE // 4


def bytes_per_second(directory: Path) -> float:
    file = directory / "loopback"
    file.write_bytes(os.urandom(MEGABYTE) * (TOTAL_BYTES // MEGABYTE))
    try:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            port = listening.getsockname()[1]
            sender = subprocess.Popen([sys.executable, __file__, str(port), str(file)])
            connection, _ = listening.accept()
            with connection:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, WAKE_UP_BYTES)
                room, left = bytearray(AT_ONCE_BYTES), TOTAL_BYTES
                started = time.perf_counter()
                while left and (received := connection.recv_into(room)):
                    left -= received
                took = time.perf_counter() - started
            if sender.wait() or left:
                raise RuntimeError(f"the sender stopped {left} bytes before the end")
    finally:
        file.unlink()
    return TOTAL_BYTES / took


def send(port: int, path: str) -> None:
    with open(path, "rb") as file, socket.create_connection(("127.0.0.1", port)) as connection:
        position = 0
        while sent := os.sendfile(connection.fileno(), file.fileno(), position, AT_ONCE_BYTES):
            position += sent


if __name__ == "__main__":
    send(int(sys.argv[1]), sys.argv[2])
