"""Change records of the shop's database, as Maxwell, Canal or Debezium write them.

`Shop` simulates a small database: orders are placed, paid, cancelled; users and goods change; now and then a row is
deleted. `write` turns one change into the JSON of one of the three tools. Rows are keyed by primary key, so that the
changes of one row keep their order.
"""

from collections.abc import Callable
from random import Random
from typing import Any, Final, Literal, NamedTuple

from barnabas.pipeline.generator.events import encode

Row = dict[str, Any]
Operation = Literal["I", "U", "D", "bootstrap"]
ChangeFormat = Literal["maxwell", "canal", "debezium"]
FORMATS: Final[tuple[ChangeFormat, ...]] = ("maxwell", "canal", "debezium")
DATABASE: Final = "gmall"
_KEPT_ORDERS: Final = 2000


class Change(NamedTuple):
    table: str
    operation: Operation
    rows: tuple[Row, ...]
    old: Row | None
    """For an update: the previous values of the changed columns."""
    timestamp: int
    transaction: int
    is_last: bool = True

    @property
    def key(self) -> bytes:
        return str(self.rows[0]["id"]).encode()


class Shop:
    def __init__(self, random: Random, users: int = 200, goods: int = 35) -> None:
        self._random = random
        self._next_id: dict[str, int] = {}
        self._transaction = 0
        self._users = [self._user() for _ in range(users)]
        self._goods = [self._good() for _ in range(goods)]
        self._coupons = [
            {"id": self._id("coupon_info"), "coupon_name": f"满{n}减{n // 10}"} for n in range(100, 1100, 100)
        ]
        self._orders: list[Row] = []
        self._steps = (self._place_order, self._place_order, self._pay_or_cancel, self._change_dimension)

    def dimensions(self, timestamp: int) -> list[Change]:
        """What a bootstrap of the dimension tables sends before anything else."""
        tables: dict[str, list[Row]] = {
            "base_region": [{"id": number, "region_name": name} for number, name in enumerate(_REGIONS, 1)],
            "base_province": [self._province(number) for number in range(1, 35)],
            "base_trademark": [
                {"id": number, "tm_name": name, "logo_url": f"/static/{number}.jpg"}
                for number, name in enumerate(_TRADEMARKS, 1)
            ],
            "base_category1": [{"id": number, "name": f"一级分类{number}"} for number in range(1, 6)],
            "base_category2": [{"id": n, "name": f"二级分类{n}", "category1_id": n % 5 + 1} for n in range(1, 11)],
            "base_category3": [{"id": n, "name": f"三级分类{n}", "category2_id": n % 10 + 1} for n in range(1, 21)],
            "base_dic": [{"id": code, "dic_code": str(code), "dic_name": name} for code, name in _ORDER_STATES.items()],
            "spu_info": [{"id": n, "spu_name": f"spu {n}", "category3_id": n % 20 + 1} for n in range(1, 13)],
            "activity_info": [{"id": 1, "activity_name": "联想专场", "activity_type": "3101"}],
            "coupon_info": self._coupons,
            "sku_info": self._goods,
            "user_info": self._users,
        }
        self._transaction += 1
        found = [(table, row) for table, rows in tables.items() for row in rows]
        return [Change(table, "bootstrap", (dict(row),), None, timestamp, self._transaction) for table, row in found]

    def step(self, timestamp: int) -> list[Change]:
        """One transaction of the database: the changes it makes, the last one marked."""
        self._transaction += 1
        changes: list[Change] = []
        while not changes:
            changes = self._random.choice(self._steps)(timestamp)
        return [*(change._replace(is_last=False) for change in changes[:-1]), changes[-1]]

    def _place_order(self, timestamp: int) -> list[Change]:
        random = self._random
        order_id = self._id("order_info")
        bought = random.sample(self._goods, random.randint(1, 4))
        details = tuple(self._detail(order_id, good, timestamp) for good in bought)
        amount = sum(detail["split_total_amount"] for detail in details)
        user = random.choice(self._users)
        order = {
            "id": order_id,
            "consignee": user["name"],
            "total_amount": round(amount + 10, 2),
            "order_status": "1001",
            "user_id": user["id"],
            "payment_way": None,
            "out_trade_no": f"{random.randint(10**14, 10**15 - 1)}",
            "create_time": _time(timestamp),
            "operate_time": None,
            "province_id": random.randint(1, 34),
            "activity_reduce_amount": 0.0,
            "coupon_reduce_amount": 0.0,
            "original_total_amount": round(amount, 2),
            "feight_fee": 10.0,  # (sic)
        }
        self._orders.append(order)
        del self._orders[:-_KEPT_ORDERS]
        return [
            self._change("order_info", "I", timestamp, dict(order)),
            *(self._change("order_detail", "I", timestamp, detail) for detail in details),
        ]

    def _detail(self, order_id: int, good: Row, timestamp: int) -> Row:
        number = self._random.randint(1, 3)
        return {
            "id": self._id("order_detail"),
            "order_id": order_id,
            "sku_id": good["id"],
            "sku_name": good["sku_name"],
            "order_price": good["price"],
            "sku_num": number,
            "create_time": _time(timestamp),
            "source_type": str(self._random.choice((2401, 2402, 2403, 2404))),
            "source_id": None,
            "split_total_amount": round(good["price"] * number, 2),
            "split_activity_amount": 0.0,
            "split_coupon_amount": 0.0,
        }

    def _pay_or_cancel(self, timestamp: int) -> list[Change]:
        random = self._random
        waiting = [order for order in self._orders[-50:] if order["order_status"] in ("1001", "1002")]
        if not waiting:
            return []
        order = random.choice(waiting)
        if order["order_status"] == "1002":
            refund = {"id": self._id("order_refund_info"), "order_id": order["id"], "user_id": order["user_id"]}
            refund |= {"refund_amount": order["total_amount"], "create_time": _time(timestamp)}
            refunding = self._update("order_info", order, timestamp, order_status="1005")
            return [refunding, self._change("order_refund_info", "I", timestamp, refund)]
        if random.random() < 0.1:
            return [self._update("order_info", order, timestamp, order_status="1003", operate_time=_time(timestamp))]
        payment = {
            "id": self._id("payment_info"),
            "out_trade_no": order["out_trade_no"],
            "order_id": order["id"],
            "user_id": order["user_id"],
            "payment_type": str(random.choice((1101, 1102, 1103))),
            "total_amount": order["total_amount"],
            "payment_status": "1602",
            "create_time": _time(timestamp),
            "callback_time": _time(timestamp + 20_000),
        }
        paid = self._update("order_info", order, timestamp, order_status="1002", operate_time=_time(timestamp))
        return [paid, self._change("payment_info", "I", timestamp, payment)]

    def _change_dimension(self, timestamp: int) -> list[Change]:
        random = self._random
        kind = random.random()
        if kind < 0.5:
            user = random.choice(self._users)
            level = random.choice("123")
            return [self._update("user_info", user, timestamp, user_level=level, operate_time=_time(timestamp))]
        if kind < 0.7:
            user = self._user()
            self._users.append(user)
            return [self._change("user_info", "I", timestamp, dict(user))]
        if kind < 0.95 or len(self._coupons) < 2:
            good = random.choice(self._goods)
            return [self._update("sku_info", good, timestamp, price=round(random.uniform(10, 9000), 2))]
        coupon = self._coupons.pop(random.randrange(len(self._coupons)))
        return [self._change("coupon_info", "D", timestamp, coupon)]

    def _update(self, table: str, row: Row, timestamp: int, **values: Any) -> Change:
        old = {name: row[name] for name, value in values.items() if row[name] != value}
        row.update(values)
        return self._change(table, "U", timestamp, dict(row), old=old)

    def _change(self, table: str, operation: Operation, timestamp: int, row: Row, old: Row | None = None) -> Change:
        return Change(table, operation, (row,), old, timestamp, self._transaction)

    def _id(self, table: str) -> int:
        self._next_id[table] = self._next_id.get(table, 0) + 1
        return self._next_id[table]

    def _user(self) -> Row:
        number = self._id("user_info")
        return {
            "id": number,
            "login_name": f"user{number}",
            "nick_name": f"nick{number}",
            "name": self._random.choice(_NAMES),
            "phone_num": f"13{self._random.randint(10**8, 10**9 - 1)}",
            "email": f"user{number}@example.com",
            "user_level": "1",
            "birthday": f"19{self._random.randint(60, 99)}-0{self._random.randint(1, 9)}-11",
            "gender": self._random.choice(("M", "F", None)),
            "create_time": "2020-06-14 10:46:28",
            "operate_time": None,
            "status": None,
        }

    def _good(self) -> Row:
        number = self._id("sku_info")
        row: Row = {"id": number, "spu_id": number % 12 + 1, "price": round(self._random.uniform(10, 9000), 2)}
        row |= {"sku_name": f"sku {number}", "tm_id": number % len(_TRADEMARKS) + 1, "category3_id": number % 20 + 1}
        return row | {"create_time": "2020-01-01 00:00:00"}

    def _province(self, number: int) -> Row:
        row = {"id": number, "name": f"省份{number}", "region_id": number % len(_REGIONS) + 1}
        return row | {"area_code": f"{number:02d}0000", "iso_code": f"CN-{number}", "iso_3166_2": f"CN-P{number}"}


