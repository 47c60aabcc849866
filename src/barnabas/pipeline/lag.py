"""The lag of a query, from the brokers. Only displayed; the query does not depend on it.

Spark's own report cannot be used: its end offsets are from when the batch was planned.
"""

import contextlib
from collections.abc import Mapping
from typing import Final

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.types import OffsetSpec
from barnabas.client.options import AdminOptions
from barnabas.errors import KafkaError
from barnabas.types import TopicPartition

_PATIENCE_S: Final = 2.0


class LagMeter:
    """Connects on first use. Not thread-safe."""

    def __init__(self, client: Mapping[str, str]) -> None:
        self._client = {name: value for name, value in client.items() if name in AdminOptions.settings}
        self._admin: Admin | None = None

    def behind(self, position: Mapping[TopicPartition, int]) -> int | None:
        """Records after `position`; None if the brokers do not respond in time."""
        try:
            if self._admin is None:
                self._admin = Admin.from_config(self._client)
            ends = self._admin.list_offsets(dict.fromkeys(position, OffsetSpec.LATEST), timeout=_PATIENCE_S)
        except KafkaError:
            return None
        return sum(max(0, ends[tp].offset - offset) for tp, offset in position.items())

    def close(self) -> None:
        if self._admin is not None:
            with contextlib.suppress(KafkaError):
                self._admin.close()
            self._admin = None
