"""Java's .properties format, used by `server.properties` and `meta.properties`.

Rules of java.util.Properties: comments begin with `#` or `!`; key and value are separated by `=`, `:` or blanks; a line
that ends in an odd number of backslashes continues on the next, whose leading blanks are dropped; t, n, r, f and uXXXX
after a backslash are escapes, any other escaped character stands for itself. A key given twice: the last one counts.
"""

from collections.abc import Iterator, Mapping

BLANKS = " \t\f"
ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
HEX_DIGITS = frozenset("0123456789abcdefABCDEF")


def parse_properties(text: str) -> dict[str, str]:
    """Raises ValueError on a malformed \\u escape, as Java does."""
    return dict(_key_and_value(line) for line in _logical_lines(text))


def _logical_lines(text: str) -> Iterator[str]:
    pending = ""
    continued = False
    for line in text.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n").split("\n"):
        line = line.lstrip(BLANKS)
        # A continuation line is never a comment, and not skipped if empty.
        if not pending and (not line or line[0] in "#!"):
            continued = False
            continue
        backslashes = len(line) - len(line.rstrip("\\"))
        continued = backslashes % 2 == 1
        pending += line[:-1] if continued else line
        if not continued:
            if pending:
                yield pending
            pending = ""
    if continued:  # the text ends in a single backslash: Java then has an entry, even if it is empty
        yield pending


def _key_and_value(line: str) -> tuple[str, str]:
    end = 0
    while end < len(line) and line[end] not in "=:" + BLANKS:
        end += 2 if line[end] == "\\" else 1
    end = min(end, len(line))
    rest = line[end:].lstrip(BLANKS)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(BLANKS)
    return _unescape(line[:end]), _unescape(rest)


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    out: list[str] = []
    position = 0
    while position < len(text):
        character = text[position]
        position += 1
        if character == "\\" and position < len(text):
            character = text[position]
            position += 1
            if character == "u":
                digits = text[position : position + 4]
                if len(digits) != 4 or not HEX_DIGITS.issuperset(digits):
                    raise ValueError(f"malformed \\u escape: {digits!r}")
                character = chr(int(digits, 16))
                position += 4
            else:
                character = ESCAPES.get(character, character)
        elif character == "\\":
            continue
        out.append(character)
    # A character outside the basic plane is written as two escapes, a surrogate pair.
    return "".join(out).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def write_properties(values: Mapping[str, str], comments: tuple[str, ...] = ()) -> str:
    """The reverse of `parse_properties`, in ASCII, as java.util.Properties stores it."""
    lines = [f"#{comment}" for comment in comments]
    lines += [f"{_escape(key, key=True)}={_escape(value, key=False)}" for key, value in values.items()]
    return "\n".join(lines) + "\n" if lines else ""


def _escape(text: str, key: bool) -> str:
    out: list[str] = []
    named = {value: letter for letter, value in ESCAPES.items()}
    for position, character in enumerate(text):
        if character in named:
            out.append("\\" + named[character])
        elif character in "\\=:#!" or (character == " " and (key or position == 0)):
            out.append("\\" + character)
        elif " " <= character <= "~":
            out.append(character)
        else:
            units = character.encode("utf-16-be", "surrogatepass").hex().upper()
            out.extend(f"\\u{units[index : index + 4]}" for index in range(0, len(units), 4))
    return "".join(out)
