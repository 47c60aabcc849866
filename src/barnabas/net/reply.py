"""What a response is made of on its way out: memory and ranges of files.

Dispatch makes these, `net.Connection` sends them, at once or when a `Deferred` is completed. A part is sent as it is:
the size prefix of the frame belongs to the first part, and a part must not change until it is sent.
"""

from barnabas.transport.parts import MEMORY, FilePart, Memory, Part, Parts

__all__ = ["MEMORY", "FilePart", "Memory", "Part", "Parts"]
