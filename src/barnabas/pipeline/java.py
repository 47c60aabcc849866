"""Checks that Java is installed, before Spark fails with a page of stack trace."""

import os
import re
import shutil
import subprocess
from typing import Final

OLDEST: Final = 17
_HOW: Final = (
    "install one (Debian, Ubuntu: `apt install openjdk-17-jre-headless`; Fedora: `dnf install java-17-openjdk`;"
    " macOS: `brew install openjdk@17`; others: https://adoptium.net) and put it on PATH, or set JAVA_HOME to it"
)
_VERSION: Final = re.compile(r'version "(?:1\.)?(\d+)')


def why_no_java() -> str | None:
    """One line that says what is missing and how to get it; None if Spark can run."""
    home = os.environ.get("JAVA_HOME")
    command = shutil.which("java", path=f"{home}/bin") if home else shutil.which("java")
    if command is None:
        where = f"JAVA_HOME is {home}, which has none" if home else "there is none on PATH"
        return f"Spark needs Java {OLDEST} or later, and {where}: {_HOW}"
    output = subprocess.run([command, "-version"], check=False, capture_output=True, text=True).stderr
    version = _VERSION.search(output)
    if version is None:
        return f"Spark needs Java {OLDEST} or later, and {command} does not report its version: {_HOW}"
    if int(version[1]) < OLDEST:
        return f"Spark needs Java {OLDEST} or later, and {command} is Java {version[1]}: {_HOW}"
    return None
