"""App events, as JSON bytes, of both generations.

An event is joined from prepared fragments (device data, pages, elements of `displays` and `actions`), so that one core
generates tens of thousands per second: the generator must not be the bottleneck of a pipeline.
"""

import json
from random import Random
from typing import Any, Final, Literal, NamedTuple

from barnabas.pipeline.generator import catalogue

Generation = Literal["A", "B"]
_POOL: Final = 400


class Device(NamedTuple):
    mid: bytes
    common: bytes
    """JSON of `common` up to the value of is_new, which follows, in quotes."""
    is_returning: bool


def encode(tree: Any) -> bytes:
    return json.dumps(tree, separators=(",", ":"), ensure_ascii=False).encode()


class EventMaker:
    """Events of one generation. `random` is shared with the rest of a run and decides everything."""

    def __init__(self, random: Random, generation: Generation, devices: int) -> None:
        self._random = random
        self._generation = generation
        self._devices = [self._device(number) for number in range(devices)]
        self._pages = [encode(self._page()) for _ in range(_POOL)]
        self._displays = [encode(self._display(order)) for order in range(1, 11) for _ in range(_POOL // 10)]
        self._actions = [encode(self._action())[:-1] for _ in range(_POOL)]
        self._starts = [encode(self._start()) for _ in range(_POOL)]
        self._errors = [encode(self._error()) for _ in range(_POOL // 10)]

    def event(self, timestamp: int) -> tuple[bytes, bytes]:
        """(key, value)"""
        chance = self._random.random
        device = self._pick(self._devices)
        # After a reinstallation the app reports a known device as new: the pipeline repairs it.
        is_new = b'"1"' if not device.is_returning or chance() < 0.1 else b'"0"'
        parts = [b'{"common":', device.common, is_new, b"}"]
        if chance() < 0.2:
            parts += (b',"start":', self._pick(self._starts))
        else:
            self._add_page(parts, timestamp)
        if chance() < catalogue.ERROR_SHARE:
            parts += (b',"err":', self._pick(self._errors))
        parts.append(b',"ts":%d}' % timestamp)
        return device.mid, b"".join(parts)

    def _add_page(self, parts: list[bytes], timestamp: int) -> None:
        chance = self._random.random
        parts += (b',"page":', self._pick(self._pages))
        displays = [self._pick(self._displays) for _ in range(int(chance() * 25))]
        if displays:
            parts += (b',"displays":[', b",".join(displays), b"]")
        actions = [
            b'%s,"ts":%d}' % (self._pick(self._actions), timestamp + number) for number in range(int(chance() * 3))
        ]
        if actions:
            parts += (b',"actions":[', b",".join(actions), b"]")

    def _pick(self, pool: list[Any]) -> Any:
        # Several times as quick as Random.choice, which is what most of the time went to.
        return pool[int(self._random.random() * len(pool))]

    def _device(self, number: int) -> Device:
        random = self._random
        brand, model, system, channel = random.choice(catalogue.PHONES)
        mid = f"mid_{number}"
        area = random.choice(catalogue.AREA_CODES) if self._generation == "A" else str(random.randint(1, 34))
        common = {"ar": area, "ba": brand, "ch": channel, "md": model, "mid": mid, "os": system}
        if random.random() < 0.9:
            common["uid"] = str(random.randint(1, 1000))
        if self._generation == "B":
            common["sid"] = f"{random.getrandbits(128):032x}"
        common["vc"] = random.choice(catalogue.VERSIONS)
        return Device(mid.encode(), encode(common)[:-1] + b',"is_new":', random.random() < 0.5)

    def _page(self) -> dict[str, Any]:
        random = self._random
        page: dict[str, Any] = {"page_id": random.choice(catalogue.PAGES), "during_time": random.randint(1000, 20000)}
        if random.random() < 0.8:
            page["last_page_id"] = random.choice(catalogue.PAGES)
        if random.random() < 0.7:
            page["item_type"] = random.choice(catalogue.ITEM_TYPES)
            page["item"] = self._item(page["item_type"])
        if random.random() < 0.4:
            page[random.choice(("source_type", "sourceType"))] = random.choice(catalogue.SOURCE_TYPES)
        if self._generation == "B" and random.random() < 0.5:
            page |= {"from_pos_id": random.randint(1, 10), "from_pos_seq": random.randint(0, 20)}
            page["refer_id"] = str(random.randint(1, 10))
        return page

    def _display(self, order: int) -> dict[str, Any]:
        random = self._random
        display: dict[str, Any] = {"item": str(random.randint(1, 35)), "item_type": "sku_id"}
        display["pos_id"] = random.randint(1, 5)
        if self._generation == "B":
            return display | {"pos_seq": order - 1}
        name = "display_type" if random.random() < 0.9 else "displayType"
        return {name: random.choice(catalogue.DISPLAY_TYPES), **display, "order": order}

    def _action(self) -> dict[str, Any]:
        random = self._random
        action: dict[str, Any] = {"action_id": random.choice(catalogue.ACTIONS)}
        if random.random() < 0.8:
            action |= {"item": str(random.randint(1, 35)), "item_type": "sku_id"}
        return action

    def _start(self) -> dict[str, Any]:
        random = self._random
        entry = random.choices(catalogue.ENTRIES, cum_weights=catalogue.ENTRY_WEIGHTS)[0]
        loading = "loading_time" if random.random() < 0.9 else "loading_time_ms"
        advertisement = random.randint(1000, 10000)
        return {
            "entry": entry,
            loading: random.randint(1000, 20000),
            "open_ad_id": random.randint(1, 20),
            "open_ad_ms": advertisement,
            "open_ad_skip_ms": random.choice((0, random.randint(1, advertisement))),
        }

    def _error(self) -> dict[str, Any]:
        line = self._random.randint(1, 99)
        code = self._random.randint(*catalogue.ERROR_CODES)
        return {"error_code": code, "msg": catalogue.ERROR_MESSAGE.format(line=line)}

    def _item(self, item_type: str) -> str:
        random = self._random
        if item_type == "keyword":
            return random.choice(catalogue.KEYWORDS)
        if item_type == "sku_ids":
            return ",".join(str(random.randint(1, 35)) for _ in range(random.randint(1, 4)))
        return str(random.randint(1, 35))
