"""Compiled modules and their pure twins: the choice between them, and that both have what their Protocol declares."""

import importlib
import inspect
import subprocess
import sys
from os import environ

import pytest

from barnabas import twins
from barnabas.protocol.produce_one import ProduceOne
from barnabas.records.record_list import RecordListReader
from barnabas.records.record_walk import RecordWalk
from barnabas.storage.plain_batch import PlainBatchReader

PAIRS = [
    (RecordListReader, "barnabas.records.record_list_native", "barnabas.records.record_list_pure"),
    (RecordWalk, "barnabas.records._native.record_walk", "barnabas.records._pure.record_walk"),
    (ProduceOne, "barnabas.protocol.produce_one_native", "barnabas.protocol.produce_one_pure"),
    (PlainBatchReader, "barnabas.storage.plain_batch_native", "barnabas.storage.plain_batch_pure"),
]


@pytest.mark.parametrize(("protocol", "native", "pure"), PAIRS)
def test_both_twins_have_the_functions_of_the_protocol(protocol: type, native: str, pure: str) -> None:
    functions = [name for name, member in vars(protocol).items() if inspect.isfunction(member) and name[0] != "_"]
    assert functions
    for module in (native, pure):
        if module == native:
            pytest.importorskip(native, reason="not compiled")
        for name in functions:
            found = inspect.signature(getattr(importlib.import_module(module), name)).parameters
            expected = [each for each in inspect.signature(getattr(protocol, name)).parameters if each != "self"]
            assert [each.lstrip("_") for each in found] == expected, (module, name)


def test_a_module_that_was_not_built_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(twins, "PURE", False)
    assert twins.choose_twin("barnabas.no_such_module", "json") is importlib.import_module("json")
    assert twins.choose_twin("string", "json") is importlib.import_module("string")


def test_the_pure_twin_can_be_forced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(twins, "PURE", True)
    assert twins.choose_twin("string", "json") is importlib.import_module("json")


@pytest.mark.parametrize(("value", "expected"), [("1", "True"), ("0", "False"), ("", "False")])
def test_the_environment_decides(value: str, expected: str) -> None:
    code = "from barnabas import twins; print(twins.PURE)"
    found = subprocess.run(
        [sys.executable, "-c", code], env=environ | {"BARNABAS_PURE": value}, capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == expected
