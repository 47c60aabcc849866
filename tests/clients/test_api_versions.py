"""The list of APIs that unit tests hold this broker to is the one of Apache Kafka."""

from pathlib import Path

import pytest
from kafka_api_list import KAFKA_4_1, listed
from kafka_process import QuickKafka, kafka_version, why_no_kafka
from raw_client import RawClient

from barnabas.protocol.messages.api_versions import ApiVersionsRequest


@pytest.mark.java
@pytest.mark.skipif(why_no_kafka() is not None, reason=why_no_kafka() or "")
def test_apache_kafka_lists_what_this_file_says(tmp_path: Path) -> None:
    assert kafka_version().startswith("4.1.")
    with QuickKafka(tmp_path) as kafka, RawClient(kafka.bootstrap) as client:
        request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
        response = client.ask(request, 4)
        assert listed(response) == KAFKA_4_1
        level = {each.name: each.max_version_level for each in response.finalized_features}["metadata.version"]
        assert level == 27
