"""The broker's process, from /proc: CPU, memory, descriptors. Read in a thread, because it is a system's file."""

import os
import resource
from typing import NamedTuple


class ProcessFigures(NamedTuple):
    cpu_seconds: float
    resident_bytes: int
    virtual_bytes: int
    start_seconds: float
    open_files: int
    max_files: int
    disk_read_bytes: int
    disk_write_bytes: int


def read_process() -> ProcessFigures | None:
    """None where there is no /proc."""
    try:
        with open("/proc/self/stat", "rb") as file:
            # After the name of the program, which may have spaces and brackets in it.
            fields = file.read().rpartition(b")")[2].split()
        with open("/proc/stat", "rb") as file:
            booted = next(int(line.split()[1]) for line in file if line.startswith(b"btime "))
        open_files = len(os.listdir("/proc/self/fd"))
        with open("/proc/self/io", "rb") as file:
            moved = {name: int(value) for name, value in (line.split(b": ") for line in file)}
    except (OSError, StopIteration):
        return None
    ticks = os.sysconf("SC_CLK_TCK")
    return ProcessFigures(
        (int(fields[11]) + int(fields[12])) / ticks,
        int(fields[21]) * os.sysconf("SC_PAGE_SIZE"),
        int(fields[20]),
        booted + int(fields[19]) / ticks,
        open_files,
        resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        moved[b"read_bytes"],
        moved[b"write_bytes"],
    )
