"""The lag of a query, as the metrics of the official connector.

That connector reports them in `sources[].metrics` of a query's progress. Spark does not let a Python source add to it,
but it does report the two positions that the metrics are computed from.
"""

import json
from typing import Any

from barnabas.spark.offsets import read_position


def offsets_behind_latest(source: Any) -> dict[str, str]:
    """The metrics of one of `sources` in a query's progress; empty before the first batch and for other formats."""
    end, latest = (_offsets(source[name]) for name in ("endOffset", "latestOffset"))
    behind = [offset - end.get(partition, 0) for partition, offset in latest.items()]
    if not end or not behind:
        return {}
    return {
        "minOffsetsBehindLatest": str(min(behind)),
        "maxOffsetsBehindLatest": str(max(behind)),
        "avgOffsetsBehindLatest": str(sum(behind) / len(behind)),
    }


def _offsets(position: Any) -> dict[Any, int]:
    try:
        tree = json.loads(position) if isinstance(position, str) else position
        return read_position(tree)[0] if isinstance(tree, dict) else {}
    except ValueError:
        return {}
