"""Tables as Kafka's newer tools print them: columns as wide as their widest cell, a tab after each."""

from collections.abc import Iterable, Sequence


def print_table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    lines = [list(headers), *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headers))]
    for line in lines:
        print("".join(f"{cell:<{width}}\t" for cell, width in zip(line, widths)))
