"""crc32c.h: whichever code path this processor supports, every length and alignment matches the table implementation.

The modules that include it take the fastest way only, so the others are called here, from a program of their own.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from crc32c import crc32c

HEADER = Path(__file__).parents[3] / "src/barnabas/records/_native/crc32c.h"
PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include HEADER

typedef uint32_t (*way)(uint32_t crc, const uint8_t *data, size_t length);

static int check(const char *name, way computed, size_t least, const uint8_t *data) {
    for (size_t length = least; length < 7000; length += length < 1100 ? 1 : 37)
        for (size_t place = 0; place < 64; place += 21)
            for (uint32_t before = 0; before < 2; before++) {
                uint32_t start = before ? ~0u : 0x12345678;
                if (computed(start, data + place, length) != crc32c_by_table(start, data + place, length)) {
                    printf("%s is wrong for %zu bytes at %zu\n", name, length, place);
                    return 1;
                }
            }
    printf("%s\n", name);
    return 0;
}

int main(int count, char **arguments) {
    static uint8_t data[8192];
    srand(atoi(arguments[1]));
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(rand() >> 4);
    crc32c_prepare();
    printf("%08x %08x\n", crc32c("123456789", 9), crc32c(data, 0));
    int wrong = 0;
#ifdef CRC32C_HARDWARE
    if (crc32c_by_hardware)
        wrong += check("by_cpu", crc32c_by_cpu, 0, data);
#endif
#ifdef CRC32C_FOLDING
    if (__builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("avx2"))
        wrong += check("fold_256", crc32c_fold_256, CRC32C_FOLDED, data);
    if (__builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("avx512f"))
        wrong += check("fold_512", crc32c_fold_512, CRC32C_FOLDED, data);
#endif
    return wrong;
}
"""


@pytest.mark.parametrize("optimization", ["-O0", "-O3"])
def test_every_way_that_this_processor_has(tmp_path: Path, optimization: str) -> None:
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        pytest.skip("needs a C compiler")
    source, program = tmp_path / "ways.c", tmp_path / "ways"
    source.write_text(PROGRAM.replace("HEADER", f'"{HEADER}"', 1))
    subprocess.run([compiler, optimization, "-o", program, source], check=True)
    seed = int.from_bytes(os.urandom(3), "big")
    done = subprocess.run([program, str(seed)], capture_output=True, text=True, check=False)
    print(f"seed {seed}: {done.stdout}")
    assert done.returncode == 0, done.stdout
    assert done.stdout.splitlines()[0] == f"{crc32c(b'123456789'):08x} 00000000"
