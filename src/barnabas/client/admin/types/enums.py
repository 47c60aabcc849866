"""Numbers of the protocol with names; those of a newer broker are UNKNOWN."""

from enum import IntEnum
from typing import Self


class KafkaEnum(IntEnum):
    """Has a member UNKNOWN."""

    @classmethod
    def _missing_(cls, value: object) -> Self:
        return cls["UNKNOWN"]
