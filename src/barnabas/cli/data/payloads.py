"""What performance tests send. Made before the clock starts: making random letters would cost more than sending them.

Random payloads are a pool of several megabytes that is gone through again and again; a compressor, which looks at one
batch at a time, sees nothing twice.
"""

import random
from collections.abc import Iterator, Sequence
from itertools import cycle

POOL_BYTES = 8 << 20
POOL_RECORDS = 100_000
_LETTERS = bytes(65 + byte % 26 for byte in range(256))

Blocks = Iterator[list[bytes]]


def random_letters(size: int, count: int) -> list[bytes]:
    """At most `count` different texts of capital letters, the same ones in every run."""
    number = max(1, min(count, POOL_RECORDS, POOL_BYTES // size))
    letters = random.Random(0).randbytes(number * size).translate(_LETTERS)
    return [letters[start : start + size] for start in range(0, number * size, size)]


def drawn(payloads: Sequence[bytes], count: int) -> list[bytes]:
    """Payloads drawn at random."""
    return random.Random(0).choices(payloads, k=min(count, POOL_RECORDS))


def split_payloads(content: bytes, delimiter: str) -> list[bytes]:
    """As Java's Scanner: texts between delimiters, a regular expression; one at either end delimits nothing."""
    import re

    texts = re.split(delimiter, content.decode(errors="replace"))
    if texts and not texts[0]:
        texts.pop(0)
    if texts and not texts[-1]:
        texts.pop()
    return [text.encode() for text in texts]


def repeated(pool: Sequence[bytes], count: int, block: int) -> Blocks:
    """`count` payloads in blocks of at most `block`, from the pool again and again."""
    blocks = [list(pool[start : start + block]) for start in range(0, len(pool), block)]
    left = count
    for each in cycle(blocks):
        if left <= len(each):
            yield each[:left]
            return
        left -= len(each)
        yield each


def numbers(count: int, block: int) -> Blocks:
    """0, 1, 2 ... as text."""
    for start in range(0, count, block):
        yield [b"%d" % number for number in range(start, min(start + block, count))]
