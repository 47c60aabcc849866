"""`df.write.format("barnabas").save()` appends, as with the official connector.

Without a mode, PySpark uses "error if exists", which Spark rejects for every Python format before any Python code is
called. So `register` changes `DataFrameWriter.save` in the driver's process: only for this format, that mode becomes
"append". The official connector treats both the same.
"""

import functools
from typing import Any, Final

_FORMAT: Final = "barnabas"
_MARK: Final = "_barnabas_appends"
_ERROR_IF_EXISTS: Final = ("error", "errorifexists", "default")


def append_by_default() -> None:
    """Once per process, for all sessions; later calls change nothing."""
    from pyspark.sql.readwriter import DataFrameWriter

    save = DataFrameWriter.save
    if hasattr(save, _MARK):
        return

    @functools.wraps(save)
    def save_or_append(
        self: Any, path: Any = None, format: Any = None, mode: Any = None, partitionBy: Any = None, **options: Any
    ) -> None:
        if str(format or self._jwrite.source()).lower() == _FORMAT:
            wanted = self._jwrite.curmode().name() if mode is None else mode
            mode = "append" if str(wanted).lower() in _ERROR_IF_EXISTS else mode
        save(self, path, format, mode, partitionBy, **options)

    setattr(save_or_append, _MARK, True)
    DataFrameWriter.save = save_or_append  # type: ignore[method-assign]
