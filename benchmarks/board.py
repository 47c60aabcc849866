"""The results: one row per question, several samples per contender, and whether the goal is reached.

Samples are shown as median (min-max), ratios as the ratio of the medians and then per round, so that noise is visible.
A goal is a ratio to Apache Kafka's median, or a limit on Barnabas' own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median

KAFKA = "Apache Kafka"
BARNABAS = "Barnabas"


@dataclass(frozen=True, slots=True)
class Goal:
    """What Barnabas must reach: judged on the medians of (Barnabas, Kafka); Kafka's may be missing."""

    text: str
    reached: Callable[[float, float | None], bool]


def at_least_times(factor: float) -> Goal:
    return Goal(f">= {factor:g} x Kafka", lambda ours, theirs: theirs is None or ours >= factor * theirs)


def less_than_kafka() -> Goal:
    return Goal("< Kafka", lambda ours, theirs: theirs is None or ours < theirs)


def no_more_than_kafka() -> Goal:
    return Goal("<= Kafka", lambda ours, theirs: theirs is None or ours <= theirs)


def under(limit: float) -> Goal:
    return Goal(f"< {limit:g}", lambda ours, _: ours < limit)


def no_more_than(limit: float) -> Goal:
    return Goal(f"<= {limit:g}", lambda ours, _: ours <= limit)


@dataclass(slots=True)
class Row:
    title: str
    unit: str
    goal: Goal | None
    samples: dict[str, list[float]] = field(default_factory=dict)

    def median(self, contender: str) -> float | None:
        samples = self.samples.get(contender)
        return median(samples) if samples else None

    def cell(self, contender: str) -> str:
        samples = self.samples.get(contender)
        if not samples:
            return "-"
        if len(samples) == 1:
            return number(samples[0])
        return f"{number(median(samples))} ({number(min(samples))}-{number(max(samples))})"

    def ratio(self) -> str:
        ours, theirs = self.median(BARNABAS), self.median(KAFKA)
        return f"{ours / theirs:.2f}" if ours is not None and theirs else "-"

    def ratio_of_each_round(self) -> str:
        """In the order of the rounds, then least / median / most."""
        ours, theirs = self.samples.get(BARNABAS, []), self.samples.get(KAFKA, [])
        ratios = [ours / theirs for ours, theirs in zip(ours, theirs, strict=False) if theirs]
        if len(ratios) < 2:
            return "-"
        summary = " / ".join(f"{ratio:.2f}" for ratio in (min(ratios), median(ratios), max(ratios)))
        return f"{' '.join(f'{ratio:.2f}' for ratio in ratios)} ({summary})"

    def verdict(self) -> str:
        ours = self.median(BARNABAS)
        if self.goal is None or ours is None:
            return ""
        return f"{self.goal.text}: {'yes' if self.goal.reached(ours, self.median(KAFKA)) else 'NO'}"


class Board:
    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}

    def row(self, title: str, unit: str, goal: Goal | None = None) -> None:
        """Add a row; rows keep the order in which they were added."""
        self.rows.setdefault(title, Row(title, unit, goal))

    def add(self, title: str, contender: str, value: float) -> None:
        row = self.rows[title]
        row.samples.setdefault(contender, []).append(value)
        print(f"  {contender:13} {title}: {number(value)} {row.unit}", flush=True)

    def table(self) -> str:
        lines = [
            f"| what | unit | {KAFKA} | {BARNABAS} | {BARNABAS} / Kafka | in each round (least / median / most) "
            "| must: reached |",
            "|---|---|---|---|---|---|---|",
        ]
        for row in self.rows.values():
            cells = [row.title, row.unit, row.cell(KAFKA), row.cell(BARNABAS)]
            cells += [row.ratio(), row.ratio_of_each_round(), row.verdict()]
            lines.append("| " + " | ".join(cells) + " |")
        return "\n".join(lines)


def number(value: float) -> str:
    """Three or four significant digits, with separators in large numbers."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    if abs(value) >= 10:
        return f"{value:.1f}"
    return f"{value:.3g}"
