"""The language in which people search messages: parsed, never executed.

    key == "7" and value.price > 10
    "refund" or header.trace matches "^a[0-9]+"

A bare text is searched for in key, value and headers. `parse_filter` gives a tree or raises `FilterError` with the
position of the mistake; `select_rows` runs a tree over Arrow columns. Regular expressions are RE2's, whose time is
linear in the text, whatever the pattern.
"""

from barnabas.console.filters.parser import FilterError, parse_filter
from barnabas.console.filters.rows import select_rows

__all__ = ["FilterError", "parse_filter", "select_rows"]
