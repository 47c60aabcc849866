"""Versions of the routing in the checkpoint, by their first batch, so that a replay routes as the first time.

    <checkpoint>/routing/00000000000000000000.toml     from batch 0 on
                         00000000000000000118.toml     from batch 118 on
                         begun                         the last batch whose routing is final

Written on the driver's machine, read by tasks. A version is written before the tasks of its first batch start.
"""

from pyarrow import fs

from barnabas.pipeline.checkpoint import checkpoint_files, last_planned_batch, replace_file
from barnabas.pipeline.routing import Routing, parse_routing

_SUFFIX = ".toml"
_BEGUN = "begun"


class RoutingLog:
    def __init__(self, checkpoint: str) -> None:
        self._files, root = checkpoint_files(checkpoint)
        self._checkpoint = checkpoint
        self._folder = f"{root}/routing"
        self._parsed: dict[int, Routing] = {}

    def versions(self) -> list[int]:
        """The first batch of each version, ascending."""
        found = self._files.get_file_info(fs.FileSelector(self._folder, allow_not_found=True))
        names = [info.base_name.partition(".") for info in found if info.base_name.endswith(_SUFFIX)]
        return sorted(int(number) for number, _, _ in names if number.isdecimal())

    def text(self, version: int) -> str:
        with self._files.open_input_file(self._path(version)) as source:
            content: bytes = source.read()
        return content.decode()

    def write(self, version: int, text: str) -> None:
        """Raises RoutingError if the text is not valid; then nothing is written."""
        parse_routing(text)
        replace_file(self._files, self._path(version), text.encode())

    def for_batch(self, batch: int) -> Routing:
        """Parsed once per version."""
        version = self._version_for(batch)
        if version not in self._parsed:
            self._parsed[version] = parse_routing(self.text(version))
        return self._parsed[version]

    def text_for(self, batch: int) -> str:
        return self.text(self._version_for(batch))

    def begun(self) -> int:
        """The last batch whose tasks may have started: its routing is final. -1: none.

        Older checkpoints do not have the file: then every planned batch may have started.
        """
        try:
            with self._files.open_input_file(f"{self._folder}/{_BEGUN}") as source:
                return int(source.read())
        except FileNotFoundError:
            return last_planned_batch(self._checkpoint)

    def note_begun(self, batch: int) -> None:
        replace_file(self._files, f"{self._folder}/{_BEGUN}", str(batch).encode())

    def _version_for(self, batch: int) -> int:
        """If no version covers the batch, the checkpoint was tampered with."""
        fitting = [version for version in self.versions() if version <= batch]
        if not fitting:
            raise RuntimeError(
                f"{self._folder} has no routing for batch {batch}: is this the checkpoint of another query?"
            )
        return fitting[-1]

    def _path(self, version: int) -> str:
        return f"{self._folder}/{version:020d}{_SUFFIX}"
