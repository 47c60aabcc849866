"""`EventRows`: the compiled twin if available, else the pure one; BARNABAS_PURE=1 forces the pure one."""

from typing import TYPE_CHECKING

from barnabas.records.codec import NATIVE

if TYPE_CHECKING:
    from barnabas.pipeline._event_rows_pure import EventRows
elif NATIVE:
    try:
        from barnabas.pipeline._event_rows import EventRows
    except ImportError:  # an older build of the extensions
        from barnabas.pipeline._event_rows_pure import EventRows
else:
    from barnabas.pipeline._event_rows_pure import EventRows

__all__ = ["EventRows"]
