"""The commands of docs/mqtt.md, run as they stand, but for the port."""

from pathlib import Path

import pytest
from documentation import RUN, blocks_of, command_folder, run_blocks
from mqtt_process import NO_MOSQUITTO, has_mosquitto

from barnabas.testing import Broker


@pytest.mark.skipif(not has_mosquitto(), reason=NO_MOSQUITTO)
def test_the_commands_of_the_page_run(tmp_path: Path) -> None:
    with Broker({"listeners": "PLAINTEXT://127.0.0.1:0,MQTT://127.0.0.1:0"}) as broker:
        blocks = [
            block._replace(text=block.text.replace("-p 1883", f"-p {broker.mqtt_port}"))
            for block in blocks_of("docs/mqtt.md")
            if block.language in RUN
        ]
        assert blocks
        (tmp_path / "bin").mkdir()
        run_blocks(blocks, broker, command_folder(tmp_path / "bin"), tmp_path, {})
