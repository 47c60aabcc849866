"""Lists are filtered, sorted and cut into pages here, so that a browser never gets ten thousand rows."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

Item = TypeVar("Item")
LARGEST_PAGE = 500


class BadQuery(ValueError):
    """A parameter of the address that makes no sense."""


def number(query: Mapping[str, str], name: str, default: int, lowest: int = 0, highest: int = 2**63 - 1) -> int:
    text = query.get(name, "")
    if not text:
        return default
    try:
        value = int(text[:20])
    except ValueError:
        raise BadQuery(f"{name} must be a number") from None
    if not lowest <= value <= highest:
        raise BadQuery(f"{name} must be between {lowest} and {highest}")
    return value


def page_of(
    items: Iterable[Item],
    query: Mapping[str, str],
    name: Callable[[Item], str],
    sorts: Mapping[str, Callable[[Item], Any]],
) -> dict[str, Any]:
    """`filter`, `sort`, `order`, `page` and `size` of the address; the items of that page and how many there are."""
    wanted = query.get("filter", "").strip().lower()
    found = [item for item in items if wanted in name(item).lower()] if wanted else list(items)
    sort = query.get("sort", "name")
    if sort not in sorts:
        raise BadQuery(f"sort must be one of {', '.join(sorts)}")
    key = sorts[sort]
    found.sort(key=key if sort == "name" else lambda item: (key(item) is not None, key(item) or 0, name(item)))
    if query.get("order", "asc") == "desc":
        found.reverse()
    size = number(query, "size", 50, 1, LARGEST_PAGE)
    last = max(0, (len(found) - 1) // size)
    page = min(number(query, "page", 0), last)
    return {"items": found[page * size : (page + 1) * size], "total": len(found), "page": page, "pages": last + 1}
