"""Looks for secrets where they must never be: in logs, responses, error texts, `repr`, metrics.

    def test_something(secret_watch: SecretWatch) -> None:
        password = secret_watch.add("alice's password", "secret-123")
        ...                                   # everything logged meanwhile, at DEBUG, is looked at when the test ends
        secret_watch.look("an error", str(error))
        secret_watch.look_at_objects()        # the repr of everything of Barnabas that is alive

A secret is found in its usual disguises too: base64, hex, quoted for a URL, escaped in a Python string. The fixture is
in `tests/conftest.py`.
"""

from __future__ import annotations

import base64
import contextlib
import gc
import json
import logging
import re
import urllib.parse
from types import TracebackType

SHORTEST = 6
"""Anything shorter would be found everywhere."""
AROUND = 60


class _EveryRecord(logging.Handler):
    def __init__(self, watch: SecretWatch) -> None:
        super().__init__(logging.DEBUG)
        self._watch = watch
        self._own = logging.Formatter("%(name)s %(levelname)s %(message)s")

    def emit(self, record: logging.LogRecord) -> None:
        self._watch.look("the log", self._own.format(record))


class SecretWatch:
    """Use as a context manager; at its end it raises AssertionError for whatever was found."""

    def __init__(self) -> None:
        self._forms: dict[str, str] = {}
        self._seen: list[tuple[str, str]] = []
        self._handler = _EveryRecord(self)
        self._levels: dict[logging.Logger, int] = {}

    def __enter__(self) -> SecretWatch:
        for logger in (logging.getLogger(), logging.getLogger("barnabas")):
            self._levels[logger] = logger.level
            logger.setLevel(logging.DEBUG)
        logging.getLogger().addHandler(self._handler)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        logging.getLogger().removeHandler(self._handler)
        for logger, level in self._levels.items():
            logger.setLevel(level)
        if kind is None:
            self.check()

    def add(self, name: str, secret: str) -> str:
        """Gives it back."""
        self.add_bytes(name, secret.encode())
        for form in (
            secret,
            urllib.parse.quote(secret, safe=""),
            urllib.parse.quote_plus(secret),
            repr(secret)[1:-1],
            json.dumps(secret)[1:-1],
        ):
            self._add(name, form)
        return secret

    def add_bytes(self, name: str, secret: bytes) -> bytes:
        for form in (
            base64.b64encode(secret).decode(),
            base64.urlsafe_b64encode(secret).decode(),
            secret.hex(),
            repr(secret)[2:-1],
        ):
            self._add(name, form.rstrip("="))
        return secret

    def add_pem(self, name: str, pem: str) -> str:
        """The private keys in it, line by line; certificates are no secret."""
        for key in re.findall("-----BEGIN [A-Z ]*PRIVATE KEY-----(.*?)-----END", pem, re.DOTALL):
            for line in key.split():
                if len(line) >= SHORTEST:
                    self._add(name, line)
        return pem

    def add_jwt(self, name: str, token: str) -> str:
        self.add(name, token)
        self._add(name, token.rpartition(".")[2])
        return token

    def look(self, where: str, text: object) -> None:
        """At that text, also for secrets that are added later."""
        self._seen.append((where, str(text)))

    def look_at_objects(self) -> None:
        """At the `repr` and `str` of every object of a class of Barnabas."""
        for each in gc.get_objects():
            if str(type(each).__module__).startswith("barnabas.") and not isinstance(each, type):
                # Some describe what is being made or gone.
                with contextlib.suppress(Exception):
                    self.look(f"the repr of a {type(each).__name__}", repr(each))
                    self.look(f"the text of a {type(each).__name__}", str(each))

    def saw(self, text: str) -> bool:
        """Whether it was in anything: a watch that sees nothing finds nothing."""
        return any(text in seen for _, seen in self._seen)

    def check(self) -> None:
        found = dict.fromkeys(
            f"{name} in {where}: {self._excerpt(text, form)}"
            for where, text in self._seen
            for form, name in self._forms.items()
            if form in text
        )
        assert not found, "secrets leaked:\n" + "\n".join(found)

    def _add(self, name: str, form: str) -> None:
        assert len(form) >= SHORTEST, f"{name} is too short to be looked for"
        self._forms[form] = name

    def _excerpt(self, text: str, form: str) -> str:
        """What is around it, not the secret."""
        position = text.index(form)
        return f"...{text[max(0, position - AROUND) : position]}[HERE]{text[position + len(form) :][:AROUND]}..."
