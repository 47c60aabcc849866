"""How far a query is behind, in the official connector's figures.

That connector puts them into `sources[].metrics` of a query's progress. Spark lets no source that is written in Python
add to it, but it does report the two positions that the figures are made of.
"""

import json
from typing import Any

from barnabas.spark.offsets import read_position


def offsets_behind_latest(source: Any) -> dict[str, str]:
    """Of one of `sources` in a query's progress; empty before the first batch and for sources of other formats."""
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
