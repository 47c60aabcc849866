"""What a browser has to load, and the rules that its content security policy makes for the files of the page."""

import gzip
import re

import pytest

pytest.importorskip("starlette", reason="the console needs starlette")

from barnabas.console.app import static_files

LARGEST_PAGE = 150_000


def test_the_whole_page_is_small() -> None:
    assert sum(len(gzip.compress(body, 6)) for body in static_files().values()) < LARGEST_PAGE


def test_nothing_is_inline() -> None:
    page = static_files()["index.html"].decode()
    assert re.findall(r"<script(?![^>]*\bsrc=)", page) == []
    assert "<style" not in page
    assert re.findall(r"\s(on\w+|style)=", page) == []


def test_modules_import_files_that_are_there() -> None:
    files = static_files()
    for name, body in files.items():
        if name.startswith("js/"):
            for path in re.findall(r'from "/static/([^"]+)"', body.decode()):
                assert path in files, f"{name} imports {path}"


def test_names_that_modules_import_are_exported() -> None:
    """A browser would show an empty page otherwise."""
    files = {name: body.decode() for name, body in static_files().items() if name.startswith("js/")}
    for name, text in files.items():
        for wanted, path in re.findall(r'import \{([^}]+)\} from "/static/(js/[^"]+)"', text):
            for each in filter(None, map(str.strip, wanted.split(","))):
                exported = rf"export (async )?(const|function) {each}\b"
                assert re.search(exported, files[path]), f"{name} imports {each} from {path}"
                assert len(re.findall(rf"\b{each}\b", text)) > 1, f"{name} does not use {each}"
