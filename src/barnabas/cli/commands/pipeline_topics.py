"""What the verbs of `barnabas pipeline` share: the names they go by, and the warehouse's topics."""

import argparse
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from barnabas.pipeline.routing import Routing

DEFAULT_CHECKPOINT: Final = "./barnabas-pipeline"
DEFAULT_NAME: Final = "barnabas-pipeline"


def create_topics(options: argparse.Namespace, routing: "Routing", *, with_sources: bool) -> None:
    from barnabas.cli.connection import admin_client
    from barnabas.pipeline.warehouse import create_missing_topics

    with admin_client(options) as admin:
        create_missing_topics(admin, routing, with_sources=with_sources)


def whole_number(text: str) -> int:
    """Of records, devices, ...: at least one. For argparse."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number above 0")
    return int(text)


def above_zero(text: str) -> float:
    """Of seconds, records per second, ... For argparse."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no number above 0")
    return number


def absolute(path: str) -> str:
    from pathlib import Path

    return path if "://" in path else str(Path(path).absolute())
