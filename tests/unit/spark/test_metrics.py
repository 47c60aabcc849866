"""The official connector's figures, from what Spark reports of a source."""

from barnabas.spark.metrics import offsets_behind_latest


def test_behind() -> None:
    source = {
        "endOffset": '{"orders": {"topicId": "x", "0": 10, "1": 5}}',
        "latestOffset": '{"orders": {"topicId": "x", "0": 30, "1": 5, "2": 10}}',
    }
    assert offsets_behind_latest(source) == {
        "minOffsetsBehindLatest": "0",
        "maxOffsetsBehindLatest": "20",
        "avgOffsetsBehindLatest": "10.0",
    }


def test_nothing_to_tell() -> None:
    position = '{"orders": {"0": 10}}'
    for end, latest in ((None, None), (position, None), (None, position), ("17", position), ('{"a": 3}', position)):
        assert offsets_behind_latest({"endOffset": end, "latestOffset": latest}) == {}
