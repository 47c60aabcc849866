"""The words that real producers of the warehouse send, with their frequencies."""

from typing import Final

PAGES: Final = [
    "home",
    "category",
    "discovery",
    "top_n",
    "favor",
    "search",
    "good_list",
    "good_detail",
    "good_spec",
    "comment",
    "comment_done",
    "comment_list",
    "cart",
    "trade",
    "payment",
    "payment_done",
    "orders_all",
    "orders_unpaid",
    "orders_undelivered",
    "orders_unreceipted",
    "orders_wait_comment",
    "mine",
    "activity",
    "login",
    "register",
]
ACTIONS: Final = [
    "favor_add",
    "favor_canel",  # (sic)
    "cart_add",
    "cart_remove",
    "cart_add_num",
    "cart_minus_num",
    "trade_add_address",
    "get_coupon",
]
ITEM_TYPES: Final = ["sku_id", "sku_ids", "keyword", "activity_id", "coupon_id", "order_id", "user_id"]
DISPLAY_TYPES: Final = ["promotion", "recommend", "query", "activity"]
SOURCE_TYPES: Final = ["promotion", "recommend", "query", "activity"]
CHANNELS: Final = ["Appstore", "xiaomi", "oppo", "web", "360", "wandoujia"]
ENTRIES: Final = ("icon", "notice", "install")
ENTRY_WEIGHTS: Final = (75, 95, 100)
"""Cumulative: icon 75 %, notice 20 %, install 5 %."""
ERROR_CODES: Final = (1001, 4001)
ERROR_SHARE: Final = 0.03
ERROR_MESSAGE: Final = (
    " Exception in thread main java.net.SocketTimeoutException\n"
    "\tat com.atgugu.gmall2020.mock.log.bean.AppError.main(AppError.java:{line})"
)
AREA_CODES: Final = [
    "110000",
    "310000",
    "320000",
    "330000",
    "370000",
    "420000",
    "430000",
    "440000",
    "500000",
    "510000",
    "530000",
    "610000",
]
PROVINCES: Final = 34
PHONES: Final = (
    ("Xiaomi", "Xiaomi 10 Pro ", "Android 10.0", "xiaomi"),
    ("Xiaomi", "Xiaomi Mix2 ", "Android 11.0", "xiaomi"),
    ("Huawei", "Huawei P30", "Android 10.0", "oppo"),
    ("Huawei", "Huawei Mate 30", "Android 11.0", "360"),
    ("Redmi", "Redmi k30", "Android 8.1", "wandoujia"),
    ("Honor", "Honor 20s", "Android 9.0", "web"),
    ("vivo", "vivo iqoo3", "Android 10.0", "oppo"),
    ("Oneplus", "Oneplus 7", "Android 11.0", "oppo"),
    ("Sumsung", "Sumsung Galaxy S20", "Android 11.0", "xiaomi"),  # (sic)
    ("iPhone", "iPhone Xs Max", "iOS 13.2.3", "Appstore"),
    ("iPhone", "iPhone 8", "iOS 12.4.1", "Appstore"),
    ("iPhone", "iPhone X", "iOS 13.3.1", "Appstore"),
)
VERSIONS: Final = ("v2.1.134", "v2.1.132", "v2.1.111", "v2.0.1")
KEYWORDS: Final = ("图书", "小米", "iphone11", "电视", "口红", "ps5", "苹果手机", "小米盒子")
