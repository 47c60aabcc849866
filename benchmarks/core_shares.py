"""Parts of a core for processes, by cgroups (needs root): what more cores would give, measured where there are few.

With a tenth of a core each, brokers are the bottleneck, whatever else the machine does at the time.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

PERIOD_US = 100_000
VERSION_1, VERSION_2 = Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup")


@contextmanager
def core_shares(pids: Iterable[int], share: float) -> Iterator[None]:
    """Each process has so much of a core at most, until the block ends."""
    is_version_1 = (VERSION_1 / "cgroup.procs").exists()
    root = VERSION_1 if is_version_1 else VERSION_2
    groups = {pid: root / f"barnabas-{os.getpid()}-{pid}" for pid in pids}
    quota = int(PERIOD_US * share)
    try:
        for pid, group in groups.items():
            group.mkdir()
            if is_version_1:
                (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
                (group / "cpu.cfs_quota_us").write_text(str(quota))
            else:
                (group / "cpu.max").write_text(f"{quota} {PERIOD_US}")
            (group / "cgroup.procs").write_text(str(pid))
        yield
    finally:
        for pid, group in groups.items():
            if group.exists():
                (root / "cgroup.procs").write_text(str(pid))
                group.rmdir()
