"""Faults that a test asks for by the names of the protocol: "Produce", "NOT_LEADER_OR_FOLLOWER"."""

import difflib
import re

from barnabas.errors import ErrorCode
from barnabas.protocol.api import ApiKey
from barnabas.server.request_faults import RequestFault


def request_fault(
    api: str, error: str | ErrorCode | None, delay_ms: int, drop_answer: bool, close: bool, count: int | None
) -> RequestFault:
    """Raises ValueError, with the names that were probably meant."""
    if not (error or delay_ms or drop_answer or close):
        raise ValueError("a fault needs one of error, delay_ms, drop_answer, close")
    code = _error_code(error) if isinstance(error, str) else error
    return RequestFault(_api_key(api), code, delay_ms, drop_answer, close, count)


def _api_key(name: str) -> ApiKey:
    """`Produce`, `ListOffsets` and PRODUCE, LIST_OFFSETS alike."""
    spelled = name if name.isupper() else re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper()
    try:
        return ApiKey[spelled]
    except KeyError:
        names = {key.name: "".join(each.title() for each in key.name.split("_")) for key in ApiKey}
        near = [names[each] for each in difflib.get_close_matches(spelled, names)]
        raise ValueError(f"there is no API called {name!r}{_meant(near)}") from None


def _error_code(name: str) -> ErrorCode:
    try:
        return ErrorCode[name.upper()]
    except KeyError:
        near = difflib.get_close_matches(name.upper(), ErrorCode.__members__, n=5, cutoff=0.4)
        raise ValueError(f"there is no error code called {name!r}{_meant(near)}") from None


def _meant(near: list[str]) -> str:
    return f", did you mean {' or '.join(near)}?" if near else ""
