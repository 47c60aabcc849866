"""The plan of a reset of offsets, by scenario, with an admin that knows three partitions."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas.cli.offset_reset import Plan, csv_rows, plan_reset, row_offset, within_log
from barnabas.client.admin import Admin
from barnabas.client.admin.types import OffsetSpec
from barnabas.types import TopicPartition

A, B, C = (TopicPartition("t", number) for number in range(3))
FIRST, END = {A: 10, B: 0, C: 0}, {A: 20, B: 5, C: 0}


class FakeAdmin:
    """Offset N has timestamp N * 100; the group has committed 15 for A and 3 for B."""

    def list_group_offsets(self, group_id: str) -> dict[TopicPartition, Any]:
        return {A: SimpleNamespace(offset=15), B: SimpleNamespace(offset=3), C: None}

    def list_offsets(self, wanted: dict[TopicPartition, int]) -> dict[TopicPartition, Any]:
        return {key: SimpleNamespace(offset=self._offset(key, spec)) for key, spec in wanted.items()}

    def _offset(self, key: TopicPartition, spec: int) -> int:
        if spec == OffsetSpec.EARLIEST:
            return FIRST[key]
        if spec == OffsetSpec.LATEST:
            return END[key]
        return next((offset for offset in range(FIRST[key], END[key]) if offset * 100 >= spec), -1)


ADMIN = cast(Admin, FakeAdmin())


@pytest.mark.parametrize(
    ("scenario", "value", "offsets", "missing"),
    [
        ("to-earliest", None, FIRST, []),
        ("to-latest", None, END, []),
        ("to-offset", 12, {A: 12, B: 5, C: 0}, []),
        ("to-offset", -1, FIRST, []),
        ("to-current", None, {A: 15, B: 3}, [C]),
        ("to-datetime", 400, {A: 10, B: 4}, [C]),
        ("by-duration", 1500, {A: 15}, [B, C]),
        ("by-duration", -5, {A: 10, B: 0}, [C]),
    ],
)
def test_scenarios(scenario: str, value: int | None, offsets: dict[TopicPartition, int], missing: list[Any]) -> None:
    assert plan_reset(ADMIN, "g", scenario, value, [A, B, C]) == Plan(offsets, missing)


def test_shift_stays_within_the_log() -> None:
    assert plan_reset(ADMIN, "g", "shift-by", -100, [A, B]) == Plan({A: 10, B: 0}, [])
    assert plan_reset(ADMIN, "g", "shift-by", 1, [A, B]) == Plan({A: 16, B: 4}, [])
    assert plan_reset(ADMIN, "g", "shift-by", 1, [A, C]).missing == [C]
    assert within_log(ADMIN, {}) == {}


def test_rows_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "plan.csv"
    path.write_text('t,0,5\n\ng,"a,b",1,7\n')
    assert [row_offset(row) for row in csv_rows(str(path))] == [(A, 5), (TopicPartition("a,b", 1), 7)]
    with pytest.raises(ValueError, match="unpack"):
        row_offset(["t", "0"])
