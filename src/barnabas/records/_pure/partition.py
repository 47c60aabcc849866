"""Which partition a key belongs to, as every Java client computes it: murmur2 with Kafka's seed."""

from typing import Final

_SEED: Final = 0x9747B28C
_MULTIPLIER: Final = 0x5BD1E995
_MASK: Final = 0xFFFF_FFFF


def murmur2(data: bytes | bytearray | memoryview) -> int:
    """The signed 32-bit hash of Java's Utils.murmur2."""
    data = memoryview(data).tobytes()
    length = len(data)
    whole = length & ~3
    hashed = _SEED ^ length
    for position in range(0, whole, 4):
        word = int.from_bytes(data[position : position + 4], "little") * _MULTIPLIER & _MASK
        word = (word ^ word >> 24) * _MULTIPLIER & _MASK
        hashed = (hashed * _MULTIPLIER & _MASK) ^ word
    if whole != length:
        hashed = (hashed ^ int.from_bytes(data[whole:], "little")) * _MULTIPLIER & _MASK
    hashed = (hashed ^ hashed >> 13) * _MULTIPLIER & _MASK
    hashed ^= hashed >> 15
    return hashed - (1 << 32) if hashed >> 31 else hashed


def partition_for_key(key: bytes | bytearray | memoryview, partitions: int) -> int:
    if partitions <= 0:
        raise ValueError(f"a topic cannot have {partitions} partitions")
    return (murmur2(key) & 0x7FFF_FFFF) % partitions
