"""The file of the console's own users: one per line, `name:role:scrypt:n,r,p:salt:hash`, salt and hash in base64.

Only salted scrypt hashes are kept. A file that is changed counts at once: sessions of users that are gone, or have
another password or role, end. It is replaced as a whole, so a reader never sees half of it.
"""

import base64
import binascii
import hashlib
import hmac
import os
import re
import secrets
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Self

NAME = re.compile(r"[A-Za-z0-9._@+-]{1,64}")
ADMIN, VIEWER = "admin", "viewer"
ROLES = (ADMIN, VIEWER)
LONGEST_PASSWORD = 1024
SCHEME = "scrypt"


class PasswordFileError(Exception):
    """The file cannot be used; the text says why."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Parameters of scrypt: 32 MiB and about a quarter of a second."""

    n: int = 1 << 15
    r: int = 8
    p: int = 3

    @property
    def is_sane(self) -> bool:
        """A power of two with at most 256 MiB: a file must not stop the console."""
        return 2 <= self.n <= 1 << 20 and not self.n & (self.n - 1) and self.n * self.r <= 1 << 21 and self.p <= 16

    def hash(self, password: str, salt: bytes) -> bytes:
        wanted = password.encode()
        memory = 128 * self.r * (self.n + self.p) + (1 << 20)
        return hashlib.scrypt(wanted, salt=salt, n=self.n, r=self.r, p=self.p, maxmem=memory, dklen=32)


@dataclass(frozen=True, slots=True)
class PasswordEntry:
    """A user of the console; `digest` is never shown."""

    name: str
    role: str
    cost: Cost
    salt: bytes
    digest: bytes

    @classmethod
    def make(cls, name: str, role: str, password: str, cost: Cost | None = None) -> Self:
        cost = cost or Cost()
        salt = secrets.token_bytes(16)
        return cls(name, role, cost, salt, cost.hash(password, salt))

    @classmethod
    def parse(cls, line: str) -> Self:
        name, role, scheme, numbers, salt, digest = line.split(":")
        cost = Cost(*map(int, numbers.split(",")))
        if not NAME.fullmatch(name) or role not in ROLES or scheme != SCHEME or not cost.is_sane:
            raise ValueError(line)
        return cls(name, role, cost, base64.b64decode(salt, validate=True), base64.b64decode(digest, validate=True))

    def line(self) -> str:
        numbers = f"{self.cost.n},{self.cost.r},{self.cost.p}"
        salt, digest = (base64.b64encode(each).decode() for each in (self.salt, self.digest))
        return f"{self.name}:{self.role}:{SCHEME}:{numbers}:{salt}:{digest}\n"

    def accepts(self, password: str) -> bool:
        """Takes as long as the hash does: not for an event loop."""
        return hmac.compare_digest(self.cost.hash(password, self.salt), self.digest)

    def __repr__(self) -> str:
        return f"PasswordEntry({self.name}, {self.role})"


class PasswordFile:
    """Read again whenever it has changed. `NOBODY` costs an unknown user as much as a wrong password."""

    def __init__(self, path: Path) -> None:
        """Raises PasswordFileError."""
        self.path = path
        self._seen: tuple[int, int, int] | None = None
        self._entries: dict[str, PasswordEntry] = {}
        self.entries()

    def entries(self) -> dict[str, PasswordEntry]:
        """Raises PasswordFileError."""
        try:
            found = self.path.stat()
            seen = (found.st_mtime_ns, found.st_size, found.st_ino)
            if seen != self._seen:
                self._entries, self._seen = read_entries(self.path), seen
        except OSError as error:
            raise PasswordFileError(f"cannot read {self.path}: {error.strerror}") from None
        return self._entries

    def find(self, name: str) -> PasswordEntry | None:
        """None as well while the file cannot be read: then nobody is let in."""
        try:
            return self.entries().get(name)
        except PasswordFileError:
            return None


NOBODY = PasswordEntry("", VIEWER, Cost(), b"no user has this salt", b"\0" * 32)


def read_entries(path: Path) -> dict[str, PasswordEntry]:
    """Raises OSError and PasswordFileError."""
    if path.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PasswordFileError(f"{path} can be written by others: chmod 600 {path}")
    entries: dict[str, PasswordEntry] = {}
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        if not line.strip() or line.startswith(b"#"):
            continue
        try:
            entry = PasswordEntry.parse(line.decode().strip())
        except (ValueError, TypeError, binascii.Error):
            raise PasswordFileError(f"{path}, line {number}: not a user of `barnabas console user add`") from None
        if entry.name in entries:
            raise PasswordFileError(f"{path}, line {number}: {entry.name} is there twice")
        entries[entry.name] = entry
    return entries


def write_entries(path: Path, entries: dict[str, PasswordEntry]) -> None:
    """In place of the old file, readable by its owner only. Raises OSError."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write("".join(entry.line() for entry in entries.values()))
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
