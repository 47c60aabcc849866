"""The head of an HTTP request, and of a response: bytes to values and back, no I/O.

Only what a read-only server needs: GET and HEAD without a body, HTTP/1.0 and 1.1. Anything else is a `BadRequestError`
with the status of the response; after one the connection is closed, because nobody knows where the next request begins.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

HEAD_MAX_BYTES: Final = 8192
HEAD_END: Final = b"\r\n\r\n"
REASONS: Final = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    503: "Service Unavailable",
    505: "HTTP Version Not Supported",
}
_LINE: Final = re.compile(rb"([A-Z]{1,20}) ([\x21-\x7e]{1,2000}) HTTP/([0-9])\.([0-9])")
_FIELD: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\x20-\x7e\x80-\xff\t]*?)[ \t]*")


class BadRequestError(Exception):
    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class HttpRequest(NamedTuple):
    method: str
    path: str
    """Without the query."""
    headers: Mapping[str, str]
    """By lower-case name."""
    keep_alive: bool

    @property
    def wants_body(self) -> bool:
        return self.method != "HEAD"


class HttpResponse(NamedTuple):
    status: int
    content_type: str
    parts: Sequence[bytes]


def text_response(status: int, text: str) -> HttpResponse:
    return HttpResponse(status, "text/plain; charset=utf-8", [text.encode()])


def parse_request(head: bytes) -> HttpRequest:
    """`head` is everything before the empty line. Raises BadRequestError."""
    first, *lines = head.split(b"\r\n")
    match = _LINE.fullmatch(first)
    if match is None:
        raise BadRequestError(400, "the request line is not METHOD PATH HTTP/1.1")
    if match[3] != b"1":
        raise BadRequestError(505, "only HTTP/1.0 and 1.1 are understood")
    headers: dict[str, str] = {}
    for line in lines:
        field = _FIELD.fullmatch(line)
        if field is None:
            raise BadRequestError(400, "a header line is not NAME: VALUE")
        headers[field[1].decode().lower()] = field[2].decode("latin-1")
    if headers.get("content-length", "0") != "0" or "transfer-encoding" in headers:
        raise BadRequestError(400, "a request must not have a body")
    method = match[1].decode()
    if method not in ("GET", "HEAD"):
        raise BadRequestError(405, "only GET and HEAD are allowed")
    path = match[2].decode().partition("?")[0]
    connection = headers.get("connection", "").lower()
    keep_alive = "close" not in connection and (match[4] != b"0" or "keep-alive" in connection)
    return HttpRequest(method, path, headers, keep_alive)


def response_head(response: HttpResponse, *, keep_alive: bool) -> bytes:
    length = sum(map(len, response.parts))
    lines = [
        f"HTTP/1.1 {response.status} {REASONS[response.status]}",
        f"Content-Type: {response.content_type}",
        f"Content-Length: {length}",
        "Cache-Control: no-store",
        "X-Content-Type-Options: nosniff",
        f"Connection: {'keep-alive' if keep_alive else 'close'}",
    ]
    if response.status == 405:
        lines.append("Allow: GET, HEAD")
    return "\r\n".join(lines).encode() + HEAD_END
