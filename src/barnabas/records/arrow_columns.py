"""The columns that poll_arrow returns, and pyarrow itself, which is needed only for Arrow.

Names and meaning are those of Spark's Kafka source: headers are null for a record without any, a timestamp that the
producer did not give is one millisecond before 1970. Times are UTC.
"""

import importlib
from typing import Any


def load_pyarrow() -> Any:
    try:
        return importlib.import_module("pyarrow")
    except ImportError as error:
        raise ImportError("reading into Arrow needs pyarrow: pip install 'barnabas[arrow]' (or pyarrow)") from error


def headers_type(pyarrow: Any) -> Any:
    return pyarrow.list_(pyarrow.struct([("key", pyarrow.string()), ("value", pyarrow.binary())]))


def record_schema(pyarrow: Any) -> Any:
    return pyarrow.schema(
        [
            ("key", pyarrow.binary()),
            ("value", pyarrow.binary()),
            ("headers", headers_type(pyarrow)),
            ("topic", pyarrow.string()),
            ("partition", pyarrow.int32()),
            ("offset", pyarrow.int64()),
            ("timestamp", pyarrow.timestamp("ms", tz="UTC")),
            ("timestampType", pyarrow.int32()),
        ]
    )
