"""`EventRows`, compiled or pure."""

from typing import TYPE_CHECKING

from barnabas.twins import choose_twin

if TYPE_CHECKING:
    from barnabas.pipeline._event_rows_pure import EventRows
else:
    EventRows = choose_twin("barnabas.pipeline._event_rows", "barnabas.pipeline._event_rows_pure").EventRows

__all__ = ["EventRows"]
