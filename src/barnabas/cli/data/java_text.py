"""Numbers and dates as Java prints them: what scripts read from Kafka's commands must not differ in a digit."""

import math
import re
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal

_DATE_PART = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*")


def ratio(amount: float, by: float) -> float:
    """Java divides by zero."""
    if by:
        return amount / by
    return math.copysign(math.inf, amount) if amount else math.nan


def fixed(value: float, digits: int) -> str:
    """`%.2f`, rounded half up from the shortest decimal that stands for the number."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return str(Decimal(repr(float(value))).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP))


def double_text(value: float) -> str:
    """`Double.toString`."""
    if math.isnan(value) or math.isinf(value):
        return fixed(value, 0)
    return _java_digits(repr(value))


def float_text(value: float) -> str:
    """`Float.toString`: the shortest decimal that gives the same 32 bits again."""
    import struct

    if math.isnan(value) or math.isinf(value):
        return fixed(value, 0)
    for digits in range(1, 10):
        text = f"{value:.{digits - 1}e}"
        if struct.pack(">f", float(text)) == struct.pack(">f", value):
            return _java_digits(text)
    return _java_digits(repr(value))


def _java_digits(text: str) -> str:
    """Plain from 0.001 up to 10 million, otherwise with an exponent; always with a digit after the point."""
    number = Decimal(text)
    if not number:
        return "-0.0" if text.startswith("-") else "0.0"
    sign, digits, exponent = number.normalize().as_tuple()
    point = len(digits) + int(exponent)  # digits before the point
    written = "".join(map(str, digits))
    minus = "-" if sign else ""
    if -3 < point <= 7:
        if point <= 0:
            return f"{minus}0.{'0' * -point}{written}"
        written = written.ljust(point + 1, "0")
        return f"{minus}{written[:point]}.{written[point:]}"
    return f"{minus}{written[0]}.{written[1:] or '0'}E{point - 1}"


def date_text(milliseconds: int, pattern: str) -> str:
    """`SimpleDateFormat` in the local time zone, for the letters that make sense in a report."""
    when = datetime.fromtimestamp(milliseconds / 1000).astimezone()

    def written(match: re.Match[str]) -> str:
        if match[1] is not None:
            return match[1].replace("''", "'") or "'"
        return _date_field(match[0], when, milliseconds)

    return _DATE_PART.sub(written, pattern)


def _date_field(letters: str, when: datetime, milliseconds: int) -> str:
    letter, width = letters[0], len(letters)
    if letter == "y":
        return f"{when.year % 100:02}" if width == 2 else f"{when.year:0{width}}"
    if letter in "ME" and width > 2:
        names = {"M": ("%b", "%B"), "E": ("%a", "%A")}[letter]
        return when.strftime(names[width > 3])
    numbers = {
        "M": when.month,
        "d": when.day,
        "H": when.hour,
        "h": when.hour % 12 or 12,
        "m": when.minute,
        "s": when.second,
        "S": milliseconds % 1000,
        "D": when.timetuple().tm_yday,
    }
    if letter in numbers:
        return f"{numbers[letter]:0{width}}"
    texts = {"a": "%p", "E": "%a", "Z": "%z", "z": "%Z"}
    if letter not in texts:
        raise ValueError(f"Illegal pattern character '{letter}'")
    return when.strftime(texts[letter])