def write(change: Change, change_format: ChangeFormat) -> bytes:
    return encode(_WRITERS[change_format](change))


def _maxwell(change: Change) -> dict[str, Any]:
    kinds = {"I": "insert", "U": "update", "D": "delete", "bootstrap": "bootstrap-insert"}
    record: dict[str, Any] = {"database": DATABASE, "table": change.table, "type": kinds[change.operation]}
    record |= {"ts": change.timestamp // 1000, "xid": change.transaction}
    if change.operation != "bootstrap":
        record |= {"commit": True} if change.is_last else {"xoffset": 0}
    record["data"] = change.rows[0]
    if change.old is not None:
        record["old"] = change.old
    return record


def _canal(change: Change) -> dict[str, Any]:
    kinds = {"I": "INSERT", "U": "UPDATE", "D": "DELETE", "bootstrap": "INSERT"}
    return {
        "data": [_strings(row) for row in change.rows],
        "database": DATABASE,
        "es": change.timestamp,
        "id": change.transaction,
        "isDdl": False,
        "old": None if change.old is None else [_strings(change.old)],
        "pkNames": ["id"],
        "table": change.table,
        "ts": change.timestamp + 30,
        "type": kinds[change.operation],
    }


def _debezium(change: Change) -> dict[str, Any]:
    kinds = {"I": "c", "U": "u", "D": "d", "bootstrap": "r"}
    row = change.rows[0]
    return {
        "before": row if change.operation == "D" else None if change.old is None else {**row, **change.old},
        "after": None if change.operation == "D" else row,
        "source": {"db": DATABASE, "table": change.table, "ts_ms": change.timestamp},
        "op": kinds[change.operation],
        "ts_ms": change.timestamp + 30,
    }


def _strings(row: Row) -> dict[str, str | None]:
    return {name: None if value is None else str(value) for name, value in row.items()}


def _time(timestamp: int) -> str:
    """MySQL's DATETIME, in the shop's time zone (UTC+8)."""
    import datetime

    zone = datetime.timezone(datetime.timedelta(hours=8))
    return datetime.datetime.fromtimestamp(timestamp / 1000, zone).strftime("%Y-%m-%d %H:%M:%S")


_WRITERS: Final[dict[ChangeFormat, Callable[[Change], dict[str, Any]]]] = {
    "maxwell": _maxwell,
    "canal": _canal,
    "debezium": _debezium,
}
_REGIONS: Final = ("华北", "华东", "东北", "华中", "华南", "西南", "西北")
_TRADEMARKS: Final = (
    "三星",
    "苹果",
    "华为",
    "TCL",
    "小米",
    "长粒香",
    "金沙河",
    "索芙特",
    "CAREMiLLE",
    "欧莱雅",
    "香奈儿",
)
_NAMES: Final = ("上官波", "令狐雪", "马珠", "诸葛婉", "卞咏", "钟滢", "何香")
_ORDER_STATES: Final = {
    1001: "未支付",
    1002: "已支付",
    1003: "已取消",
    1004: "已完成",
    1005: "退款中",
    1006: "退款完成",
}
