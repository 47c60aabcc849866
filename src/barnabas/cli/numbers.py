"""Numbers that people type, no larger than the protocol can carry: wrong use is reported before any request.

Types for options (`type=int32`), and for the numbers in files: their fault is a ValueError too.
"""

import argparse

RATE_UNITS = {"": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9}
LARGEST_TIMEOUT_S = ((1 << 31) - 1) // 1000
"""Time-outs are milliseconds in 32 bits."""


class NumberError(argparse.ArgumentTypeError, ValueError):
    """The message says what would have been right."""


def int16(text: str | int) -> int:
    return _whole(text, 15)


def int32(text: str | int) -> int:
    return _whole(text, 31)


def int64(text: str | int) -> int:
    return _whole(text, 63)


def partition(text: str) -> int:
    value = int32(text)
    if value < 0:
        raise NumberError(f"{text}: partitions are counted from 0")
    return value


def seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise NumberError(f"{text!r} is not a number of seconds") from None
    # Whatever is compared with nan is false, and it is no time either.
    if not 0 <= value <= LARGEST_TIMEOUT_S:
        raise NumberError(f"{text}: expected seconds from 0 to {LARGEST_TIMEOUT_S}")
    return value


def bytes_per_second(text: str) -> int:
    """`50MB` or `800kB`, decimal as networks count, or plain bytes."""
    number = text.strip().lower().removesuffix("/s")
    unit = number[-2:] if number[-2:] in RATE_UNITS else ""
    try:
        value = int(float(number.removesuffix(unit)) * RATE_UNITS[unit])
    except (ValueError, OverflowError):
        value = 0
    if value <= 0:
        raise NumberError(f"{text!r} is not a rate: expected bytes per second, like 50MB")
    return int64(value)


def _whole(text: str | int, bits: int) -> int:
    try:
        value = int(text)
    except ValueError:
        raise NumberError(f"{text!r} is not a whole number") from None
    if not -(1 << bits) <= value < 1 << bits:
        raise NumberError(f"{text}: the largest possible is {(1 << bits) - 1}")
    return value
