"""What the server command changes in its process, in processes of their own."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import resource
from barnabas.server.process import keep_freed_memory
kept = {call}
def work():
    blocks = [bytearray(100_000) for _ in range(10)]
for _ in range(20):
    work()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(100):
    work()
print(kept, resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def page_faults(call: str) -> tuple[str, int]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(call=call)], capture_output=True, text=True, check=True, timeout=60
    )
    kept, faults = done.stdout.split()
    return kept, int(faults)


def test_freed_memory_is_kept() -> None:
    kept, faults = page_faults("keep_freed_memory()")
    if kept == "False":
        pytest.skip("not glibc")
    assert faults < 1000
    assert page_faults("None")[1] > 10_000, "the C library keeps it by itself: the call is not needed any more"
