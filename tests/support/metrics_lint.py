"""What `promtool check metrics` complains about, and what breaks a scrape: types, help, names, duplicates, the end."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
SAMPLE = re.compile(r'(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)(?P<labels>\{(?:[^"}]|"(?:[^"\\]|\\.)*")*\})? (?P<value>\S+)')
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"')
SUFFIXES = ("_sum", "_count")
BASE_UNITS = {"_kilobytes": "_bytes", "_minutes": "_seconds"}


def faults_of(text: str, *, open_metrics: bool = False) -> list[str]:
    return list(_faults(text, open_metrics))


def _faults(text: str, open_metrics: bool) -> Iterator[str]:
    if not text.endswith("\n") or "\n\n" in text or "\r" in text:
        yield "lines end in one newline each"
    lines = text.splitlines()
    if open_metrics != (lines[-1] == "# EOF"):
        yield "# EOF ends OpenMetrics, and nothing else"
    helps, types, seen = Counter[str](), dict[str, str](), Counter[str]()
    family, done = "", set[str]()
    for line in lines[:-1] if open_metrics else lines:
        if line.startswith("# ") and line != "# EOF":
            _, word, name, *rest = line.split(" ", 3)
            if word == "HELP":
                helps[name] += 1
                if not rest or not rest[0].strip():
                    yield f"{name}: its help is empty"
            elif word == "TYPE":
                if name in types:
                    yield f"{name}: has two types"
                types[name] = rest[0]
            else:
                yield f"{line!r}: is no comment that is known"
            continue
        match = SAMPLE.fullmatch(line)
        if match is None:
            yield f"{line!r}: cannot be read"
            continue
        seen[line.rsplit(" ", 1)[0]] += 1
        name = _family_of(match["name"], types, open_metrics)
        if name != family:
            if name in done:
                yield f"{name}: its samples do not stand together"
            done.add(family)
            family = name
        if name not in types:
            yield f"{name}: has no type"
        yield from _sample_faults(match, types.get(name, ""), open_metrics)
    for name, count in seen.items():
        if count > 1:
            yield f"{name}: is there {count} times"
    for name, kind in types.items():
        if helps[name] != 1:
            yield f"{name}: has {helps[name]} helps"
        yield from _name_faults(name, kind, open_metrics)


def _family_of(sample: str, types: dict[str, str], open_metrics: bool) -> str:
    if sample in types:
        return sample
    for ending in (*SUFFIXES, "_total") if open_metrics else SUFFIXES:
        if sample.endswith(ending) and sample.removesuffix(ending) in types:
            return sample.removesuffix(ending)
    return sample


def _sample_faults(match: re.Match[str], kind: str, open_metrics: bool) -> Iterator[str]:
    name = match["name"]
    names = [label for label, _ in LABEL.findall(match["labels"] or "")]
    if len(set(names)) != len(names):
        yield f"{match[0]}: a label is there twice"
    if any(label.startswith("__") for label in names):
        yield f"{match[0]}: labels that begin with __ are Prometheus'"
    if "quantile" in names and kind != "summary":
        yield f"{match[0]}: quantile is for summaries"
    value = float(match["value"])
    if kind == "counter":
        if not value >= 0:
            yield f"{match[0]}: a counter is never negative"
        if not name.endswith("_total"):
            yield f"{name}: a counter ends in _total"


def _name_faults(name: str, kind: str, open_metrics: bool) -> Iterator[str]:
    if NAME.fullmatch(name) is None:
        yield f"{name}: is no name"
    if kind not in ("counter", "gauge", "summary", "unknown" if open_metrics else "untyped"):
        yield f"{name}: {kind} is no type"
    for unit, base in BASE_UNITS.items():
        if name.endswith(unit):
            yield f"{name}: use base units, {base}"
    if kind == "counter" and open_metrics and name.endswith("_total"):
        yield f"{name}: OpenMetrics names a counter's family without _total"
