"""Lines of stdin as records: Kafka's LineMessageReader with its properties.

parse.key, key.separator, parse.headers, headers.delimiter, headers.separator, headers.key.separator, null.marker,
ignore.error. A line is text: what is not UTF-8 is replaced, as in Java.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from barnabas.cli.kafka.flags import WrongUse


class LineRecord(NamedTuple):
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]] | None


class LineReader:
    def __init__(self, properties: Mapping[str, str]) -> None:
        self._parse_key = _is_true(properties.get("parse.key"))
        self._key_separator = properties.get("key.separator", "\t")
        self._parse_headers = _is_true(properties.get("parse.headers"))
        self._headers_delimiter = properties.get("headers.delimiter", "\t")
        self._headers_separator = properties.get("headers.separator", ",")
        self._headers_key_separator = properties.get("headers.key.separator", ":")
        self._ignore_error = _is_true(properties.get("ignore.error"))
        self._null_marker = properties.get("null.marker")
        self._check()
        self._split = re.compile(self._headers_separator).split
        self._line_number = 0

    def records(self, lines: Iterable[str]) -> Iterator[LineRecord]:
        """Raises WrongUse at a line that has not what it should have."""
        for line in lines:
            self._line_number += 1
            yield self._record(line)

    def _record(self, line: str) -> LineRecord:
        start = 0
        headers = self._before(self._parse_headers, line, start, self._headers_delimiter, "headers delimiter")
        if headers is not None:
            start = len(headers) + len(self._headers_delimiter)
        key = self._before(self._parse_key, line, start, self._key_separator, "key separator")
        if key is not None:
            start += len(key) + len(self._key_separator)
        parsed = None if headers is None or headers == self._null_marker else self._headers(headers)
        return LineRecord(self._bytes(key), self._bytes(line[start:]), parsed)

    def _before(self, enabled: bool, line: str, start: int, mark: str, name: str) -> str | None:
        if not enabled:
            return None
        end = line.find(mark, start)
        if end >= 0:
            return line[start:end]
        if self._ignore_error:
            return None
        raise WrongUse(f"No {name} found on line number {self._line_number}: '{line}'")

    def _headers(self, text: str) -> list[tuple[str, bytes | None]]:
        pairs = self._split(text)
        while len(pairs) > 1 and not pairs[-1]:  # Java's split leaves out empty texts at the end
            pairs.pop()
        return [self._header(pair) for pair in pairs]

    def _header(self, pair: str) -> tuple[str, bytes | None]:
        name, found, value = pair.partition(self._headers_key_separator)
        if not found:
            if self._ignore_error:
                return pair, None
            raise WrongUse(f"No header key separator found in pair '{pair}' on line number {self._line_number}")
        if name == self._null_marker:
            raise WrongUse(
                f"Header keys should not be equal to the null marker '{self._null_marker}' as they can't be null"
            )
        return name, self._bytes(value)

    def _bytes(self, text: str | None) -> bytes | None:
        return None if text is None or text == self._null_marker else text.encode()

    def _check(self) -> None:
        names = {
            "headers.delimiter": self._headers_delimiter,
            "headers.separator": self._headers_separator,
            "headers.key.separator": self._headers_key_separator,
            "key.separator": self._key_separator,
            "null.marker": self._null_marker,
        }
        for first, second in (
            ("headers.delimiter", "headers.separator"),
            ("headers.delimiter", "headers.key.separator"),
            ("headers.separator", "headers.key.separator"),
            ("null.marker", "key.separator"),
            ("null.marker", "headers.separator"),
            ("null.marker", "headers.delimiter"),
            ("null.marker", "headers.key.separator"),
        ):
            if names[first] == names[second]:
                raise WrongUse(f"{first} and {second} may not be equal")


def _is_true(text: str | None) -> bool:
    return text is not None and text.strip().lower() == "true"
