"""Everything that users import says what it is: the public classes and their methods have docstrings."""

import importlib
import inspect
from collections.abc import Iterator

import pytest

MODULES = (
    "barnabas",
    "barnabas.aio",
    "barnabas.serializers",
    "barnabas.testing",
    "barnabas.client.admin.types",
    "barnabas.client.consumer",
    "barnabas.client.producer",
)


def public_classes() -> Iterator[tuple[str, type]]:
    for name in MODULES:
        module = importlib.import_module(name)
        for each in module.__all__:
            found = getattr(module, each)
            if inspect.isclass(found) and found.__module__.startswith("barnabas"):
                yield f"{name}.{each}", found


CLASSES = dict(public_classes())


def test_there_are_classes() -> None:
    assert len(CLASSES) > 80


@pytest.mark.parametrize("name", CLASSES)
def test_a_public_class_and_its_methods_are_documented(name: str) -> None:
    declared = vars(CLASSES[name])
    assert (declared.get("__doc__") or "").strip()
    for method, value in declared.items():
        function = getattr(value, "__func__", value.fget if isinstance(value, property) else value)
        if not method.startswith("_") and callable(function) and not inspect.isclass(function):
            assert (function.__doc__ or "").strip(), method
