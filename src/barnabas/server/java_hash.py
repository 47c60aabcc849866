"""Which partition of a coordinator's topic a key belongs to, as Kafka computes it: clients of both must agree."""


def string_hash(text: str) -> int:
    """Java's String.hashCode: over UTF-16 code units, as a signed 32-bit number."""
    value = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFF_FFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def partition_for(key: str, partition_count: int) -> int:
    value = string_hash(key)
    # Kafka's abs maps the one number without a positive counterpart to 0.
    return 0 if value == -(1 << 31) else abs(value) % partition_count
