"""Python's parser of command lines, as Barnabas's own commands use it.

Words and options may be mixed (`produce orders -p 0 FILE`), a mistyped one gets a suggestion, and
the usage shown is that of the verb, not of its noun. Names have to be text. Call `parse`, not `parse_args`.
"""

import argparse
import os
from collections.abc import Iterable, Sequence

PATHS = ("FILE", "JSON", "CSV", "DIR")
"""Metavars of options that name files: what the system takes for a name is one."""


class CommandParser(argparse.ArgumentParser):
    may_be_bytes: Sequence[str] = ()
    """Options whose values need not be UTF-8."""

    def parse(self, words: Sequence[str]) -> argparse.Namespace:
        """Ends the process with status 2 and a line that says what is wrong, or with 0 after --help."""
        verbs = self.verbs()
        if not verbs:
            # Mixed, Python forgets what a `--` was for; then the words stand together, as they always could.
            mixed = "--" not in words
            options, unknown = (self.parse_known_intermixed_args if mixed else self.parse_known_args)(words)
            if unknown:
                self.error(self._unrecognized(unknown))
            self._check_text(options)
            return options
        first = words[0] if words else ""
        # Python mixes words and options only where there are no verbs: so the verb's own parser does it.
        if first in verbs:
            return verbs[first].parse(words[1:])
        if first and not first.startswith("-"):
            self.error(f"there is no verb {first!r}{hint(first, verbs)}; there are {', '.join(verbs)}")
        return self.parse_args(words)

    def verbs(self) -> "dict[str, CommandParser]":
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                return dict(action.choices)
        return {}

    def _check_text(self, options: argparse.Namespace) -> None:
        """The protocol has names as text. Python keeps other bytes of the command line as lone surrogates."""
        for action in self._actions:
            if action.dest in self.may_be_bytes or action.metavar in PATHS:
                continue
            given = getattr(options, action.dest, None)
            for value in given if isinstance(given, list) else [given]:
                if isinstance(value, str) and not is_text(value):
                    reason = f"{os.fsencode(value)!r} is not UTF-8 text"
                    self.error(str(argparse.ArgumentError(action, reason)))

    def _unrecognized(self, unknown: Sequence[str]) -> str:
        known = [text for action in self._actions for text in action.option_strings if text.startswith("--")]
        hints = "".join(hint(word.partition("=")[0], known) for word in unknown if word.startswith("--"))
        return f"unrecognized arguments: {' '.join(unknown)}{hints}"


def is_text(word: str) -> bool:
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True


def hint(word: str, known: Iterable[str]) -> str:
    """The nearest one, in words; nothing if none is near."""
    import difflib

    near = difflib.get_close_matches(word, known, n=1)
    return f" (did you mean {near[0]}?)" if near else ""
